--- One line of status: for a statusline, and for the echo area while a call runs.

local client = require("toold.client")
local config = require("toold.config")
local text = require("toold.text")

local M = {}

-- The least time between two redraws in milliseconds, since output may have thousands of lines.
local EVERY = 40

local function describe(call)
  local parts = { call.name }
  if call.progress then
    parts[#parts + 1] = call.total and ("%g/%g"):format(call.progress, call.total) or ("%g"):format(call.progress)
  end
  if call.message then
    parts[#parts + 1] = text.line(call.message)
  end
  return table.concat(parts, " ")
end

function M.line()
  local parts = {}
  local waiting = require("toold.prompts").waiting()
  if waiting > 0 then
    parts[#parts + 1] = waiting == 1 and "1 ask" or waiting .. " asks"
  end
  local running = require("toold.calls").running
  local last = running[#running]
  if last then
    parts[#parts + 1] = text.cut(describe(last), 40) .. (#running > 1 and (" +%d"):format(#running - 1) or "")
  end
  if #parts > 0 then
    return "toold: " .. table.concat(parts, ", ")
  end
  return client.connecting() and "toold …" or client.connected() and "toold" or ""
end

local due, shown

--- Redraws soon; echoes the progress of `call`.
function M.changed(call)
  shown = call or shown
  if due then
    return
  end
  due = true
  vim.defer_fn(function()
    due = false
    local news = shown
    shown = nil
    vim.cmd("redrawstatus")
    -- Not after the call has ended, and not over what you type.
    local mode = vim.api.nvim_get_mode()
    if news and config.options.progress and not mode.blocking and mode.mode:sub(1, 1) ~= "c" then
      if vim.tbl_contains(require("toold.calls").running, news) then
        local room = vim.o.columns - 13
        vim.api.nvim_echo({ { text.cut("toold: " .. describe(news), room) } }, false, {})
      end
    end
  end, EVERY)
end

return M
