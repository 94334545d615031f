--- The tools that this editor provides while it is connected.

local client = require("toold.client")
local config = require("toold.config")
local tools = require("toold.provide.tools")

local M = {}

local subscription

local function provided_tools()
  local lend = config.options.lend
  if lend == false then
    return {}
  end
  return vim.tbl_filter(function(tool)
    return lend == true or vim.tbl_contains(lend, tool.name)
  end, tools)
end

local function run(invocation)
  for _, tool in ipairs(tools) do
    if tool.name == invocation.name then
      local ok, result = pcall(tool.run, invocation.arguments or {}, invocation)
      if not ok then
        return { error = tostring(result) }
      end
      return { result = result }
    end
  end
  return { error = "this editor does not provide " .. invocation.name }
end

local function invoked(item)
  -- Every call ends before the next message is read, so there is nothing to cancel.
  if item.cancelled then
    return
  end
  local answer = run(item)
  answer.invocation_id = item.invocation_id
  client.request("tools.provide_result", answer)
end

function M.on_connect()
  local provided = {}
  for _, tool in ipairs(provided_tools()) do
    provided[#provided + 1] = {
      name = tool.name,
      label = tool.label,
      description = tool.description,
      input_schema = tool.input_schema,
      parallelizable = true,
      annotations = { read_only = tool.read_only, idempotent = true, destructive = false, open_world = false },
    }
  end
  if #provided == 0 then
    return
  end
  client.request("tools.provide", { tools = provided }, function(err, id)
    if err and err.kind ~= "disconnected" then
      vim.notify("toold: the daemon refused the editor's tools: " .. err.message, vim.log.levels.WARN)
    end
    subscription = id
  end, invoked)
end

function M.on_disconnect()
  subscription = nil
end

--- Provides the tools again in the new session: a tool belongs to the session that it was provided in.
function M.move()
  if subscription then
    client.unsubscribe("tools.unprovide", subscription)
  end
  M.on_connect()
end

return M
