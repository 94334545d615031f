--- What waits for the person at this editor: one prompt at a time, and none in the midst of typing.

local M = {}

-- Milliseconds between two looks whether the editor is in normal mode.
local LOOK_EVERY = 100

-- By id: `{id, kind, asked_at, headline, show(done), close()}`, whether or not it is in the queue.
local pending = {}
local queue = {}
local active
local due = false

--- How many wait for an answer.
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

--- Says once that something is asked, since the person may not leave insert or terminal mode for long.
local function tell(prompt)
  if not prompt.told then
    prompt.told = true
    vim.notify("toold: " .. prompt.headline .. " (shown in normal mode)", vim.log.levels.WARN)
  end
end

pump = function()
  if active or #queue == 0 then
    return
  end
  local mode = vim.api.nvim_get_mode()
  -- Else the keys of a sentence would answer.
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
    -- Nothing is answered by a prompt that cannot be shown.
    active = nil
    prompt.close()
    vim.notify("toold: " .. err, vim.log.levels.ERROR)
  end
end

--- Puts a prompt into the queue. `show(done)` must call `done` when the person has answered or looked away.
function M.add(prompt)
  if pending[prompt.id] then
    return
  end
  pending[prompt.id] = prompt
  queue[#queue + 1] = prompt
  require("toold.status").changed()
  -- Not within the reading of the message that brought it: a prompt may block.
  vim.schedule(pump)
end

--- No answer is needed any more; tells whether one was.
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

function M.is_pending(id)
  return pending[id] ~= nil
end

--- All prompts of this kind go: the connection that brought them is gone.
function M.clear(kind)
  for _, id in ipairs(vim.tbl_keys(pending)) do
    if pending[id].kind == kind then
      M.over(id)
    end
  end
end

--- Shows again what was left open, the oldest first. Tells how many there are.
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
