--- The calls of this editor: run, show progress, cancel.

local client = require("toold.client")
local config = require("toold.config")

local uv = vim.uv or vim.loop

local M = {
  -- In flight, the oldest first: `{id, name, message, progress, total, cancel}`.
  running = {},
}

local count = 0

local function remove(call)
  for i, each in ipairs(M.running) do
    if each == call then
      table.remove(M.running, i)
      break
    end
  end
  -- At once, or a message about its end would stand beside a line that says it runs.
  vim.cmd("redrawstatus")
end

local function begin(name)
  count = count + 1
  local call = { id = ("nvim-%d-%d"):format(vim.fn.getpid(), count), name = name }
  M.running[#M.running + 1] = call
  -- A cancel before the request is sent: it is then never sent.
  function call.cancel()
    call.cancelled = true
  end
  require("toold.status").changed()
  return call
end

--- Connects, starting a daemon if necessary, and sends the request with the result of the function `params`. Sends it
--- again when another daemon took over before this one read it.
local function run(call, method, params, callback)
  local deadline
  local function done(err, result)
    remove(call)
    callback(err, result)
  end
  local function attempt()
    client.connect({ start = config.options.start }, function(err)
      if err then
        return done(err)
      end
      if call.cancelled then
        return done({ code = -32800, message = "cancelled" })
      end
      -- The tool must see what you see on the screen.
      require("toold.buffers").flush()
      local id = client.request(method, params(), function(request_err, result)
        deadline = deadline or uv.now() + client.AGAIN_FOR
        if request_err and request_err.not_read and uv.now() < deadline then
          -- Later, when everything that ends with the connection has ended.
          return vim.schedule(attempt)
        end
        done(request_err, result)
      end)
      local cancel = client.canceller(id)
      function call.cancel()
        call.cancelled = true
        cancel()
      end
    end)
  end
  attempt()
  return call
end

--- Calls a tool; see `require("toold").call`.
function M.execute(name, arguments, options, callback)
  local call = begin(name)
  call.on_progress = options.on_progress
  return run(call, "tools.execute", function()
    return {
      name = name,
      arguments = require("toold.rpc").object(arguments),
      call_id = call.id,
      timeout_ms = options.timeout_ms,
      progress = true,
    }
  end, callback)
end

--- Runs a slash command of a plugin.
function M.command(name, input, callback)
  local call = begin("/" .. name)
  return run(call, "commands.run", function()
    return { name = name, input = input }
  end, callback)
end

--- Handles the params of a `tools.progress`.
function M.progressed(params)
  for _, call in ipairs(M.running) do
    if call.id == params.call_id then
      local words = params.message or params.text
      if words and vim.trim(words) ~= "" then
        call.message = vim.trim(words):match("[^\n]*$")
      end
      call.progress, call.total = params.progress or call.progress, params.total or call.total
      require("toold.status").changed(call)
      if call.on_progress then
        call.on_progress(params)
      end
      return
    end
  end
end

return M
