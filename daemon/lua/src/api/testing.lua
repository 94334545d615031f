-- The functions for `*_test.lua` files: `describe`, `it`, `expect`, `call`, `fake`.
-- Runs before the plugin, so that even the plugin's first lines use the fakes.
local hygge = ...

-- `before_each` has a list for each `describe` that is open, the outermost first.
local fakes, before_each, cases, path = {}, { {} }, {}, {}

-- The engine, once the plugin has loaded.
local ask, fake_tool, make_file, between

local function engine(kind, name, given)
  local ok, value = ask(kind, name, given)
  if not ok then error(value, 3) end
  return value
end

hygge.exec = function(command, args, options)
  if not fakes.exec then
    local words = { command }
    for _, word in ipairs(args or {}) do words[#words + 1] = tostring(word) end
    error("hygge.exec is not faked in this test; it was called with: " .. table.concat(words, " "), 2)
  end
  local result = fakes.exec(command, args or {}, options or {})
  if type(result) == "string" then result = { stdout = result } end
  result.stdout, result.stderr = result.stdout or "", result.stderr or ""
  result.code = result.code or 0
  result.exit_code = result.code
  if options and options.on_output and result.stdout ~= "" then options.on_output("stdout", result.stdout) end
  return result
end

-- Reads the options as the host does, so that a fake gets what a server would.
local function request(method, url, options)
  options = options or {}
  local headers, body = {}, options.body
  for name, value in pairs(options.headers or {}) do
    headers[string.lower(name)] = type(value) == "table" and table.concat(value, ", ") or tostring(value)
  end
  if options.json ~= nil then
    body = hygge.json.encode(options.json)
    headers["content-type"] = headers["content-type"] or "application/json"
  end
  method = string.upper(options.method or method)
  if not fakes.http then
    error("hygge.http is not faked in this test; it was called with: " .. method .. " " .. tostring(url), 3)
  end
  local answer = fakes.http({ method = method, url = url, headers = headers, body = body })
  if type(answer) == "string" then answer = { body = answer } end
  answer.status, answer.body, answer.url = answer.status or 200, answer.body or "", answer.url or url
  answer.ok = answer.status >= 200 and answer.status < 300
  local named = {}
  for name, value in pairs(answer.headers or {}) do named[string.lower(name)] = tostring(value) end
  answer.headers = named
  return answer
end

hygge.http.get = function(url, options) return request("GET", url, options) end
hygge.http.post = function(url, body, options)
  local all = {}
  for name, value in pairs(options or {}) do all[name] = value end
  if type(body) == "table" then all.json = body else all.body = body end
  return request("POST", url, all)
end
hygge.http.request = function(options) return request("GET", options.url, options) end

local function show(value, depth)
  if type(value) == "string" then return string.format("%q", value) end
  if type(value) ~= "table" or (depth or 0) > 4 then return tostring(value) end
  local parts, keys = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local name = type(key) == "number" and "" or tostring(key) .. " = "
    parts[#parts + 1] = name .. show(value[key], (depth or 0) + 1)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function same(a, b)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then return false end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local checks = {
  to_be = function(got, wanted) return got == wanted, "to be " .. show(wanted) end,
  to_equal = function(got, wanted) return same(got, wanted), "to equal " .. show(wanted) end,
  to_be_nil = function(got) return got == nil, "to be nil" end,
  to_be_truthy = function(got) return not not got, "to be truthy" end,
  to_match = function(got, pattern)
    return type(got) == "string" and got:find(pattern) ~= nil, "to match " .. show(pattern)
  end,
  to_contain = function(got, part)
    if type(got) == "string" then return got:find(tostring(part), 1, true) ~= nil, "to contain " .. show(part) end
    for _, item in pairs(got) do
      if same(item, part) then return true, "to contain " .. show(part) end
    end
    return false, "to contain " .. show(part)
  end,
  to_raise = function(got, words)
    local ok, message = pcall(got)
    if ok then return false, "to raise an error" end
    return words == nil or tostring(message):find(words, 1, true) ~= nil,
      "to raise an error with " .. show(words) .. " (it raised " .. show(message) .. ")"
  end,
}

local function expectation(got, negated)
  local checker = {}
  for name, check in pairs(checks) do
    checker[name] = function(wanted)
      local ok, words = check(got, wanted)
      if ok == negated then
        error("expected " .. show(got) .. (negated and " not " or " ") .. words, 2)
      end
    end
  end
  return checker
end

function expect(got)
  local checker = expectation(got, false)
  checker.never = expectation(got, true)
  return checker
end

function describe(name, body)
  path[#path + 1] = name
  before_each[#before_each + 1] = {}
  body()
  path[#path], before_each[#before_each] = nil, nil
end

function it(name, body)
  local full = table.concat(path, " ")
  cases[#cases + 1] = { name = full == "" and name or full .. " " .. name, body = body, before = { unpack(before_each) } }
end

function before(body)
  table.insert(before_each[#before_each], body)
end

fake = {
  exec = function(run) fakes.exec = run end,
  http = function(run) fakes.http = run end,
  file = function(path, text) make_file(path, text) end,
  tool = function(name, run) fake_tool(name, function(_, input) return run(input) end) end,
}

function call(name, input)
  return hygge.call_tool(name, input)
end

function command(name, input)
  return engine("command", name, input or "")
end

function render(name, arguments)
  return engine("render", name, arguments or {}).messages
end

function read(uri)
  return engine("read", uri)
end

function needs(name, input)
  return engine("needs", name, input or {})
end

-- Runs the cases of the file, after the plugin has loaded.
local function run(chunk, traceback)
  chunk()
  local results = {}
  for i, case in ipairs(cases) do
    fakes = {}
    between(true)
    local trace
    local ok, message = xpcall(function()
      for _, prepares in ipairs(case.before) do
        for _, prepare in ipairs(prepares) do prepare() end
      end
      case.body()
    end, function(message)
      trace = traceback()
      return message
    end)
    results[i] = { name = case.name, ok = ok, message = not ok and tostring(message) or nil, traceback = trace }
  end
  between(false)
  return { structured = { cases = hygge.json.array(results) } }
end

return run, function(...) ask, fake_tool, make_file, between = ... end
