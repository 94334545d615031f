--- The daemon's events, for the parts of this client that need them.

local client = require("toold.client")
local config = require("toold.config")
local text = require("toold.text")

local M = {}

local LEVELS = { error = vim.log.levels.ERROR, warn = vim.log.levels.WARN, warning = vim.log.levels.WARN }

local function notice(event)
  if event.session_id and event.session_id ~= client.session.id then
    return
  end
  local from = event.plugin and event.plugin .. ": " or ""
  vim.notify("toold: " .. from .. text.line(event.message), LEVELS[event.level] or vim.log.levels.INFO)
end

local function finished(event)
  local tool = client.tool(event.tool)
  if config.options.reload and not (tool and tool.annotations.read_only) then
    require("toold.reload").check()
  end
end

local on = {
  ["tools.changed"] = function()
    client.refresh()
  end,
  ["call.finished"] = finished,
  ["notice"] = notice,
  -- The lost events may have changed files and tools.
  ["lagged"] = function()
    client.refresh()
    finished({})
  end,
}

function M.on_connect()
  client.request("events.subscribe", { kinds = { "tools.changed", "call.finished", "notice" } }, nil, function(event)
    local take = on[event.kind]
    if take then
      take(event)
    end
  end)
end

function M.on_disconnect() end

return M
