-- Keeps keys and tokens where they belong. Before a call, a key in its arguments refuses it; after a call, keys in its
-- result are replaced, so that no model sees them. `find_secrets` looks for those that are in files already.
--
--   [plugins.secrets_guard]
--   allow = ["sk_live_of_the_sandbox"]   # texts that are no secrets
--   mask = false                         # leaves results as they are

local kinds = require("kinds")

local function allowed()
  return type(hygge.config.allow) == "table" and hygge.config.allow or {}
end

-- The first key in the arguments: its kind and the argument. Text that is replaced may have one: that is how it is
-- taken out.
local function first_key(value, argument)
  if type(value) == "string" then
    local key = kinds.find(value, allowed())[1]
    return key and key.name, argument
  end
  if type(value) ~= "table" then return end
  for name, inner in pairs(value) do
    if name ~= "old" then
      local kind, at = first_key(inner, type(name) == "string" and name or argument)
      if kind then return kind, at end
    end
  end
end

hygge.register_hook("pre_tool", { name = "refuse_secrets", timeout = "2s", priority = -100, fail = "closed" }, function(event)
  local input = event.tool_input
  if event.tool_name == "apply_patch" and type(input.input) == "string" then
    -- Lines that a patch removes.
    input = { input = (("\n" .. input.input):gsub("\n%-[^\n]*", "")) }
  end
  local kind, argument = first_key(input, "the arguments")
  if not kind then return end
  return {
    decision = "deny",
    reason = string.format("%q has %s in it. Keep it in an environment variable or a secret store, and write its name. "
      .. "If it is no secret, ask the user to add a part of it to `allow` below [plugins.secrets_guard] in the daemon's "
      .. "configuration.", argument, kind),
  }
end)

hygge.register_hook("post_tool", { name = "hide_secrets", timeout = "5s", priority = 100 }, function(event)
  if hygge.config.mask == false then return end
  local result, is_changed = event.tool_result, false
  for _, block in ipairs(result.content) do
    local masked = block.text and kinds.mask(block.text, allowed())
    if masked then block.text, is_changed = masked, true end
  end
  if is_changed then return { decision = "modify", modified_tool_result = result } end
end)

hygge.register_tool {
  name = "find_secrets",
  label = "Find secrets",
  description = "Looks for keys and tokens (AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI, Anthropic, npm, PyPI, private "
    .. "keys) in the files below the working folder, and shows file, line and kind, not the keys. Call it before a commit.",
  parallelizable = true,
  timeout = "60s",
  annotations = { read_only = true, idempotent = true },
  input_schema = {
    type = "object",
    properties = {
      glob = { type = "string", minLength = 1, description = "Which files, such as src/**; all that are not ignored when absent." },
    },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local files = hygge.fs.glob(input.glob or "**")
    local lines, found, skipped = {}, 0, 0
    for i, file in ipairs(files) do
      if i % 200 == 1 then ctx.progress { progress = i - 1, total = #files, message = "reading" } end
      local ok, text = pcall(hygge.fs.read, file)
      if not ok or text:sub(1, 4096):find("\0", 1, true) then
        skipped = skipped + 1
      else
        for _, key in ipairs(kinds.find(text, allowed())) do
          found = found + 1
          if found <= 200 then
            local _, newlines = text:sub(1, key.from):gsub("\n", "")
            lines[#lines + 1] = string.format("%s:%d: %s", file, newlines + 1, key.name)
          end
        end
      end
    end
    if found > 200 then lines[#lines + 1] = string.format("[%d more]", found - 200) end
    if found == 0 then lines[1] = "no secrets in the files that were read: " .. #files - skipped end
    if skipped > 0 then lines[#lines + 1] = string.format("[not read, or binary: %d]", skipped) end
    return { content = table.concat(lines, "\n"), metadata = { found = found, files = #files, skipped = skipped } }
  end,
}
