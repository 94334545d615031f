-- Recognises keys and tokens by their form. Only kinds with a fixed beginning: words that merely look random are not
-- reported, since a guard that cries wolf is switched off.
local kinds = {}

local function many(class, count)
  return string.rep(class, count) .. class .. "*"
end

-- `start` is searched first, as plain text, because most texts have none of them.
local KINDS = {
  { name = "an AWS access key", start = "AKIA", pattern = "AKIA" .. string.rep("[0-9A-Z]", 16) },
  { name = "a temporary AWS key", start = "ASIA", pattern = "ASIA" .. string.rep("[0-9A-Z]", 16) },
  { name = "a GitHub token", start = "gh", pattern = "gh[pousr]_" .. many("%w", 36) },
  { name = "a GitHub token", start = "github_pat_", pattern = "github_pat_" .. many("[%w_]", 30) },
  { name = "a GitLab token", start = "glpat-", pattern = "glpat%-" .. many("[%w_%-]", 20) },
  { name = "a Slack token", start = "xox", pattern = "xox[abeprs]%-" .. many("[%w%-]", 20) },
  { name = "a Stripe key", start = "k_live_", pattern = "[sr]k_live_" .. many("%w", 20) },
  { name = "a Google API key", start = "AIza", pattern = "AIza" .. string.rep("[%w_%-]", 35) },
  { name = "an Anthropic key", start = "sk-ant-", pattern = "sk%-ant%-" .. many("[%w_%-]", 30) },
  { name = "an OpenAI key", start = "sk-proj-", pattern = "sk%-proj%-" .. many("[%w_%-]", 30) },
  { name = "an npm token", start = "npm_", pattern = "npm_" .. many("%w", 36) },
  { name = "a PyPI token", start = "pypi-AgE", pattern = "pypi%-AgE" .. many("[%w_%-]", 40) },
  {
    name = "a private key", start = "PRIVATE KEY-----",
    -- With its content: a text about keys has only the first line. In JSON, newlines are written as \n.
    pattern = "%-%-%-%-%-BEGIN [A-Z ]*PRIVATE KEY%-%-%-%-%-[%s\\nr]*" .. many("[%w+/=]", 40),
  },
}

-- Documents and tests have keys that are none.
local function is_placeholder(text)
  local lower = text:lower()
  for _, word in ipairs { "example", "placeholder", "your", "xxxx", "0000", "1234567890" } do
    if lower:find(word, 1, true) then return true end
  end
  local distinct, count = {}, 0
  for c in text:sub(-16):gmatch(".") do
    if not distinct[c] then distinct[c], count = true, count + 1 end
  end
  return count < 6
end

-- All keys in a text, in its order: `{name, from, to}`.
---@param text string
---@param allowed string[] Texts that are no secrets.
function kinds.find(text, allowed)
  local found = {}
  for _, kind in ipairs(KINDS) do
    local at = text:find(kind.start, 1, true) and 1
    while at do
      local from, to = text:find(kind.pattern, at)
      if not from then break end
      local before, match = text:sub(from - 1, from - 1), text:sub(from, to)
      local is_word = from > 1 and before:match("[%w_]") ~= nil
      local is_allowed = is_word or is_placeholder(match)
      for _, part in ipairs(allowed) do
        is_allowed = is_allowed or match:find(part, 1, true) ~= nil
      end
      if not is_allowed then found[#found + 1] = { name = kind.name, from = from, to = to } end
      at = to + 1
    end
  end
  table.sort(found, function(a, b) return a.from < b.from end)
  return found
end

-- The text with each key replaced by its name.
function kinds.mask(text, allowed)
  local parts, at = {}, 1
  for _, key in ipairs(kinds.find(text, allowed)) do
    if key.from >= at then
      parts[#parts + 1] = text:sub(at, key.from - 1)
      parts[#parts + 1] = "[" .. key.name .. ", hidden by secrets_guard]"
      at = key.to + 1
    end
  end
  if at == 1 then return nil end
  return table.concat(parts) .. text:sub(at)
end

return kinds
