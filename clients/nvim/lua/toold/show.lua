--- Results of calls, in a scratch buffer.

local config = require("toold.config")
local float = require("toold.float")
local text = require("toold.text")

local M = {}

local count = 0

local function block_lines(block)
  if block.type == "text" then
    return text.lines(block.text)
  end
  if block.type == "resource" then
    if block.text then
      return text.lines(block.text)
    end
    local about = block.description or block.name
    return { ("[resource %s%s]"):format(text.line(block.uri), about and ": " .. text.line(about) or "") }
  end
  local bytes = math.floor(#(block.data or "") * 3 / 4)
  return { ("[%s %s, %d bytes]"):format(block.type, text.line(block.mime_type), bytes) }
end

--- The text of a result, as lines.
function M.lines(result)
  local lines = {}
  for _, block in ipairs(result.content or {}) do
    vim.list_extend(lines, block_lines(block))
  end
  return #lines > 0 and lines or { "" }
end

local function window_of_before()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.b[vim.api.nvim_win_get_buf(window)].toold_result and vim.api.nvim_win_get_config(window).relative == "" then
      return window
    end
  end
  return nil
end

--- The height for the lines, at most a third of the screen.
local function fit(window, lines)
  vim.api.nvim_win_set_height(window, math.max(math.min(#lines, math.floor(vim.o.lines / 3)), 1))
end

--- A window for the buffer; reuses the one that showed the last result.
local function open(buffer, lines, title, where, mods)
  if where == "float" then
    return float.open(lines, { title = " " .. title .. " ", enter = true, buffer = buffer })
  end
  if where == "buffer" then
    return vim.api.nvim_win_set_buf(0, buffer)
  end
  mods = mods or ""
  local window = window_of_before()
  if window then
    vim.api.nvim_win_set_buf(window, buffer)
  else
    local back = vim.api.nvim_get_current_win()
    local page = vim.api.nvim_get_current_tabpage()
    vim.cmd((mods ~= "" and mods or where == "vsplit" and "vertical" or "botright") .. " split")
    window = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(window, buffer)
    -- The cursor stays in your text, unless you asked for a new tab page.
    if vim.api.nvim_get_current_tabpage() == page then
      vim.api.nvim_set_current_win(back)
    end
  end
  if where == "split" and vim.api.nvim_win_get_width(window) == vim.o.columns and not mods:find("tab") then
    fit(window, lines)
  end
end

--- Shows lines under a name. `mods` are those of the command (`:vertical`, `:tab`).
function M.open(name, lines, mods, filetype)
  count = count + 1
  local title = ("toold://%s/%d"):format(name, count)
  local buffer = float.scratch(lines, filetype or "toold")
  vim.api.nvim_buf_set_name(buffer, title)
  vim.b[buffer].toold_result = true
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer, nowait = true, desc = "Close" })
  open(buffer, lines, name, config.options.result, mods)
  return buffer
end

--- Shows the result of a call, or its error.
function M.result(name, err, result, mods)
  if err then
    local level = err.code == -32800 and vim.log.levels.INFO or vim.log.levels.ERROR
    return vim.notify(("toold: %s: %s"):format(name, text.line(err.message)), level)
  end
  local show = config.options.result
  if type(show) == "function" then
    return show(name, result, M.lines(result))
  end
  M.open(name, M.lines(result), mods)
  if result.is_error then
    vim.api.nvim_echo({ { "toold: " .. name .. " reports an error", "WarningMsg" } }, false, {})
  else
    -- Replaces the progress.
    vim.api.nvim_echo({ { ("toold: %s done in %d ms"):format(name, result.duration_ms) } }, false, {})
  end
end

return M
