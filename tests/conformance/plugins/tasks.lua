-- What the official conformance suite calls to see the tasks extension.

local function tool(name, description, properties, task, execute)
  hygge.register_tool({
    name = name,
    description = description,
    permission = false,
    parallelizable = true,
    input_schema = { type = "object", properties = properties },
    annotations = { task = task },
    execute = execute,
  })
end

local function confirm(ctx, key, message)
  local schema = { type = "object", properties = { confirm = { type = "boolean" } }, required = { "confirm" } }
  return ctx.elicit({ key = key, message = message, schema = schema })
end

tool("greet", "Says hello", { name = { type = "string" } }, nil, function(_, input)
  return "Hello, " .. input.name .. "!"
end)

tool(
  "slow_compute",
  "Takes its time",
  { seconds = { type = "number" }, label = { type = "string" } },
  "optional",
  function(ctx, input)
    ctx.progress((input.label or "it") .. " takes " .. input.seconds .. " s")
    hygge.sleep(input.seconds * 1000)
    return "Done: " .. (input.label or "no label")
  end
)

tool("failing_job", "Fails after a while", nil, "required", function()
  hygge.sleep("1s")
  error("This job fails.", 0)
end)

-- What a call wants of its client and the client does not offer is an error of the protocol.
tool("protocol_error_job", "Wants to know folders that the client does not tell", nil, "required", function(ctx)
  return ctx.roots()
end)

tool("confirm_delete", "Asks before it deletes", { filename = { type = "string" } }, "required", function(ctx, input)
  local answer = confirm(ctx, "delete", "Delete " .. input.filename .. "?")
  return answer.action == "accept" and "Deleted." or "Kept."
end)

tool("multi_input", "Asks two things at once", nil, "required", function(ctx)
  local answers = hygge.all({
    function()
      return confirm(ctx, "first", "The first?")
    end,
    function()
      return confirm(ctx, "second", "The second?")
    end,
  })
  return answers[1].action .. ", " .. answers[2].action
end)

-- Asks while it is a request, and becomes a task when it has its answer.
tool("test_tool_with_task", "Asks for a name and takes its time", nil, "optional", function(ctx)
  local answer = ctx.elicit({
    key = "user_name",
    message = "What is your name?",
    schema = { type = "object", properties = { name = { type = "string" } }, required = { "name" } },
  })
  hygge.sleep("1s")
  return "Done for " .. (answer.content and answer.content.name or "nobody")
end)
