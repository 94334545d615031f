--- Unsaved text, laid over its files, so that tools read what you see.

local client = require("toold.client")
local config = require("toold.config")
local text = require("toold.text")

local M = {}

-- The longest text that the daemon accepts, in bytes.
local MAX_BYTES = 10 * 1024 * 1024

-- By buffer: the text that lies over its path, and whether the buffer has changed since.
local attached, laid, dirty = {}, {}, {}
local version = 0
local due = false
-- Paths that the daemon refused, to report each once.
local refused = {}

local SEPARATORS = { unix = "\n", dos = "\r\n", mac = "\r" }

--- The text as Neovim would write it to the file, but in UTF-8.
local function content(buffer)
  local options = vim.bo[buffer]
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  if #lines == 1 and lines[1] == "" then
    return ""
  end
  local separator = SEPARATORS[options.fileformat] or "\n"
  -- Neovim holds a NUL as a line end within a line.
  for i, line in ipairs(lines) do
    if line:find("\n", 1, true) then
      lines[i] = line:gsub("\n", "\0")
    end
  end
  local last = (options.endofline or options.fixendofline and not options.binary) and separator or ""
  return table.concat(lines, separator) .. last
end

local function wanted_path(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= "" or not vim.bo[buffer].modified then
    return nil
  end
  local name = vim.api.nvim_buf_get_name(buffer)
  return name:sub(1, 1) == "/" and name or nil
end

local function clear(buffer)
  local over = laid[buffer]
  if over then
    laid[buffer] = nil
    client.request("buffers.clear", { path = over.path })
  end
end

local function lay(buffer, path)
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local over = laid[buffer]
  if over and over.path == path and over.tick == tick then
    return
  end
  if over and over.path ~= path then
    clear(buffer)
  end
  local whole = content(buffer)
  if #whole > MAX_BYTES or not text.is_utf8(whole) then
    return clear(buffer)
  end
  version = version + 1
  laid[buffer] = { path = path, tick = tick }
  client.request("buffers.set", { path = path, version = version, text = whole }, function(err)
    if err and err.kind ~= "disconnected" then
      laid[buffer] = nil
      if not refused[path] then
        refused[path] = true
        vim.notify("toold: tools do not see the unsaved text: " .. err.message, vim.log.levels.WARN)
      end
    end
  end)
end

local function sync(buffer)
  local path = vim.api.nvim_buf_is_valid(buffer) and wanted_path(buffer)
  if path then
    lay(buffer, path)
  else
    clear(buffer)
  end
end

--- Sends the daemon all changes at once.
function M.flush()
  if not client.connected() then
    return
  end
  local changed = dirty
  dirty = {}
  for buffer in pairs(changed) do
    sync(buffer)
  end
end

local function mark(buffer)
  dirty[buffer] = true
  if due or not client.connected() then
    return
  end
  due = true
  vim.defer_fn(function()
    due = false
    M.flush()
  end, config.options.buffers_delay_ms)
end

local function watch(buffer)
  if not config.options.buffers or attached[buffer] or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  if vim.bo[buffer].buftype ~= "" then
    return
  end
  -- Not autocommands: they miss changes that a program makes.
  attached[buffer] = vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function()
      if not config.options.buffers then
        attached[buffer] = nil
        return true
      end
      mark(buffer)
    end,
    on_reload = function()
      mark(buffer)
    end,
    on_detach = function()
      attached[buffer] = nil
      mark(buffer)
    end,
  })
  mark(buffer)
end

local function watch_all()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    watch(buffer)
  end
end

--- Call once.
function M.attach(group)
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "BufEnter" }, {
    group = group,
    callback = function(event)
      watch(event.buf)
    end,
    desc = "toold: watch for unsaved text",
  })
  vim.api.nvim_create_autocmd({ "BufWritePost", "BufModifiedSet", "BufFilePost" }, {
    group = group,
    callback = function(event)
      if attached[event.buf] then
        mark(event.buf)
      end
    end,
    desc = "toold: report saved text",
  })
  vim.api.nvim_create_autocmd({ "BufUnload", "BufWipeout" }, {
    group = group,
    callback = function(event)
      dirty[event.buf] = nil
      clear(event.buf)
    end,
    desc = "toold: withdraw unsaved text",
  })
end

function M.on_connect()
  laid = {}
  if not config.options.buffers then
    return
  end
  watch_all()
  for buffer in pairs(attached) do
    dirty[buffer] = true
  end
  M.flush()
end

function M.on_disconnect()
  laid = {}
end

--- Call when the session's folder has changed: text lies over the files of one project.
function M.move()
  for buffer in pairs(vim.deepcopy(laid)) do
    clear(buffer)
    dirty[buffer] = true
  end
  M.flush()
end

return M
