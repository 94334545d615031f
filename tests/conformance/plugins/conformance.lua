-- What the official conformance suite calls by name. Each fixture is written as any plugin would write it.

local PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
local WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

local function text_of(value)
  return type(value) == "string" and value or hygge.json.encode(value)
end

local function tool(name, description, execute, more)
  local spec = { name = name, description = description, permission = false, parallelizable = true, execute = execute }
  for key, value in pairs(more or {}) do
    spec[key] = value
  end
  hygge.register_tool(spec)
end

local function texts(...)
  local properties, required = {}, {}
  for _, name in ipairs({ ... }) do
    properties[name] = { type = "string" }
    table.insert(required, name)
  end
  return { type = "object", properties = properties, required = required }
end

-- Content

tool("test_simple_text", "Gives a text", function()
  return "This is a simple text response for testing."
end)

tool("test_image_content", "Gives an image", function()
  return { content = { { type = "image", data = PNG, mime_type = "image/png" } } }
end)

tool("test_audio_content", "Gives a sound", function()
  return { content = { { type = "audio", data = WAV, mime_type = "audio/wav" } } }
end)

tool("test_embedded_resource", "Gives a resource", function()
  return {
    content = {
      {
        type = "resource",
        uri = "test://embedded-resource",
        mime_type = "text/plain",
        text = "This is an embedded resource content.",
      },
    },
  }
end)

tool("test_multiple_content_types", "Gives a text, an image and a resource", function()
  return {
    content = {
      "Multiple content types test:",
      { type = "image", data = PNG, mime_type = "image/png" },
      {
        type = "resource",
        uri = "test://mixed-content-resource",
        mime_type = "application/json",
        text = '{"test":"data","value":123}',
      },
    },
  }
end)

tool("test_error_handling", "Fails", function()
  error("This tool intentionally returns an error for testing", 0)
end)

-- Progress of a running call

tool("test_tool_with_logging", "Logs three times", function()
  hygge.log("info", "Tool execution started")
  hygge.sleep("50ms")
  hygge.log("info", "Tool processing data")
  hygge.sleep("50ms")
  hygge.log("info", "Tool execution completed")
  return "Three messages were logged."
end)

tool("test_logging_tool", "Logs", function()
  hygge.log("info", "test_logging_tool was called")
  return "A message was logged."
end)

tool("test_tool_with_progress", "Tells its progress", function(ctx)
  for _, done in ipairs({ 0, 50, 100 }) do
    ctx.progress({ progress = done, total = 100, message = "Completed step " .. done .. " of 100" })
    hygge.sleep("50ms")
  end
  return "Progress was reported."
end)

tool("test_reconnection", "Takes a while", function()
  hygge.sleep("500ms")
  return "Reconnection test completed."
end)

-- What a call asks its client

tool("test_sampling", "Asks the client's model", function(ctx, input)
  local answer = ctx.sample({ prompt = input.prompt, max_tokens = 100 })
  return "LLM response: " .. answer.content
end, { input_schema = texts("prompt") })

tool("test_missing_capability", "Needs a client with a model", function(ctx)
  return ctx.sample("Say hello").content
end)

local function form(key, message, properties, required)
  return { key = key, message = message, schema = { type = "object", properties = properties, required = required } }
end

local function outcome(answer)
  return "action=" .. answer.action .. ", content=" .. hygge.json.encode(answer.content or {})
end

tool("test_elicitation", "Has a form filled in", function(ctx, input)
  local answer = ctx.elicit(form("user", input.message, {
    username = { type = "string", description = "User's response" },
    email = { type = "string", description = "User's email address" },
  }, { "username", "email" }))
  return "User response: " .. outcome(answer)
end, { input_schema = texts("message") })

tool("test_streaming_elicitation", "Has a form filled in", function(ctx)
  return outcome(ctx.elicit(form("name", "What is your name?", { name = { type = "string" } }, { "name" })))
end)

tool("test_elicitation_sep1034_defaults", "Has a form with defaults filled in", function(ctx)
  local answer = ctx.elicit(form("defaults", "Please review and update the form fields with defaults", {
    name = { type = "string", description = "User name", default = "John Doe" },
    age = { type = "integer", description = "User age", default = 30 },
    score = { type = "number", description = "User score", default = 95.5 },
    status = { type = "string", description = "User status", enum = { "active", "inactive", "pending" }, default = "active" },
    verified = { type = "boolean", description = "Verification status", default = true },
  }))
  return "Elicitation completed: " .. outcome(answer)
end)

tool("test_elicitation_sep1330_enums", "Has a form with choices filled in", function(ctx)
  local answer = ctx.elicit(form("enums", "Please select options from the enum fields", {
    untitledSingle = { type = "string", description = "Select one option", enum = { "option1", "option2", "option3" } },
    titledSingle = {
      type = "string",
      description = "Select one option with titles",
      oneOf = {
        { const = "value1", title = "First Option" },
        { const = "value2", title = "Second Option" },
        { const = "value3", title = "Third Option" },
      },
    },
    legacyEnum = {
      type = "string",
      description = "Select one option",
      enum = { "opt1", "opt2", "opt3" },
      enumNames = { "Option One", "Option Two", "Option Three" },
    },
    untitledMulti = {
      type = "array",
      description = "Select options",
      minItems = 1,
      maxItems = 3,
      items = { type = "string", enum = { "option1", "option2", "option3" } },
    },
    titledMulti = {
      type = "array",
      description = "Select options with titles",
      minItems = 1,
      maxItems = 3,
      items = {
        anyOf = {
          { const = "value1", title = "First Choice" },
          { const = "value2", title = "Second Choice" },
          { const = "value3", title = "Third Choice" },
        },
      },
    },
  }))
  return "Elicitation completed: " .. outcome(answer)
end)

-- Answers in a later request

local function ask_name(ctx)
  return ctx.elicit(form("user_name", "What is your name?", { name = { type = "string" } }, { "name" }))
end

local function ask_ok(ctx)
  return ctx.elicit(form("confirm", "Please confirm", { ok = { type = "boolean" } }, { "ok" }))
end

tool("test_input_required_result_elicitation", "Asks for a name", function(ctx)
  local answer = ask_name(ctx)
  return "Hello, " .. (answer.content and answer.content.name or "nobody") .. "!"
end)

tool("test_input_required_result_sampling", "Asks a model", function(ctx)
  return ctx.sample({ prompt = "What is the capital of France?", max_tokens = 100 }).content
end)

tool("test_input_required_result_list_roots", "Asks for the client's folders", function(ctx)
  local names = {}
  for _, root in ipairs(ctx.roots()) do
    table.insert(names, (root.name or "unnamed") .. " at " .. root.uri)
  end
  return "Roots: " .. table.concat(names, ", ")
end)

tool("test_input_required_result_request_state", "Asks for a confirmation", function(ctx)
  return "state-ok: " .. outcome(ask_ok(ctx))
end)

tool("test_input_required_result_tampered_state", "Asks for a confirmation", function(ctx)
  return "state-ok: " .. outcome(ask_ok(ctx))
end)

tool("test_input_required_result_multiple_inputs", "Asks for three things at once", function(ctx)
  local answers = hygge.all({
    function()
      return ask_name(ctx)
    end,
    function()
      return ctx.sample({ prompt = "Generate a greeting", max_tokens = 50 })
    end,
    function()
      return ctx.roots()
    end,
  })
  return text_of(answers)
end)

tool("test_input_required_result_multi_round", "Asks for a name, then for a colour", function(ctx)
  local name = ctx.elicit(form("step1", "Step 1: What is your name?", { name = { type = "string" } }, { "name" }))
  local color =
    ctx.elicit(form("step2", "Step 2: What is your favorite color?", { color = { type = "string" } }, { "color" }))
  return outcome(name) .. "; " .. outcome(color)
end)

tool("test_input_required_result_capabilities", "Asks what the client can be asked", function(ctx)
  local asked, name = pcall(ask_name, ctx)
  local sampled, said = pcall(ctx.sample, "Say hello")
  return text_of({ form = asked and outcome(name) or "not offered", model = sampled and said.content or "not offered" })
end)

-- Lists that change: the runner of the suite saves another plugin when these are called

tool("test_trigger_tool_change", "Is called when the tools are about to change", function()
  return "The list of tools is about to change."
end)

tool("test_trigger_prompt_change", "Is called when the prompts are about to change", function()
  return "The list of prompts is about to change."
end)

-- Schemas and headers

tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", function(_, input)
  return text_of(input)
end, {
  input_schema = {
    ["$schema"] = "https://json-schema.org/draft/2020-12/schema",
    type = "object",
    ["$defs"] = {
      address = {
        ["$anchor"] = "addressDef",
        type = "object",
        properties = { street = { type = "string" }, city = { type = "string" } },
      },
    },
    properties = {
      name = { type = "string" },
      address = { ["$ref"] = "#/$defs/address" },
      contactMethod = { type = "string", enum = { "phone", "email" } },
      phone = { type = "string" },
      email = { type = "string" },
    },
    allOf = { { anyOf = { { required = { "phone" } }, { required = { "email" } } } } },
    ["if"] = { properties = { contactMethod = { const = "phone" } }, required = { "contactMethod" } },
    ["then"] = { required = { "phone" } },
    ["else"] = { required = { "email" } },
    additionalProperties = false,
  },
})

tool("test_x_mcp_header", "Has an argument that a header repeats", function(_, input)
  return text_of(input)
end, {
  input_schema = {
    type = "object",
    properties = { region = { type = "string", ["x-mcp-header"] = "Region" }, query = { type = "string" } },
    required = { "region" },
  },
})

-- Resources

hygge.register_resource({
  uri = "test://static-text",
  name = "static_text",
  title = "Static text",
  description = "A static text resource for testing",
  mime_type = "text/plain",
  read = function()
    return "This is the content of the static text resource."
  end,
})

hygge.register_resource({
  uri = "test://static-binary",
  name = "static_binary",
  description = "A static binary resource for testing",
  mime_type = "image/png",
  read = function()
    return { blob = PNG }
  end,
})

hygge.register_resource({
  uri = "test://watched-resource",
  name = "watched_resource",
  description = "A resource to watch",
  mime_type = "text/plain",
  read = function()
    return "Watched resource content."
  end,
})

hygge.register_resource({
  uri_template = "test://template/{id}/data",
  name = "template",
  description = "A resource template with a parameter",
  mime_type = "application/json",
  read = function(_, _, variables)
    return hygge.json.encode({
      id = variables.id,
      templateTest = true,
      data = "Data for ID: " .. variables.id,
    })
  end,
})

-- Prompts

hygge.register_prompt({
  name = "test_simple_prompt",
  description = "A simple prompt without arguments",
  render = function()
    return "This is a simple prompt for testing."
  end,
})

hygge.register_prompt({
  name = "test_prompt_with_arguments",
  description = "A prompt with two arguments",
  arguments = {
    { name = "arg1", description = "First test argument", required = true },
    { name = "arg2", description = "Second test argument", required = true },
  },
  complete = { arg1 = { "paris", "park", "party" } },
  render = function(_, arguments)
    return ("Prompt with arguments: arg1='%s', arg2='%s'"):format(arguments.arg1, arguments.arg2)
  end,
})

hygge.register_prompt({
  name = "test_prompt_with_embedded_resource",
  description = "A prompt with an embedded resource",
  arguments = { { name = "resourceUri", description = "URI of the resource to embed", required = true } },
  render = function(_, arguments)
    return {
      {
        role = "user",
        content = {
          type = "resource",
          uri = arguments.resourceUri,
          mime_type = "text/plain",
          text = "Embedded resource content for testing.",
        },
      },
      { role = "user", content = "Please process the embedded resource above." },
    }
  end,
})

hygge.register_prompt({
  name = "test_prompt_with_image",
  description = "A prompt with an image",
  render = function()
    return {
      { role = "user", content = { type = "image", data = PNG, mime_type = "image/png" } },
      { role = "user", content = "Please analyze the image above." },
    }
  end,
})

hygge.register_prompt({
  name = "test_input_required_result_prompt",
  description = "A prompt that asks for its context",
  render = function(ctx)
    local answer = ctx.elicit(
      form("user_context", "What context should the prompt use?", { context = { type = "string" } }, { "context" })
    )
    return "Use this context: " .. (answer.content and answer.content.context or "none")
  end,
})
