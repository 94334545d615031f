--- A choice by one key. A `vim.ui.select` that is not Neovim's own, such as that of a picker, is used instead.

local float = require("toold.float")
local text = require("toold.text")

local M = {}

--- A key that comes sooner after the prompt, or after another such key, was meant for something else. In milliseconds.
M.read_for = 500

local uv = vim.uv or vim.loop

--- Whether each item has a key, and no other program shows choices.
local function takes_keys(items)
  for _, item in ipairs(items) do
    if not item.key then
      return false
    end
  end
  return debug.getinfo(vim.ui.select, "S").source:find("vim/ui%.lua$") ~= nil
end

--- The window's lines: the prompt, and each choice behind its key, with all that it covers.
local function lines_of(items, options)
  local width = math.max(vim.o.columns - 8, 20)
  local lines = text.wrapped(options.prompt, width)
  for _, item in ipairs(items) do
    local before = ("  %s  "):format(item.key == "<CR>" and "Enter" or item.key)
    for _, part in ipairs(text.wrapped(options.format_item(item), width - #before)) do
      lines[#lines + 1] = before .. part
      before = (" "):rep(#before)
    end
  end
  return lines
end

--- Lets you choose one of `items`, by the `key` of each, as `vim.ui.select` does; `options.read` says that you have read it
--- before. Returns a function that closes it, after which `on_choice` is not called.
function M.select(items, options, on_choice)
  if not takes_keys(items) then
    local select = { prompt = options.prompt, kind = options.kind, format_item = options.format_item }
    vim.ui.select(items, select, on_choice)
    return function() end
  end
  local buffer = float.scratch(lines_of(items, options), options.kind)
  local window = float.open(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), { buffer = buffer, enter = true, at = "bottom" })
  local since = uv.now() - (options.read and M.read_for or 0)
  local is_open = true
  local function close()
    is_open = false
    float.close(window)
  end
  local function choose(item)
    if is_open then
      close()
      on_choice(item)
    end
  end
  local function bind(key, action)
    vim.keymap.set("n", key, action, { buffer = buffer, nowait = true, silent = true })
  end
  for _, item in ipairs(items) do
    bind(item.key, function()
      uv.update_time()
      if uv.now() - since >= M.read_for then
        return choose(item)
      end
      since = uv.now()
      vim.notify("toold: too soon after the prompt or another key: press it again", vim.log.levels.INFO)
    end)
  end
  for _, key in ipairs({ "<Esc>", "q" }) do
    bind(key, function()
      choose(nil)
    end)
  end
  -- Closed by a command of the editor.
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    once = true,
    callback = function()
      vim.schedule(function()
        choose(nil)
      end)
    end,
  })
  return close
end

return M
