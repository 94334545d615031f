--- Connects to the daemon, and starts one when none is running.
---
--- Any number of clients may do this at once: a lock decides which daemon serves, and the others exit with status 0.

local paths = require("toold.paths")
local rpc = require("toold.rpc")

local uv = vim.uv or vim.loop

local M = {}

-- Milliseconds between two attempts to connect to a socket that nobody listens at yet.
local LOOK_EVERY = 10
-- The longest pause between two attempts.
local LOOK_AT_LEAST_EVERY = 200
-- Milliseconds until a second daemon is started, when the first one met another that was stopping, and exited.
local START_AGAIN_AFTER = 300
-- How much of the daemon's output an error shows, in bytes.
local MAX_WORDS = 4096

local NOBODY = { ENOENT = true, ECONNREFUSED = true, ECONNRESET = true }

local function open_log(socket)
  vim.fn.mkdir(vim.fn.fnamemodify(socket, ":h"), "p", 448) -- 0700
  local flags = uv.constants
  local how = bit.bor(flags.O_WRONLY, flags.O_APPEND, flags.O_CREAT, flags.O_NOFOLLOW or 0)
  return uv.fs_open(socket .. ".log", how, 384) -- 0600
end

--- The environment without the variables that mark programs as running inside this editor.
local function environment(socket)
  local own = { NVIM = true, NVIM_LISTEN_ADDRESS = true, VIM = true, VIMRUNTIME = true, MYVIMRC = true }
  local list = {}
  for name, value in pairs(vim.fn.environ()) do
    if not own[name] and name ~= "TOOLD_SOCKET" then
      list[#list + 1] = name .. "=" .. value
    end
  end
  list[#list + 1] = "TOOLD_SOCKET=" .. socket
  return list
end

--- Starts a daemon that outlives this process. Returns nil and a message on failure.
local function spawn(socket, options)
  local program = paths.program(options)
  if not program then
    local named = options.toold and options.toold .. " is not a program" or "found no toold in PATH; set the option toold to its path"
    return nil, "can't start a daemon: " .. named
  end
  local log, why = open_log(socket)
  if not log then
    return nil, ("can't write the daemon's log %s.log: %s"):format(socket, why)
  end
  local started = { program = program, since = uv.now(), log = socket .. ".log", log_start = uv.fs_fstat(log).size }
  local handle, err = uv.spawn(program, {
    args = { "serve", "--detached" },
    env = environment(socket),
    cwd = "/",
    detached = true,
    stdio = { nil, log, log },
  }, function(status, signal)
    started.status = signal ~= 0 and "signal " .. signal or status
    started.handle:close()
  end)
  uv.fs_close(log)
  if not handle then
    return nil, ("can't start %s: %s"):format(program, err)
  end
  started.handle = handle
  handle:unref()
  return started
end

--- The last lines that it wrote to the log, to append to an error.
local function words(started)
  local log = started and uv.fs_open(started.log, "r", 0)
  if not log then
    return ""
  end
  local size = uv.fs_fstat(log).size
  local text = uv.fs_read(log, MAX_WORDS, math.max(started.log_start, size - MAX_WORDS)) or ""
  uv.fs_close(log)
  text = vim.trim(text)
  return text ~= "" and "; it said:\n" .. text or ""
end

--- Connects to a daemon that answers. `options`: `socket`, `toold`, `start_timeout_ms`; `may_start()` says whether to
--- start one when nobody listens. `callback(err, connection)`, once.
function M.connect(options, may_start, callback)
  local socket, why = paths.socket(options)
  if not socket then
    return callback({ message = why })
  end
  local deadline = uv.now() + options.start_timeout_ms
  local started
  local attempt
  local pause = LOOK_EVERY
  -- The obstacle of the last attempt, for the error.
  local shown = "listens and does not answer"

  local function give_up()
    local message = "the daemon at %s %s after %d ms"
    callback({ message = message:format(socket, shown, options.start_timeout_ms) })
  end

  -- A program listens, or did a moment ago, so no daemon is started.
  local function later(how)
    shown = how
    if uv.now() >= deadline then
      return give_up()
    end
    vim.defer_fn(attempt, pause)
    pause = math.min(2 * pause, LOOK_AT_LEAST_EVERY)
  end

  local function nobody()
    if not may_start() then
      return callback({ message = "no daemon is running at " .. socket, kind = "not_running" })
    end
    if uv.now() >= deadline then
      local message = "the daemon at %s does not answer after %d ms%s"
      return callback({ message = message:format(socket, options.start_timeout_ms, words(started)) })
    end
    if started and started.status and started.status ~= 0 then
      local message = "%s did not start: exit status %s%s"
      return callback({ message = message:format(started.program, started.status, words(started)) })
    end
    if not started or started.status and uv.now() - started.since >= START_AGAIN_AFTER then
      local err
      started, err = spawn(socket, options)
      if not started then
        return callback({ message = err })
      end
    end
    vim.defer_fn(attempt, LOOK_EVERY)
  end

  local function ping(connection)
    local over = false
    local patience = vim.defer_fn(function()
      if not over then
        over = true
        connection:close()
        give_up()
      end
    end, math.max(deadline - uv.now(), 1))
    connection:request("daemon.ping", {}, function(err)
      if over then
        return
      end
      over = true
      if not patience:is_closing() then
        patience:stop()
        patience:close()
      end
      -- An error is an answer too. Only a daemon that is about to stop or hands its socket over does not answer.
      if connection.foreign then
        local message = "%s is not the socket of a daemon: the program that listens there answered %q; "
          .. "stop that program, or set TOOLD_SOCKET to another path"
        return callback({ message = message:format(socket, connection.foreign) })
      elseif err and err.kind == "disconnected" then
        return later("closes each connection before it answers; given up")
      end
      callback(nil, connection)
    end)
  end

  attempt = function()
    rpc.open(socket, function(err, connection)
      if connection then
        ping(connection)
      elseif NOBODY[err] then
        nobody()
      elseif err == "EAGAIN" then
        -- The queue of the socket is full.
        later("accepts no connections; given up")
      else
        callback({ message = ("can't connect to %s: %s"):format(socket, err) })
      end
    end)
  end
  attempt()
end

return M
