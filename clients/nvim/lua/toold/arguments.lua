--- Turns `key=value` on the command line into the types of the tool's schema, and completes them.
---
--- This only converts; the daemon validates. A value that does not convert stays a string, so that the daemon's message
--- shows it.

local M = {}

--- The JSON that begins at `at`, up to a blank outside of strings and brackets, and where the text goes on.
local function json_word(text, at)
  local from, depth, quoted = at, 0, false
  while at <= #text do
    local char = text:sub(at, at)
    if quoted then
      at = char == "\\" and at + 1 or at
      quoted = char ~= '"'
    elseif char == '"' then
      quoted = true
    elseif char == "[" or char == "{" then
      depth = depth + 1
    elseif char == "]" or char == "}" then
      depth = depth - 1
    elseif depth <= 0 and char:find("%s") then
      break
    end
    at = at + 1
  end
  return text:sub(from, at - 1), at
end

--- Splits at blanks outside of quotes. A backslash is literal, except before a blank, a quote or a backslash. The text
--- after `:=` is JSON, and is not changed. Returns nil and a message when a quote is not closed.
function M.split(text)
  local words, word, quote, at = {}, nil, nil, 1
  while at <= #text do
    local char = text:sub(at, at)
    local next_char = text:sub(at + 1, at + 1)
    if quote then
      if char == quote then
        quote = nil
      elseif char == "\\" and quote == '"' and next_char:find('["\\n]') then
        word = word .. (next_char == "n" and "\n" or next_char)
        at = at + 1
      else
        word = word .. char
      end
    elseif char:find("%s") then
      words[#words + 1] = word
      word = nil
    elseif char == ":" and next_char == "=" and word and not word:find("=", 1, true) then
      local json
      json, at = json_word(text, at + 2)
      word = word .. ":=" .. json
      at = at - 1
    elseif char == "'" or char == '"' then
      quote, word = char, word or ""
    elseif char == "\\" and next_char:find("[%s'\"\\]") then
      word = (word or "") .. next_char
      at = at + 1
    else
      word = (word or "") .. char
    end
    at = at + 1
  end
  if quote then
    return nil, "missing closing " .. quote
  end
  words[#words + 1] = word
  return words
end

local function resolve(schema, root)
  local name = type(schema) == "table" and schema["$ref"]
  name = name and (name:match("^#/%$defs/(.+)$") or name:match("^#/definitions/(.+)$"))
  local defs = root["$defs"] or root.definitions
  return name and defs and defs[name] or schema
end

--- The schema of a property, or nil.
function M.property(schema, key)
  local found = type(schema.properties) == "table" and schema.properties[key]
  return type(found) == "table" and resolve(found, schema) or nil
end

--- The alternatives that a schema allows, including itself.
local function alternatives(property, root)
  local all = { property }
  for _, word in ipairs({ "anyOf", "oneOf" }) do
    for _, each in ipairs(property[word] or {}) do
      all[#all + 1] = resolve(each, root)
    end
  end
  return all
end

local function types_of(property, root)
  local types = {}
  for _, each in ipairs(alternatives(property, root)) do
    local of = type(each.type) == "table" and each.type or { each.type }
    for _, name in ipairs(of) do
      types[name] = true
    end
    for _, value in ipairs(each.enum or {}) do
      types[type(value)] = true
    end
  end
  return types
end

--- The values that a property can have, as strings, if they are enumerable.
function M.values(property, root)
  local values = {}
  for _, each in ipairs(alternatives(property, root)) do
    for _, value in ipairs(each.enum or { each.const }) do
      if value ~= vim.NIL and type(value) ~= "table" then
        values[#values + 1] = tostring(value)
      end
    end
    if each.type == "boolean" then
      vim.list_extend(values, { "true", "false" })
    end
  end
  return values
end

--- Converts a string to the property's type. `schema` is the tool's.
function M.value(schema, key, text)
  local property = M.property(schema, key)
  local types = property and types_of(property, schema) or {}
  if types.string then
    return text
  end
  if types.boolean and (text == "true" or text == "false") then
    return text == "true"
  end
  if (types.integer or types.number) and text:find("^[-+]?%.?%d") and tonumber(text) then
    return tonumber(text)
  end
  if types.array or types.object or types.null or not next(types) then
    local ok, value = pcall(vim.json.decode, text)
    if ok then
      return value
    end
    if types.array and not text:find("^%s*%[") then
      return { text }
    end
  end
  return text
end

--- Parses the text after the tool's name: JSON, or `key=value` and `key:=JSON` words. A repeated key is a list. Returns
--- nil and a message when it cannot be parsed.
function M.read(schema, text)
  if text:find("^%s*{") then
    local ok, value = pcall(vim.json.decode, text)
    if not ok then
      return nil, "invalid JSON: " .. tostring(value)
    end
    return value
  end
  local words, message = M.split(text)
  if not words then
    return nil, message
  end
  local arguments, times = {}, {}
  for _, word in ipairs(words) do
    local key, colon, value = word:match("^([^=:]+)(:?)=(.*)$")
    if not key then
      return nil, ("expected key=value or JSON, got %q"):format(word)
    end
    if colon == ":" then
      local ok, decoded = pcall(vim.json.decode, value)
      if not ok then
        return nil, ("%s: invalid JSON: %s"):format(key, tostring(decoded))
      end
      value = decoded
    else
      value = M.value(schema, key, value)
    end
    times[key] = (times[key] or 0) + 1
    if times[key] == 1 then
      arguments[key] = value
    else
      -- Strings that became lists of one element are joined.
      local list = times[key] == 2 and (type(arguments[key]) == "table" and arguments[key] or { arguments[key] })
        or arguments[key]
      vim.list_extend(list, type(value) == "table" and value or { value })
      arguments[key] = list
    end
  end
  return arguments
end

--- The names of the properties: the required ones first, then the others by name.
function M.keys(schema)
  local required = M.required(schema)
  local keys = vim.deepcopy(required)
  local others = {}
  for key in pairs(type(schema.properties) == "table" and schema.properties or {}) do
    if not vim.tbl_contains(required, key) then
      others[#others + 1] = key
    end
  end
  table.sort(others)
  return vim.list_extend(keys, others)
end

function M.required(schema)
  return type(schema.required) == "table" and schema.required or {}
end

--- The completions of `lead` after `before` (the words between the tool's name and the cursor).
function M.complete(schema, before, lead)
  local key, part = lead:match("^([^=:]+)=(.*)$")
  if key then
    local property = M.property(schema, key)
    local values = property and M.values(property, schema) or {}
    if #values == 0 and (key:find("path") or key:find("file") or key == "cwd" or key == "folder") then
      values = vim.fn.getcompletion(part, "file")
    end
    local fitting = {}
    for _, value in ipairs(values) do
      if vim.startswith(value, part) then
        fitting[#fitting + 1] = key .. "=" .. value
      end
    end
    return fitting
  end
  local given = {}
  for _, word in ipairs(vim.split(before, "%s+")) do
    local name = word:match("^([^=:]+):?=")
    if name then
      given[name] = true
    end
  end
  local fitting = {}
  for _, name in ipairs(M.keys(schema)) do
    if not given[name] and vim.startswith(name, lead) then
      fitting[#fitting + 1] = name .. "="
    end
  end
  return fitting
end

return M
