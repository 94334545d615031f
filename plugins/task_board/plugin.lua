-- A list of tasks for each folder that sessions work in. Agents that work in the same folder see the same list, and
-- claiming a task is one step in the store, so that no two agents take the same one.

local MAX_TASKS = 200
local KEPT_DONE = 30

local STATES = { open = "[ ]", claimed = "[~]", done = "[x]" }

local function board_key(cwd)
  return "board:" .. cwd:sub(-240)
end

local function ago(seconds)
  if seconds < 60 then return "just now" end
  if seconds < 3600 then return string.format("%d min ago", seconds / 60) end
  if seconds < 86400 then return string.format("%d h ago", seconds / 3600) end
  return string.format("%d days ago", seconds / 86400)
end

local function shown(task)
  local line = string.format("%s %d. %s", STATES[task.state], task.id, task.text)
  if #task.tags > 0 then line = line .. " (" .. table.concat(task.tags, ", ") .. ")" end
  if task.state ~= "open" then
    line = line .. string.format(" - %s %s, %s", task.state, task.who or "?", ago(hygge.now() - task.at))
  end
  if task.note then line = line .. "\n       " .. task.note end
  return line
end

---@param board table?
---@param state? string nil for those that are not done
local function list(board, state)
  local lines = {}
  for _, task in ipairs(board and board.tasks or {}) do
    local fits = state == "all" or task.state == state or (not state and task.state ~= "done")
    if fits then lines[#lines + 1] = shown(task) end
  end
  return lines
end

-- Changes the board in one step. `change` gets the board and returns a message, and true if the message is an error; it
-- may be called again when another agent was faster.
local function with_board(ctx, change)
  local message, is_error
  hygge.store.update(board_key(ctx.session.cwd), function(old)
    local board = old or { next = 1, tasks = hygge.json.array {} }
    message, is_error = change(board)
    return board
  end)
  return { content = message, is_error = is_error or false }
end

local function find(board, id)
  for place, task in ipairs(board.tasks) do
    if task.id == id then return task, place end
  end
end

local function no_task(id)
  return string.format("there is no task %d on the board of this folder: board_list shows those that there are", id), true
end

-- The oldest that are done make room.
local function forget_done(board)
  local done = 0
  for place = #board.tasks, 1, -1 do
    if board.tasks[place].state == "done" then
      done = done + 1
      if done > KEPT_DONE then table.remove(board.tasks, place) end
    end
  end
end

local id = { type = "integer", minimum = 1, description = "The number of the task on the board." }
local who = {
  type = "string", minLength = 1, maxLength = 60,
  description = "A name for yourself that the other agents and people recognise, such as `claude in the api window`.",
}

hygge.register_tool {
  name = "board_add",
  label = "Add a task",
  description = "Adds a task to the board that all agents working in this folder share. Use it for work that you found and "
    .. "will not do now, or to split work between agents. Returns its number.",
  input_schema = {
    type = "object",
    properties = {
      text = { type = "string", minLength = 1, maxLength = 300, description = "What is to be done, in one line." },
      note = { type = "string", maxLength = 2000, description = "What somebody needs to know to do it: files, errors, decisions." },
      tags = { type = "array", maxItems = 5, items = { type = "string", maxLength = 30 }, description = "Words to group tasks by." },
    },
    required = { "text" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    return with_board(ctx, function(board)
      forget_done(board)
      if #board.tasks >= MAX_TASKS then
        return string.format("the board is full: it has %d tasks; finish some with board_finish", MAX_TASKS), true
      end
      local text = input.text:gsub("%s+", " ")
      for _, task in ipairs(board.tasks) do
        if task.text == text and task.state ~= "done" then
          return string.format("that is task %d already: %s", task.id, shown(task)), false
        end
      end
      local task = {
        id = board.next, text = text, note = input.note, tags = hygge.json.array(input.tags or {}),
        state = "open", at = hygge.now(),
      }
      board.next = board.next + 1
      table.insert(board.tasks, task)
      return "added: " .. shown(task)
    end)
  end,
}

hygge.register_tool {
  name = "board_list",
  label = "Show the board",
  description = "Shows the tasks of this folder that are not done: open ones, and those that an agent has claimed, with its name.",
  annotations = { read_only = true },
  parallelizable = true,
  input_schema = {
    type = "object",
    properties = {
      state = { type = "string", enum = { "open", "claimed", "done", "all" }, description = "Open and claimed ones when absent." },
    },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local lines = list(hygge.store.get(board_key(ctx.session.cwd)), input.state)
    if #lines == 0 then return "no tasks" .. (input.state and input.state ~= "all" and " are " .. input.state or "") end
    return { content = table.concat(lines, "\n"), metadata = { tasks = #lines } }
  end,
}

hygge.register_tool {
  name = "board_claim",
  label = "Claim a task",
  description = "Takes a task for yourself, so that no other agent does it too: the task with this number, or the oldest open one. "
    .. "Call it before you begin. It fails if another agent has the task.",
  input_schema = {
    type = "object",
    properties = { id = id, who = who },
    required = { "who" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    return with_board(ctx, function(board)
      local task
      if input.id then
        task = find(board, input.id)
        if not task then return no_task(input.id) end
      else
        for _, other in ipairs(board.tasks) do
          task = task or (other.state == "open" and other) or nil
        end
        if not task then return "no task is open", true end
      end
      if task.state == "done" then
        return string.format("task %d is done: reopen it with board_finish and reopen = true", task.id), true
      end
      if task.state == "claimed" and task.who ~= input.who then
        return string.format("%s has claimed task %d %s: take another one, or ask the user whether it was given up",
          task.who, task.id, ago(hygge.now() - task.at)), true
      end
      task.state, task.who, task.at = "claimed", input.who, hygge.now()
      return "yours: " .. shown(task)
    end)
  end,
}

hygge.register_tool {
  name = "board_finish",
  label = "Finish a task",
  description = "Marks a task as done, with a note on the outcome; with `reopen`, gives it back to the other agents.",
  input_schema = {
    type = "object",
    properties = {
      id = id,
      who = who,
      note = { type = "string", maxLength = 2000, description = "The outcome, or why it was given back." },
      reopen = { type = "boolean", description = "It is not done, and somebody else may take it." },
    },
    required = { "id", "who" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    return with_board(ctx, function(board)
      local task = find(board, input.id)
      if not task then return no_task(input.id) end
      task.note, task.at = input.note or task.note, hygge.now()
      if input.reopen then
        task.state, task.who = "open", nil
      else
        task.state, task.who = "done", input.who
      end
      return shown(task)
    end)
  end,
}

hygge.register_command {
  name = "board",
  description = "Shows the tasks of this folder; `/board Fix the login` adds one.",
  execute = function(ctx, input)
    local text = input:match("^%s*(.-)%s*$") or ""
    if text ~= "" then return hygge.call_tool("board_add", { text = text:sub(1, 300) }).content end
    return hygge.call_tool("board_list", {}).content
  end,
}

hygge.register_resource {
  uri = "board://tasks",
  name = "tasks",
  title = "Tasks of this folder",
  description = "The tasks that all agents in this folder share.",
  mime_type = "text/plain",
  read = function(ctx)
    local lines = list(hygge.store.get(board_key(ctx.session.cwd)), "all")
    return #lines > 0 and table.concat(lines, "\n") or "no tasks"
  end,
}
