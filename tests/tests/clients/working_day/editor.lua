-- Neovim with the plugin, as a person uses it: runs the Lua of each request in the editor's main loop, and answers with
-- the text that it gives. DAY_SOCKET and DAY_PLUGIN name the test's socket and the plugin's folder.

local uv = vim.uv or vim.loop
-- No wait is longer, in milliseconds.
local PATIENCE = 30000

vim.opt.runtimepath:prepend(vim.env.DAY_PLUGIN)
vim.opt.swapfile = false
vim.cmd("runtime plugin/toold.lua")
local toold = require("toold")
-- Asks are answered in the other frontend, which counts them; questions are answered here.
toold.setup({ asks = false })
local notices = {}
vim.notify = function(message)
  notices[#notices + 1] = message
end

day = {}

function day.wait(what, condition)
  local seen
  local came = vim.wait(PATIENCE, function()
    seen = condition()
    return seen and true or false
  end, 5)
  assert(came, "waited in vain: " .. what .. "\n" .. table.concat(notices, "\n"))
  return seen
end

--- Waits until the plugin is connected, also after the daemon was replaced.
function day.connect()
  local answered, failure
  toold.connect(function(err)
    answered, failure = true, err
  end)
  day.wait("the connection", function()
    return answered
  end)
  assert(not failure, vim.inspect(failure))
  return "connected"
end

--- Calls a tool and gives its text.
function day.call(name, arguments)
  local answered, err, result
  toold.call(name, arguments, {}, function(...)
    answered = true
    err, result = ...
  end)
  day.wait("the end of " .. name, function()
    return answered
  end)
  assert(not err, vim.inspect(err))
  assert(not result.is_error, vim.inspect(result))
  return result.content[1].text
end

--- Waits until the current buffer has this text.
function day.buffer_has(text)
  return day.wait("the buffer has " .. text, function()
    local whole = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
    return whole:find(text, 1, true) and whole
  end)
end

--- Appends lines to the current buffer.
function day.append(...)
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { ... })
  return "appended"
end

--- Replaces text in the current buffer, and keeps it unsaved.
function day.replace(old, new)
  vim.cmd("%s/\\V" .. old .. "/" .. new .. "/")
  return "replaced"
end

function day.save()
  vim.cmd("silent write")
  return "saved"
end

--- Chooses this answer to the next questions.
function day.choose(label)
  vim.ui.select = function(items, options, on_choice)
    for i, item in ipairs(items) do
      local shown = (options.format_item or tostring)(item)
      if shown:find(label, 1, true) then
        return on_choice(item, i)
      end
    end
    on_choice(nil)
  end
  return "ready"
end

local pipe = uv.new_pipe(false)
local received, closed = "", false
pipe:connect(vim.env.DAY_SOCKET, function(err)
  assert(not err, err)
  pipe:read_start(function(failure, chunk)
    closed = closed or failure ~= nil or chunk == nil
    received = received .. (chunk or "")
  end)
end)

while true do
  -- The editor's own loop runs meanwhile: the plugin's connection, its questions, its timers.
  vim.wait(86400000, function()
    return closed or received:find("\n", 1, true) ~= nil
  end, 5)
  if closed then
    break
  end
  local line
  line, received = received:match("^(.-)\n(.*)$")
  local code = vim.json.decode(line)
  local ok, answer = xpcall(function()
    return assert(loadstring(code))()
  end, debug.traceback)
  pipe:write(vim.json.encode({ ok = ok, text = tostring(answer) }) .. "\n")
end
toold.stop()
vim.cmd("qall!")
