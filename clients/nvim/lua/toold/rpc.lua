--- One connection: JSON-RPC 2.0, one text per line, over a Unix socket. Callbacks run on the main loop.

local uv = vim.uv or vim.loop

local M = {}

-- The requests that you wait for.
local CALLS = { ["tools.execute"] = true, ["commands.run"] = true }

local Connection = {}
Connection.__index = Connection

--- Connects; `callback(err, connection)`, with the name of a system error such as ENOENT.
function M.open(socket, callback)
  local pipe = uv.new_pipe(false)
  local connected = vim.schedule_wrap(function(err)
    if err then
      pipe:close()
      return callback(err)
    end
    local self = setmetatable({
      pipe = pipe,
      waiting = {},
      subscriptions = {},
      last_id = 0,
      -- Called with the params of each `tools.progress`.
      on_progress = function() end,
      -- Called once, when the stream has ended, with the reason and whether calls were in flight, which report it.
      on_closed = function() end,
    }, Connection)
    self:read()
    callback(nil, self)
  end)
  -- Some versions raise an error for a path that is too long for a socket, others return it.
  local ok, request, message = pcall(pipe.connect, pipe, socket, connected)
  if not ok then
    connected(tostring(request))
  elseif request == nil then
    connected(tostring(message))
  end
end

--- An error in a caller's callback must not stop the reading.
local function guarded(callback, ...)
  local ok, err = xpcall(callback, debug.traceback, ...)
  if not ok then
    vim.notify("toold: " .. err, vim.log.levels.ERROR)
  end
end

function Connection:read()
  -- Parts of a line that is not complete yet.
  local pieces = {}
  local take = vim.schedule_wrap(function(line)
    self:take(line)
  end)
  local close = vim.schedule_wrap(function()
    self:close("the daemon is gone")
  end)
  self.pipe:read_start(function(_, chunk)
    if not chunk then
      -- At once: nobody reads the requests until the main loop closes the connection.
      self.ended = true
      return close()
    end
    local from = 1
    while true do
      local stop = chunk:find("\n", from, true)
      if not stop then
        pieces[#pieces + 1] = chunk:sub(from)
        return
      end
      pieces[#pieces + 1] = chunk:sub(from, stop - 1)
      take(table.concat(pieces))
      pieces = {}
      from = stop + 1
    end
  end)
end

function Connection:take(line)
  if self.closed then
    return
  end
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true } })
  if not self.speaks and (not ok or type(message) ~= "table") then
    -- Another program listens there.
    self.foreign = line:sub(1, 60):gsub("%c", "?")
    return self:close("the other end is not a daemon")
  end
  self.speaks = true
  if not ok or type(message) ~= "table" then
    vim.notify("toold: the daemon sent an invalid message: " .. line:sub(1, 200), vim.log.levels.WARN)
  elseif message.method == "daemon.closing" then
    -- Sent after all answers: a request without an answer was not read.
    self.replaced = message.params.reason == "restart"
  elseif message.method == "tools.progress" then
    guarded(self.on_progress, message.params)
  elseif message.method then
    local on_item = self.subscriptions[message.params.subscription]
    if on_item then
      guarded(on_item, message.params.result)
    end
  else
    self:answered(message)
  end
end

function Connection:answered(message)
  local waiting = message.id and self.waiting[message.id]
  if not waiting then
    return
  end
  self.waiting[message.id] = nil
  if waiting.on_item and not message.error then
    self.subscriptions[message.result] = waiting.on_item
  end
  guarded(waiting.callback, message.error, message.result)
end

--- Sends a request and returns its id. `callback(err, result)`; `err` is a JSON-RPC error object. When the connection is
--- lost, it has only a `message`, and `not_read` if the daemon has not read the request, which may then be sent again.
--- With `on_item` it is a subscription.
function Connection:request(method, params, callback, on_item)
  callback = callback or function() end
  if self.closed then
    vim.schedule(function()
      guarded(callback, { message = self.closed, kind = "disconnected", not_read = true })
    end)
    return nil
  end
  self.last_id = self.last_id + 1
  local id = self.last_id
  local request = { callback = callback, on_item = on_item, is_call = CALLS[method], unsent = self.ended }
  self.waiting[id] = request
  self:send({ jsonrpc = "2.0", id = id, method = method, params = M.object(params) }, function(err)
    request.unsent = request.unsent or err ~= nil
  end)
  return id
end

function Connection:notify(method, params)
  if not self.closed then
    self:send({ jsonrpc = "2.0", method = method, params = M.object(params) })
  end
end

--- Asks the daemon to cancel a request, which then gets an error.
function Connection:cancel(id)
  if self.waiting[id] then
    self:notify("$/cancelRequest", { id = id })
  end
end

--- Ends a subscription, here and in the daemon.
function Connection:unsubscribe(method, subscription)
  self.subscriptions[subscription] = nil
  self:request(method, { subscription = subscription })
end

function Connection:send(message, written)
  -- Written in order. After a write error, reading ends too.
  self.pipe:write(vim.json.encode(message) .. "\n", written)
end

--- Closes the connection. Every request in flight gets an error with this reason.
function Connection:close(reason)
  if self.closed then
    return
  end
  self.closed = reason or "the connection was closed"
  if not self.pipe:is_closing() then
    self.pipe:close()
  end
  local waiting = self.waiting
  self.waiting, self.subscriptions = {}, {}
  local calls = false
  for _, request in pairs(waiting) do
    local message, not_read = self.closed, self.replaced or request.unsent
    calls = calls or request.is_call
    if not not_read then
      message = message .. "; it may or may not have run"
    end
    guarded(request.callback, { message = message, kind = "disconnected", not_read = not_read })
  end
  guarded(self.on_closed, self.closed, calls)
end

--- Makes an empty table a JSON object, and not a list.
function M.object(value)
  if value == nil or type(value) == "table" and next(value) == nil then
    return vim.empty_dict()
  end
  return value
end

return M
