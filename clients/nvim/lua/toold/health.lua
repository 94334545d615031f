--- `:checkhealth toold`

local M = {}

local health = vim.health or require("health")
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local error_ = health.error or health.report_error
local info = health.info or health.report_info

local PATIENCE = 5000

--- Waits for the answer to a request.
local function answer(method)
  local done, err, result = false, nil, nil
  require("toold.client").request(method, {}, function(...)
    done = true
    err, result = ...
  end)
  vim.wait(PATIENCE, function()
    return done
  end, 5)
  if not done then
    return nil, "no answer"
  end
  return result, err and err.message
end

local function check_program(options, paths)
  local program = paths.program(options)
  if program then
    ok("this editor can start a daemon: " .. program)
  elseif options.start then
    warn("found no toold to start", { "put it into PATH, or set the option toold to its path" })
  else
    info("this editor does not start a daemon, because the option start is false")
  end
end

local function check_plugins()
  local list, err = answer("plugins.list")
  if not list then
    return warn("could not list the plugins: " .. err)
  end
  for _, plugin in ipairs(list.plugins) do
    if plugin.status == "failed" then
      local why = plugin.error and plugin.error.message or "for an unknown reason"
      warn(("the plugin %s failed: %s"):format(plugin.name, why), { "run toolctl plugins to see where" })
    end
  end
end

local function check_daemon()
  local client = require("toold.client")
  local status, err = answer("daemon.status")
  if not status then
    return error_("could not get the daemon's status: " .. err)
  end
  ok(("toold %s, protocol %d, pid %d, at %s"):format(status.version, status.protocol, status.pid, status.socket or "stdio"))
  ok(("session %s in %s"):format(client.session.id, client.session.cwd))
  ok(("%d tools"):format(#client.tools))
  for _, problem in ipairs(status.problems or {}) do
    warn(problem)
  end
  check_plugins()
end

function M.check()
  local toold = require("toold")
  local paths = require("toold.paths")
  local options = require("toold.config").options
  start("toold")
  if vim.fn.has("nvim-0.7") == 1 then
    ok("Neovim is 0.7 or later")
  else
    error_("this plugin needs Neovim 0.7 or later")
  end
  local socket, why = paths.socket(options)
  if not socket then
    return error_(why)
  end
  info("socket: " .. socket)
  check_program(options, paths)
  local done, err = false, nil
  toold.connect(function(failed)
    done, err = true, failed
  end)
  vim.wait(options.start_timeout_ms, function()
    return done
  end, 5)
  if not done or err then
    return error_("not connected: " .. (err and err.message or "no answer in time"))
  end
  check_daemon()
end

return M
