--- Prompts for you: one at a time, and none while you type.

local text = require("toold.text")

local M = {}

-- Milliseconds between two checks whether the editor is in normal mode.
local LOOK_EVERY = 100

-- By id: `{id, kind, asked_at, headline, show(done), close(), renew(request)}`, whether or not it is in the queue.
local pending = {}
local queue = {}
local active
local due = false

--- How many prompts wait for an answer.
function M.waiting()
  return vim.tbl_count(pending)
end

local pump

local function pump_later()
  if not due then
    due = true
    vim.defer_fn(function()
      due = false
      pump()
    end, LOOK_EVERY)
  end
end

--- Reports a prompt once, since you may stay in insert or terminal mode for long.
local function tell(prompt)
  if not prompt.announced then
    prompt.announced = true
    vim.notify("toold: " .. prompt.headline .. " (shown in normal mode)", vim.log.levels.WARN)
  end
end

pump = function()
  if active or #queue == 0 then
    return
  end
  local mode = vim.api.nvim_get_mode()
  -- Otherwise what you type would answer the prompt.
  if mode.mode ~= "n" or mode.blocking then
    tell(queue[1])
    return pump_later()
  end
  local prompt = table.remove(queue, 1)
  active = prompt
  local ok, err = xpcall(prompt.show, debug.traceback, function()
    if active == prompt then
      active = nil
      pump_later()
    end
  end)
  if not ok then
    -- A prompt that cannot be shown answers nothing.
    active = nil
    prompt.close()
    vim.notify("toold: " .. err, vim.log.levels.ERROR)
  end
end

--- Queues a prompt. `show(done)` must call `done` when you have answered or dismissed it.
function M.add(prompt)
  if pending[prompt.id] then
    return
  end
  pending[prompt.id] = prompt
  queue[#queue + 1] = prompt
  require("toold.status").changed()
  -- Not while the message that brought it is being read: a prompt may block.
  vim.schedule(pump)
end

--- Tells an open prompt that its request has changed, and you if it says something else now. Returns whether it was open.
function M.renew(id, request)
  local prompt = pending[id]
  if not prompt then
    return false
  end
  local before = prompt.headline
  prompt.renew(request)
  if prompt.headline ~= before then
    prompt.announced = nil
    -- A selection that is open cannot be changed.
    if active == prompt then
      vim.notify("toold: now " .. prompt.headline, vim.log.levels.WARN)
    end
  end
  return true
end

--- Closes a prompt that needs no answer any more. Returns whether it was open.
function M.over(id)
  local prompt = pending[id]
  if not prompt then
    return false
  end
  pending[id] = nil
  for i, each in ipairs(queue) do
    if each == prompt then
      table.remove(queue, i)
      break
    end
  end
  prompt.close()
  if active == prompt then
    active = nil
    pump_later()
  end
  require("toold.status").changed()
  return true
end

--- Closes a prompt that has ended, and says how, unless its id is among those that were `answered` here.
function M.ended(resolved, answered)
  local id, how = resolved.request_id, resolved.how
  local headline, here = M.headline(id), answered[id]
  answered[id] = nil
  if M.over(id) and not here and how and how ~= "" then
    vim.notify(("toold: %s: %s"):format(text.line(how), text.cut(headline, 80)), vim.log.levels.INFO)
  end
end

--- The line that a pending prompt is shown by.
function M.headline(id)
  return pending[id] and pending[id].headline or ""
end

function M.is_pending(id)
  return pending[id] ~= nil
end

--- Closes all prompts of this kind: their connection is lost.
function M.clear(kind)
  for _, id in ipairs(vim.tbl_keys(pending)) do
    if pending[id].kind == kind then
      M.over(id)
    end
  end
end

--- Shows the unanswered prompts again, the oldest first. Returns how many there are.
function M.again()
  active, queue = nil, {}
  for _, prompt in pairs(pending) do
    queue[#queue + 1] = prompt
  end
  table.sort(queue, function(a, b)
    return a.asked_at < b.asked_at
  end)
  vim.schedule(pump)
  return #queue
end

return M
