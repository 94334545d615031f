--- The one connection of this editor: opens it, restores it when it is lost, moves it when the folder changes.

local config = require("toold.config")
local environment = require("toold.environment")
local start = require("toold.start")

local M = {
  -- From the last `tools.list`, sorted by name.
  tools = {},
  -- `{id, cwd, asked_cwd, workspace, env_ignored}` of the session, kept for the next connection.
  session = nil,
  -- How long a request is sent again while one daemon replaces another, in milliseconds.
  AGAIN_FOR = 8000,
}

local uv = vim.uv or vim.loop

-- Milliseconds between two attempts to find a daemon, at first and at most.
local LOOK_FIRST, LOOK_AT_MOST = 250, 5000

local connection
local connecting = false
local want_start = false
local waiters = {}
-- Grows with each `stop`, so that earlier attempts end.
local generation = 0
local looking, look_due, look_after = false, false, LOOK_FIRST
local revision, epoch

--- The parts that are set up on each connection, in this order.
local function parts()
  return { require("toold.events"), require("toold.asks"), require("toold.questions"), require("toold.provide"), require("toold.buffers") }
end

function M.connected()
  return connection ~= nil
end

function M.connecting()
  return connecting
end

--- Sends a request on the current connection. Returns the request's id, or nil when there is no connection.
function M.request(method, params, callback, on_item)
  if not connection then
    vim.schedule(function()
      if callback then
        callback({ message = "not connected to the daemon", kind = "disconnected", not_read = true })
      end
    end)
    return nil
  end
  return connection:request(method, params, callback, on_item)
end

--- A function that cancels the request with this id, on the connection that it was sent on.
function M.canceller(id)
  local own = connection
  return function()
    if own and id then
      own:cancel(id)
    end
  end
end

function M.unsubscribe(method, subscription)
  if connection then
    connection:unsubscribe(method, subscription)
  end
end

--- Connects, unless connected. With `how.start`, starts a daemon if none is running. `callback(err)`.
function M.connect(how, callback)
  if connection then
    return callback(nil)
  end
  waiters[#waiters + 1] = callback
  want_start = want_start or how.start
  if connecting then
    return
  end
  connecting = true
  local own = generation
  local function may_start()
    return want_start and own == generation
  end
  local deadline = uv.now() + M.AGAIN_FOR
  local function attempt()
    start.connect(config.options, may_start, function(err, opened)
      if own ~= generation then
        if opened then
          opened:close()
        end
        return
      end
      if err then
        return M.finish(err)
      end
      M.open(opened, own, uv.now() < deadline and attempt or M.finish)
    end)
  end
  attempt()
end

--- Sets this editor up on a connection. `again(err)` when another daemon takes over meanwhile.
function M.open(opened, own, again)
  local function failed(err)
    opened:close()
    if own ~= generation then
      return
    end
    if err.not_read then
      return again(err)
    end
    M.finish(err)
  end
  M.open_session(opened, function(err)
    if err then
      return failed(err)
    end
    opened:request("tools.list", {}, function(list_err, list)
      if list_err or own ~= generation then
        return failed(list_err or { message = "stopped" })
      end
      M.take_tools(list)
      opened.on_progress = require("toold.calls").progressed
      opened.on_closed = function(_, reported)
        M.lost(reported or opened.replaced or own ~= generation)
      end
      connection = opened
      look_after = LOOK_FIRST
      for _, each in ipairs(parts()) do
        each.on_connect()
      end
      M.finish(nil)
    end)
  end)
end

--- Opens a session in the editor's folder; resumes the last one if the folder is the same.
function M.open_session(on, callback)
  local cwd = vim.fn.getcwd(-1, -1)
  local version = vim.version()
  local params = {
    cwd = cwd,
    session_id = M.session and M.session.asked_cwd == cwd and M.session.id or nil,
    client = { name = "nvim", version = ("%d.%d.%d"):format(version.major, version.minor, version.patch) },
    protocol = 2,
    env = environment.passed_on(vim.fn.environ()),
  }
  on:request("session.open", params, function(err, opened)
    if err and err.kind ~= "disconnected" and params.session_id then
      -- It may have been closed, or belong to another client by now: open a new one.
      M.session = nil
      return M.open_session(on, callback)
    end
    if not err then
      M.session = { id = opened.session_id, cwd = opened.cwd, asked_cwd = cwd, server = opened.server }
      M.session.workspace, M.session.env_ignored = opened.workspace, opened.env_ignored
      if opened.workspace == "pending" or opened.workspace == "none" then
        -- As in an editor that an agent has started.
        local how = "to allow it, run: toolctl workspaces allow " .. vim.fn.shellescape(cwd)
        vim.notify(("toold: tools may not work in %s yet; %s"):format(cwd, how), vim.log.levels.WARN)
      end
    end
    callback(err)
  end)
end

function M.finish(err)
  connecting, want_start = false, false
  local all = waiters
  waiters = {}
  for _, callback in ipairs(all) do
    callback(err)
  end
  if err and looking then
    M.look_later()
  end
  vim.cmd("redrawstatus")
end

--- Call when the connection has ended; `quiet` if you know that already.
function M.lost(quiet)
  connection = nil
  if not quiet then
    local next_step = config.options.start and "the next call starts it" or "waiting until it is back"
    vim.notify("toold: the daemon is gone; " .. next_step, vim.log.levels.WARN)
  end
  for _, each in ipairs(parts()) do
    each.on_disconnect()
  end
  vim.cmd("redrawstatus")
  if looking then
    M.look_later()
  end
end

--- Tries to connect until a daemon is running, and again when it is lost. Starts none, as you may have stopped it.
function M.look()
  looking = true
  M.connect({ start = false }, function() end)
end

function M.look_later()
  if look_due then
    return
  end
  look_due = true
  local own = generation
  vim.defer_fn(function()
    if own ~= generation then
      return
    end
    look_due = false
    if not connection and not connecting then
      M.look()
    end
  end, look_after)
  look_after = math.min(look_after * 2, LOOK_AT_MOST)
end

--- Disconnects, and does not try again.
function M.stop()
  generation = generation + 1
  looking, look_due, look_after = false, false, LOOK_FIRST
  if connecting then
    M.finish({ message = "stopped" })
  end
  if connection then
    connection:close("the client was stopped")
  end
end

--- Call when the editor's folder has changed: a session is bound to its folder.
function M.move()
  if not connection or M.session.asked_cwd == vim.fn.getcwd(-1, -1) then
    return
  end
  M.session = nil
  M.open_session(connection, function(err)
    if err then
      -- The next connection has a session in the folder.
      return err.kind ~= "disconnected" and vim.notify("toold: " .. err.message, vim.log.levels.WARN)
    end
    require("toold.provide").move()
    require("toold.buffers").move()
    M.refresh()
  end)
end

--- Fetches the tools, if they have changed.
function M.refresh(callback)
  M.request("tools.list", { if_revision = revision, if_epoch = epoch }, function(err, list)
    if not err then
      M.take_tools(list)
    end
    if callback then
      callback(err)
    end
  end)
end

function M.take_tools(list)
  revision, epoch = list.revision, list.epoch
  if list.tools then
    M.tools = list.tools
  end
end

--- The tool of this name, or nil.
function M.tool(name)
  for _, tool in ipairs(M.tools) do
    if tool.name == name then
      return tool
    end
  end
  return nil
end

return M
