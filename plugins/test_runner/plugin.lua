-- Runs a project's tests with its own runner and returns the failures: a model reads twenty lines instead of two
-- thousand. The tests are the project's code, so running them needs permission, which is asked for once and before.

local parse = require("parse")
local runners = require("runners")

-- Of one failure, and of all.
local MAX_TEXT, MAX_ALL = 3000, 24000

local function plan(input)
  local dir = input.path or "."
  local runner, message = runners.find(dir, input.runner)
  if not runner then return nil, message end
  return runner, runner.words(dir, input.filter), dir
end

-- The beginning and the end, cut at lines.
local function shorten(text, size)
  if #text <= size then return text end
  local head, tail = text:sub(1, size * 0.6), text:sub(-size * 0.4)
  head, tail = head:match("^(.*)\n") or head, tail:match("\n(.*)$") or tail
  local _, left_out = text:sub(#head + 1, #text - #tail):gsub("\n", "")
  return string.format("%s\n[%d lines left out]\n%s", head, left_out, tail)
end

local function clean(text)
  -- Colours, and other control characters but newlines and tabs.
  return (text:gsub("\27%[[%d;]*%a", ""):gsub("[%z\1-\8\11-\31\127]", ""))
end

-- The last line of output as progress, twice a second at most.
local function follow(ctx)
  local last = 0
  return function(_, text)
    local now = hygge.now()
    local line = text:match("([^\r\n]*%S[^\r\n]*)%s*$")
    if line and now - last >= 0.5 then
      last = now
      ctx.progress(clean(line):sub(1, 120))
    end
  end
end

hygge.register_tool {
  name = "run_tests",
  label = "Run tests",
  description = "Runs the tests of a project with its own runner (cargo, go, npm, pnpm, yarn, bun, pytest) and returns how many "
    .. "passed and the text of each failure, without the rest of the output. Use it instead of running the runner in a shell.",
  timeout = "15m",
  annotations = { destructive = false, open_world = true, task = "optional" },
  permission = function(input)
    local runner, words, dir = plan(input)
    if not runner then return nil end
    return { category = "shell", target = words, dir = dir, reason = "runs the project's tests" }
  end,
  input_schema = {
    type = "object",
    properties = {
      path = { type = "string", minLength = 1, description = "The project's folder; the working folder when absent." },
      filter = {
        type = "string", minLength = 1, maxLength = 200, pattern = "^[^-]",
        description = "Only tests whose name contains this; for npm, whatever the script takes, such as a file.",
      },
      runner = { type = "string", enum = { "cargo", "go", "npm", "pytest" }, description = "Found by the project's files when absent; npm is also pnpm, yarn and bun." },
    },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local runner, words, dir = plan(input)
    if not runner then return { content = words, is_error = true } end
    ctx.progress(table.concat(words, " "))
    local begun = hygge.now()
    local started, result = pcall(hygge.exec, words[1], { unpack(words, 2) }, { dir = dir, on_output = follow(ctx) })
    if not started then
      return { content = string.format("%s cannot be started (%s). Install %s", words[1], tostring(result), runner.get), is_error = true }
    end
    local seconds = hygge.now() - begun
    local output = clean(result.stdout .. (result.stderr ~= "" and "\n" .. result.stderr or ""))
    ---@type {passed: integer?, failed: integer?, failures: {name: string, text: string}[]}
    local found = parse[runner.parser](output)
    local is_good = result.code == 0 and not result.timed_out

    local counts = {}
    if found.passed then counts[#counts + 1] = found.passed .. " passed" end
    if found.failed then counts[#counts + 1] = found.failed .. " failed" end
    local ended = result.timed_out and "stopped: the time was over" or is_good and "passed" or "failed with status " .. result.code
    local lines = { string.format("%s %s in %.1f s%s", table.concat(words, " "), ended, seconds,
      #counts > 0 and ": " .. table.concat(counts, ", ") or "") }
    local size = 0
    if not is_good then
      for i, failure in ipairs(found.failures) do
        local text = shorten(failure.text, MAX_TEXT)
        size = size + #text
        if size > MAX_ALL then
          lines[#lines + 1] = string.format("\n[%d more failures: use filter]", #found.failures - i + 1)
          break
        end
        lines[#lines + 1] = string.format("\n== %s\n%s", failure.name, text)
      end
      -- A runner that is broken itself, or whose output is not known.
      if #found.failures == 0 then lines[#lines + 1] = "\n" .. shorten(output:gsub("%s+$", ""), 8000) end
    end
    return {
      content = table.concat(lines, "\n"),
      is_error = not is_good,
      metadata = {
        runner = runner.name, passed = found.passed, failed = found.failed, failures = #found.failures, code = result.code,
      },
    }
  end,
}
