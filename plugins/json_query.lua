-- Answers questions about JSON files without showing a model the whole of them.
--
-- A query is a path: `.users[].name`, `.a["odd key"][0]`, `[-1]`, `..version` (at any depth),
-- `.users[?age>30].name`, and at its end `| keys`, `| length`, `| type` or `| unique`.

local null = hygge.json.null

local function kind(value)
  if value == null then return "null" end
  if type(value) ~= "table" then return type(value) end
  if getmetatable(value) == "array" or #value > 0 then return "array" end
  return "object"
end

local function sorted_keys(object)
  local keys = {}
  for key in pairs(object) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function literal(text)
  local quoted = text:match('^"(.*)"$') or text:match("^'(.*)'$")
  if quoted then return quoted end
  if text == "true" then return true end
  if text == "false" then return false end
  if text == "null" then return null end
  return tonumber(text) or text
end

-- The query as a list of steps; an error names the place.
---@param query string
---@return any steps
---@return string? ending
local function compile(query)
  local path, ending = query:match("^(.-)%s*|%s*(%a+)%s*$")
  path = path or query
  local steps, at = {}, 1
  local function fail(what)
    error({ query = string.format("query, character %d: %s", at, what) }, 0)
  end
  if path:sub(1, 1) == "$" then at = 2 end
  while at <= #path do
    local deep, name = path:match("^(%.%.?)([%w_%-]+)", at)
    local index = path:match("^%[%s*(%-?%d+)%s*%]", at)
    local key = path:match('^%[%s*"([^"]*)"%s*%]', at) or path:match("^%[%s*'([^']*)'%s*%]", at)
    local field, operator, value = path:match("^%[%?%s*([%w_%-%.]+)%s*([=<>!~]+)%s*(.-)%s*%]", at)
    local whole
    if name then
      steps[#steps + 1] = { op = deep == ".." and "deep" or "field", name = name }
      whole = deep .. name
    elseif index then
      steps[#steps + 1] = { op = "index", index = tonumber(index) }
      whole = path:match("^%[%s*%-?%d+%s*%]", at)
    elseif key then
      steps[#steps + 1] = { op = "field", name = key }
      whole = path:match("^%[[^%]]*%]", at)
    elseif field then
      if not ({ ["="] = 1, ["=="] = 1, ["!="] = 1, ["<"] = 1, ["<="] = 1, [">"] = 1, [">="] = 1, ["~"] = 1 })[operator] then
        fail("unknown comparison " .. operator)
      end
      steps[#steps + 1] = { op = "where", name = field, operator = operator, value = literal(value) }
      whole = path:match("^%[[^%]]*%]", at)
    elseif path:match("^%[%s*%*?%s*%]", at) then
      steps[#steps + 1] = { op = "each" }
      whole = path:match("^%[%s*%*?%s*%]", at)
    elseif path:match("^%.%*", at) then
      steps[#steps + 1] = { op = "each" }
      whole = ".*"
    elseif path:match("^%.?%s*$", at) then
      break
    else
      fail("expected .name, [0], [\"name\"], [] or [?field=value], got " .. path:sub(at, at + 10))
    end
    at = at + #whole
  end
  if ending and not ({ keys = 1, length = 1, type = 1, unique = 1 })[ending] then
    fail("unknown ending " .. ending .. "; keys, length, type and unique are known")
  end
  return steps, ending
end

local function compare(left, operator, right)
  if operator == "=" or operator == "==" then return left == right end
  if operator == "!=" then return left ~= right end
  if operator == "~" then return type(left) == "string" and left:find(tostring(right), 1, true) ~= nil end
  if type(left) ~= type(right) or (type(left) ~= "number" and type(left) ~= "string") then return false end
  if operator == "<" then return left < right end
  if operator == "<=" then return left <= right end
  if operator == ">" then return left > right end
  return left >= right
end

local function member(value, name)
  for part in name:gmatch("[^%.]+") do
    if kind(value) ~= "object" then return nil end
    value = value[part]
  end
  return value
end

local function each(value, see)
  local what = kind(value)
  if what == "array" then
    for i = 1, #value do see(value[i]) end
  elseif what == "object" then
    for _, key in ipairs(sorted_keys(value)) do see(value[key]) end
  end
end

local function deep(value, name, found)
  if kind(value) == "object" and value[name] ~= nil then
    found[#found + 1] = value[name]
  end
  each(value, function(inner) deep(inner, name, found) end)
end

local function run(steps, value)
  local values = { value }
  for _, step in ipairs(steps) do
    local found = {}
    for _, value in ipairs(values) do
      if step.op == "field" then
        if kind(value) == "object" then found[#found + 1] = value[step.name] end
      elseif step.op == "index" then
        if kind(value) == "array" then
          found[#found + 1] = value[step.index < 0 and #value + step.index + 1 or step.index + 1]
        end
      elseif step.op == "each" then
        each(value, function(inner) found[#found + 1] = inner end)
      elseif step.op == "deep" then
        deep(value, step.name, found)
      else
        each(value, function(inner)
          if compare(member(inner, step.name), step.operator, step.value) then found[#found + 1] = inner end
        end)
      end
    end
    values = found
  end
  return values
end

local function finish(values, ending)
  if ending == "unique" then
    local seen, unique = {}, {}
    for _, value in ipairs(values) do
      local text = hygge.json.encode(value)
      if not seen[text] then
        seen[text] = true
        unique[#unique + 1] = value
      end
    end
    return unique
  end
  local ended = {}
  for i, value in ipairs(values) do
    local what = kind(value)
    if ending == "type" then
      ended[i] = what
    elseif ending == "length" then
      local count = (what == "array" or what == "string") and #value or 0
      if what == "object" then
        for _ in pairs(value) do count = count + 1 end
      end
      ended[i] = count
    else
      ended[i] = what == "object" and sorted_keys(value) or hygge.json.array {}
    end
  end
  return ended
end

hygge.register_tool {
  name = "json_query",
  label = "Query JSON",
  description = "Takes values out of JSON files by a path, instead of reading the whole files. Examples: `.version`; "
    .. "`.dependencies | keys`; `.users[?age>30].name`; `..license | unique`; `[-1]`. `path` may be a glob: then each "
    .. "file is asked, and those without a match are left out.",
  parallelizable = true,
  annotations = { read_only = true, idempotent = true },
  input_schema = {
    type = "object",
    properties = {
      path = { type = "string", description = "A file, or a glob such as packages/*/package.json." },
      query = { type = "string", description = "A path into the JSON; `.` for all of it." },
      limit = { type = "integer", minimum = 1, maximum = 1000, description = "How many values to show; 100 when absent." },
    },
    required = { "path", "query" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local ok, steps, ending = pcall(compile, input.query)
    if not ok then
      return { content = type(steps) == "table" and steps.query or tostring(steps), is_error = true }
    end
    local is_glob = input.path:find("[%*%?{%[]") ~= nil
    local files = is_glob and hygge.fs.glob(input.path) or { input.path }
    if #files == 0 then
      return { content = "no file matches " .. input.path, is_error = true }
    end
    local limit = input.limit or 100
    local lines, shown, found, broken = {}, 0, 0, {}
    for i, file in ipairs(files) do
      if is_glob then ctx.progress { progress = i - 1, total = #files, message = file } end
      local read, value = pcall(function() return hygge.json.decode(hygge.fs.read(file)) end)
      if not read then
        broken[#broken + 1] = file .. ": " .. tostring(value)
      else
        local values = run(steps, value)
        if ending then values = finish(values, ending) end
        found = found + #values
        for _, value in ipairs(values) do
          if shown < limit then
            shown = shown + 1
            local text = hygge.json.encode(value)
            if #text > 2000 then text = text:sub(1, 2000) .. " [cut, " .. #text .. " bytes]" end
            lines[#lines + 1] = (is_glob and file .. ": " or "") .. text
          end
        end
      end
    end
    if not is_glob and #broken > 0 then
      return { content = broken[1], is_error = true }
    end
    if found == 0 then lines[1] = "nothing matches " .. input.query end
    if shown < found then lines[#lines + 1] = string.format("[%d more; raise limit or narrow the query]", found - shown) end
    for _, line in ipairs(broken) do lines[#lines + 1] = "[" .. line .. "]" end
    return { content = table.concat(lines, "\n"), metadata = { matches = found, files = #files, unreadable = #broken } }
  end,
}
