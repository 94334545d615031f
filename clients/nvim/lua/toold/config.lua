--- Options and their defaults. `:help toold-options` describes each.

local M = {}

local defaults = {
  socket = nil,
  toold = nil,
  start = true,
  start_timeout_ms = 10000,
  connect = true,
  result = "split",
  progress = true,
  asks = true,
  questions = true,
  lend = true,
  buffers = true,
  buffers_delay_ms = 150,
  reload = true,
}

local types = {
  socket = "string",
  toold = "string",
  start = "boolean",
  start_timeout_ms = "number",
  connect = "boolean",
  progress = "boolean",
  asks = "boolean",
  questions = "boolean",
  buffers = "boolean",
  buffers_delay_ms = "number",
  reload = "boolean",
}

local results = { split = true, vsplit = true, float = true, buffer = true }

M.options = vim.deepcopy(defaults)

--- Raises an error for an unknown option, so that a misspelt one is not ignored.
function M.set(given)
  local options = vim.deepcopy(defaults)
  for name, value in pairs(given or {}) do
    if types[name] then
      if type(value) ~= types[name] then
        error(("toold: option %s must be a %s"):format(name, types[name]), 0)
      end
    elseif name == "result" then
      if type(value) ~= "function" and not results[value] then
        error("toold: option result must be split, vsplit, float, buffer or a function", 0)
      end
    elseif name == "lend" then
      if type(value) ~= "boolean" and type(value) ~= "table" then
        error("toold: option lend must be a boolean or a list of tool names", 0)
      end
    else
      error("toold: unknown option " .. tostring(name), 0)
    end
    options[name] = value
  end
  M.options = options
end

return M
