--- The editor's commands.

local arguments = require("toold.arguments")
local calls = require("toold.calls")
local client = require("toold.client")
local prompts = require("toold.prompts")
local show = require("toold.show")
local text = require("toold.text")
local toold = require("toold")

local M = {}

-- How long a completion waits for the daemon, in milliseconds.
local PATIENCE = 3000

local function complain(message)
  vim.notify("toold: " .. message, vim.log.levels.ERROR)
end

--- Connects and calls back; shows the error when that fails.
local function connected(callback)
  toold.connect(function(err)
    if err then
      return complain(err.message)
    end
    callback()
  end)
end

--- Whether the connection was made in time.
local function connect_now()
  local answered = false
  toold.connect(function()
    answered = true
  end)
  vim.wait(PATIENCE, function()
    return answered
  end, 5)
  return client.connected()
end

local function first_sentence(description)
  return text.line((description or ""):match("^(.-[.:])%s") or description or "")
end

--- Asks for one argument. `callback(value)`, nil when you dismiss the prompt.
local function ask_for(tool, key, callback)
  local schema = tool.input_schema
  local property = arguments.property(schema, key) or {}
  local values = arguments.values(property, schema)
  local about = text.line(property.description or "")
  if #values > 0 then
    return vim.ui.select(values, { prompt = ("%s %s: %s"):format(tool.name, key, about), kind = "toold_value" }, function(value)
      callback(value and arguments.value(schema, key, value))
    end)
  end
  local room = math.max(vim.o.columns - #tool.name - #key - 10, 10)
  local prompt = ("%s %s%s: "):format(tool.name, key, about ~= "" and " (" .. text.cut(about, room) .. ")" or "")
  local completion = key:find("path") and "file" or nil
  vim.ui.input({ prompt = prompt, completion = completion }, function(value)
    callback(value and arguments.value(schema, key, value))
  end)
end

--- Asks for each of these keys in turn. `callback(given)` when all are answered.
local function ask_all(tool, keys, given, callback)
  local key = keys[1]
  if not key then
    return callback(given)
  end
  ask_for(tool, key, function(value)
    if value == nil then
      return
    end
    given[key] = value
    ask_all(tool, vim.list_slice(keys, 2), given, callback)
  end)
end

local function missing(tool, given)
  return vim.tbl_filter(function(key)
    return given[key] == nil
  end, arguments.required(tool.input_schema))
end

local function run(name, given, mods)
  calls.execute(name, given, {}, function(err, result)
    show.result(name, err, result, mods)
  end)
end

--- `:Tool NAME key=value ...`
function M.tool(opts)
  local name, rest = opts.args:match("^(%S+)%s*(.*)$")
  connected(function()
    local tool = client.tool(name)
    if opts.bang then
      return tool and show.open(name, M.describe(tool), opts.mods, "markdown") or complain("there is no tool named " .. name)
    end
    local schema = tool and tool.input_schema or {}
    local given, message = arguments.read(schema, rest)
    if not given then
      return complain(name .. ": " .. message)
    end
    if not tool then
      -- The daemon suggests a similar name.
      return run(name, given, opts.mods)
    end
    ask_all(tool, missing(tool, given), given, function(all)
      run(name, all, opts.mods)
    end)
  end)
end

--- A tool and its arguments, as text.
function M.describe(tool)
  local lines = { "# " .. tool.name, "" }
  vim.list_extend(lines, text.lines(tool.description))
  local keys = arguments.keys(tool.input_schema)
  if #keys > 0 then
    vim.list_extend(lines, { "", "## Arguments", "" })
  end
  local required = arguments.required(tool.input_schema)
  for _, key in ipairs(keys) do
    local property = arguments.property(tool.input_schema, key) or {}
    local of = type(property.type) == "string" and " (" .. property.type .. ")" or ""
    local must = vim.tbl_contains(required, key) and ", required" or ""
    lines[#lines + 1] = ("- `%s`%s%s: %s"):format(key, of, must, text.line(property.description or ""))
    local values = arguments.values(property, tool.input_schema)
    if #values > 0 and property.type ~= "boolean" then
      lines[#lines + 1] = "  One of " .. table.concat(values, ", ") .. "."
    end
  end
  vim.list_extend(lines, { "", ("From %s %s."):format(tool.source.kind, tool.source.name) })
  return lines
end

--- Lets you set optional arguments, until you call the tool.
local function ask_more(tool, given, callback)
  local choices = { { label = "Call " .. tool.name } }
  for _, key in ipairs(arguments.keys(tool.input_schema)) do
    local has = given[key] ~= nil and " = " .. text.line(vim.json.encode(given[key])) or ""
    local about = first_sentence((arguments.property(tool.input_schema, key) or {}).description)
    choices[#choices + 1] = { key = key, label = ("Set %s%s  (%s)"):format(key, has, about) }
  end
  if #choices == 1 then
    return callback(given)
  end
  vim.ui.select(choices, {
    prompt = tool.name .. ":",
    kind = "toold_argument",
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    if not choice then
      return
    end
    if not choice.key then
      return callback(given)
    end
    ask_for(tool, choice.key, function(value)
      given[choice.key] = value
      vim.schedule(function()
        ask_more(tool, given, callback)
      end)
    end)
  end)
end

--- `:Tools [words]`
function M.tools(words)
  connected(function()
    local fitting = vim.tbl_filter(function(tool)
      local all = (tool.name .. " " .. tool.description):lower()
      return all:find((words or ""):lower(), 1, true) ~= nil
    end, client.tools)
    if #fitting == 0 then
      return complain("no tool matches " .. words)
    end
    vim.ui.select(fitting, {
      prompt = "Tool:",
      kind = "toold_tool",
      format_item = function(tool)
        return text.cut(("%-16s %s"):format(tool.name, first_sentence(tool.description)), vim.o.columns - 6)
      end,
    }, function(tool)
      if not tool then
        return
      end
      ask_all(tool, arguments.required(tool.input_schema), {}, function(given)
        ask_more(tool, given, function(all)
          run(tool.name, all)
        end)
      end)
    end)
  end)
end

--- `:ToolCommand NAME words ...`
function M.command(opts)
  local name, input = opts.args:match("^/?(%S+)%s*(.*)$")
  toold.ensure()
  calls.command(name, input, function(err, result)
    show.result("/" .. name, err, result, opts.mods)
  end)
end

--- `:ToolCancel [ID]`
function M.cancel(opts)
  if #calls.running == 0 then
    return vim.notify("toold: no call is running", vim.log.levels.INFO)
  end
  for i = #calls.running, 1, -1 do
    local call = calls.running[i]
    if opts.args == "" or opts.args == call.id then
      call.cancel()
      if not opts.bang then
        return
      end
    end
  end
end

--- `:ToolAsks`
function M.asks()
  if prompts.again() == 0 then
    vim.notify("toold: nothing to answer", vim.log.levels.INFO)
  end
end

--- `:ToolUndo [PATH]`, by default of the file of this buffer.
function M.undo(path)
  path = path == "" and vim.api.nvim_buf_get_name(0) or vim.fn.expand(path)
  if path == "" then
    return complain("this buffer has no file: name one, as in :ToolUndo notes.txt")
  end
  connected(function()
    require("toold.undo").ask(vim.fn.fnamemodify(path, ":p"))
  end)
end

M.LEVELS = { "read", "edit", "develop", "operate", "configured" }

--- `:ToolLevel [LEVEL]`, for the session of this editor.
function M.level(opts)
  local level = opts.args
  if level ~= "" and not vim.tbl_contains(M.LEVELS, level) then
    return complain("expected one of " .. table.concat(M.LEVELS, ", ") .. ", not " .. level)
  end
  connected(function()
    local params = { session_id = client.session.id }
    if level ~= "" and level ~= "configured" then
      params.level = level
    end
    client.request(level == "" and "permissions.level" or "permissions.set_level", params, function(err, now)
      if err then
        return complain(err.message)
      end
      local note = now.unconfined and now.level ~= "read" and "; commands cannot be confined here: " .. now.unconfined or ""
      vim.notify("toold: " .. text.line(("level %s (%s)%s"):format(now.level, now.from, note)), vim.log.levels.INFO)
    end)
  end)
end

local function starting_with(lead, names)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names)
end

--- What stands behind the command's own name, up to the cursor.
local function behind(command, line, cursor)
  return line:sub(1, cursor):match("^.-%f[%w]" .. command .. "!?%s+(.*)$") or ""
end

function M.complete_tool(lead, line, cursor)
  if not connect_now() then
    return {}
  end
  local name, rest = behind("Tool", line, cursor):match("^(%S+)%s+(.*)$")
  if not name then
    return starting_with(lead, vim.tbl_map(function(tool)
      return tool.name
    end, client.tools))
  end
  local tool = client.tool(name)
  return tool and arguments.complete(tool.input_schema, rest:sub(1, #rest - #lead), lead) or {}
end

function M.complete_command(lead, line, cursor)
  if behind("ToolCommand", line, cursor):find("%s") or not connect_now() then
    return {}
  end
  local names
  client.request("commands.list", {}, function(err, list)
    names = err and {} or vim.tbl_map(function(command)
      return command.name
    end, list.commands)
  end)
  vim.wait(PATIENCE, function()
    return names ~= nil
  end, 5)
  return starting_with(lead, names or {})
end

function M.complete_level(lead)
  return starting_with(lead, M.LEVELS)
end

function M.complete_call(lead)
  return starting_with(lead, vim.tbl_map(function(call)
    return call.id
  end, calls.running))
end

return M
