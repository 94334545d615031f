--- Tools that this editor lends to the registry, for as long as it is connected.

local client = require("toold.client")
local config = require("toold.config")
local tools = require("toold.provide.tools")

local M = {}

local subscription

local function lendable()
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
  return { error = "this editor does not lend " .. invocation.name }
end

local function invoked(item)
  -- All of them end before the next message is read, so that there is nothing to cancel.
  if item.cancelled then
    return
  end
  local answer = run(item)
  answer.invocation_id = item.invocation_id
  client.request("tools.provide_result", answer)
end

function M.stand()
  local lent = {}
  for _, tool in ipairs(lendable()) do
    lent[#lent + 1] = {
      name = tool.name,
      label = tool.label,
      description = tool.description,
      input_schema = tool.input_schema,
      parallelizable = true,
      annotations = { read_only = tool.read_only, idempotent = true, destructive = false, open_world = false },
    }
  end
  if #lent == 0 then
    return
  end
  client.request("tools.provide", { tools = lent }, function(err, id)
    if err then
      vim.notify("toold: the daemon does not take the editor's tools: " .. err.message, vim.log.levels.WARN)
    else
      subscription = id
    end
  end, invoked)
end

function M.fall()
  subscription = nil
end

--- Lends all anew: tools belong to the session that they were lent in.
function M.move()
  if subscription then
    client.unsubscribe("tools.unprovide", subscription)
  end
  M.stand()
end

return M
