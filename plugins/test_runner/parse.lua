-- Finds the failures in the output of test runners. Each function takes the whole output and returns
-- `{passed, failed, failures = {{name, text}}}`; numbers are nil when the runner does not print them.
local parse = {}

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do lines[#lines + 1] = line end
  return lines
end

local function add(failures, name, lines)
  while #lines > 0 and lines[#lines]:match("^%s*$") do table.remove(lines) end
  failures[#failures + 1] = { name = name, text = table.concat(lines, "\n") }
end

-- Lines from `at` on, until one fits.
local function block(lines, at, is_end)
  local found = {}
  while lines[at] and not is_end(lines[at]) do
    found[#found + 1] = lines[at]
    at = at + 1
  end
  return found, at
end

function parse.cargo(text)
  local lines, result = lines_of(text), { failures = {} }
  local at = 1
  while lines[at] do
    local line = lines[at]
    local name = line:match("^%-%-%-%- (.+) stdout %-%-%-%-$")
    local passed, failed = line:match("^test result: .- (%d+) passed; (%d+) failed")
    if passed then
      result.passed = (result.passed or 0) + tonumber(passed)
      result.failed = (result.failed or 0) + tonumber(failed)
    elseif name then
      local own
      own, at = block(lines, at + 1, function(next) return next:match("^%-%-%-%- ") or next == "failures:" or next:match("^test result:") end)
      add(result.failures, name, own)
      at = at - 1
    elseif line:match("^error%[E%d+%]") or (line:match("^error: ") and not line:match("^error: test failed") and not line:match("^error: %d+ target")) then
      local own
      own, at = block(lines, at, function(next) return next == "" end)
      add(result.failures, "the compiler", own)
    end
    at = at + 1
  end
  return result
end

function parse.go(text)
  local lines, result = lines_of(text), { failures = {} }
  local at = 1
  while lines[at] do
    local line = lines[at]
    local name = line:match("^%s*%-%-%- FAIL: (%S+)")
    local broken = line:match("^# (%S+)") or line:match("^FAIL%s+(%S+) %[build failed%]")
    if name then
      local own
      own, at = block(lines, at + 1, function(next) return next:match("^%S") or next:match("^%s*%-%-%- ") end)
      add(result.failures, name, own)
      at = at - 1
      result.failed = (result.failed or 0) + 1
    elseif line:match("^%s*%-%-%- PASS: ") then
      result.passed = (result.passed or 0) + 1
    elseif line:match("^panic: ") then
      add(result.failures, "a panic", (block(lines, at, function(next) return next:match("^FAIL") end)))
    elseif broken and line:sub(1, 1) == "#" then
      local own
      own, at = block(lines, at + 1, function(next) return not next:match(":%d+") and not next:match("^%s") end)
      add(result.failures, broken, own)
      at = at - 1
    end
    at = at + 1
  end
  return result
end

function parse.pytest(text)
  local lines, result = lines_of(text), { failures = {} }
  local at = 1
  while lines[at] do
    local name = lines[at]:match("^_+ (.-) _+$")
    if name then
      local own
      own, at = block(lines, at + 1, function(next) return next:match("^_+ .- _+$") or next:match("^=+ .* =+$") or next:match("^FAILED ") or next:match("^ERROR ") end)
      add(result.failures, name, own)
      at = at - 1
    end
    at = at + 1
  end
  for place = #lines, math.max(1, #lines - 5), -1 do
    local summary = lines[place]:match("%d+ %a+.* in [%d%.:]+ ?s") or lines[place]:match("%d+ %a+.* in .+")
    if summary then
      result.passed = tonumber(summary:match("(%d+) passed")) or 0
      result.failed = (tonumber(summary:match("(%d+) failed")) or 0) + (tonumber(summary:match("(%d+) errors?")) or 0)
      break
    end
  end
  return result
end

-- Node's own runner, Jest, Vitest, Mocha, TAP and whatever else a project's test script runs.
function parse.javascript(text)
  local lines, result = lines_of(text), { failures = {} }
  local function count(pattern)
    local number
    for _, line in ipairs(lines) do number = tonumber(line:match(pattern)) or number end
    return number
  end
  result.passed = count("^Tests:.-(%d+) passed") or count("^%s+Tests%s.-(%d+) passed") or count("^%s+(%d+) passing") or count("^[#ℹ]+ pass (%d+)")
  result.failed = count("^Tests:.-(%d+) failed") or count("^%s+Tests%s.-(%d+) failed") or count("^%s+(%d+) failing") or count("^[#ℹ]+ fail (%d+)")
  local at, seen = 1, {}
  while lines[at] do
    local line = lines[at]
    local jest = line:match("^%s+● (.+)$")
    local vitest = line:match("^ FAIL  (.+)$")
    local tap = line:match("^%s*not ok %d+ %-? ?(.+)$")
    local node = line:match("^%s*✖ (.+) %([%d%.]+ms%)$")
    local mocha = line:match("^  %d+%) (.+)$")
    local name = jest or vitest or tap or node or mocha
    local own = name and block(lines, at + 1, function(next)
      return next:match("^%s+● ") or next:match("^ FAIL  ") or next:match("^%s*not ok ") or next:match("^%s*ok %d")
        or next:match("^%s*✖ ") or next:match("^%s*✔ ") or next:match("^  %d+%) ") or next:match("^Tests:") or next:match("^%s*%.%.%.$")
    end)
    -- Some runners list the names first and explain them later: the explanation counts.
    if name and #own > 0 and table.concat(own):match("%S") then
      local key = name:gsub("%s+#.*$", "")
      if seen[key] then
        if #table.concat(own, "\n") > #seen[key].text then seen[key].text = table.concat(own, "\n"):gsub("%s+$", "") end
      else
        add(result.failures, key, own)
        seen[key] = result.failures[#result.failures]
      end
    end
    at = at + 1
  end
  return result
end

return parse
