-- Two tools that save a model a dozen calls of git: where a repository stands, and what changed
-- since some point. Every git command here only reads, so it needs no permission of its own.

local parse = require("parse")

-- Git's own words are shown when it refuses, so that the caller can act on them.
local function git(args, dir)
  local result = hygge.exec("git", args, { timeout = "20s", dir = dir })
  if result.timed_out then
    return nil, "git " .. args[1] .. " took longer than 20 seconds"
  end
  if result.code ~= 0 then
    local words = result.stderr ~= "" and result.stderr or result.stdout
    return nil, (words:gsub("%s+$", ""))
  end
  return result.stdout
end

local function failed(message)
  return { content = message, is_error = true }
end

local function add(lines, ...)
  lines[#lines + 1] = string.format(...)
end

hygge.register_tool {
  name = "git_summary",
  label = "Git summary",
  description = "Where a Git repository stands: branch, how far it is from its upstream, what is staged, changed "
    .. "and untracked, stashes, the last commits, and who wrote most lately. One call instead of many of git.",
  parallelizable = true,
  annotations = { read_only = true, idempotent = true },
  input_schema = {
    type = "object",
    properties = {
      path = { type = "string", description = "A folder in the repository; the working folder when absent." },
      commits = { type = "integer", minimum = 0, maximum = 100, description = "How many of the last commits to show; 10 when absent." },
    },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local dir = input.path
    local status, message = git({ "status", "--porcelain=v2", "--branch", "--untracked-files=normal" }, dir)
    if not status then
      return failed(message)
    end
    ctx.progress("reading the history")
    local state = parse.status(status)
    local lines = {}
    add(lines, "branch: %s%s", state.branch, state.upstream and string.format(
      " (upstream %s: %d ahead, %d behind)", state.upstream, state.ahead, state.behind) or " (no upstream)")

    -- Three that do not depend on each other, at once.
    local count = input.commits or 10
    local answers = hygge.all {
      function() return git({ "stash", "list", "--format=%gd %s" }, dir) or "" end,
      function()
        if state.is_empty then return "" end
        return git({ "log", "-n", tostring(count), "--date=short", "--format=%h %ad %an: %s" }, dir) or ""
      end,
      function()
        if state.is_empty then return "" end
        return git({ "shortlog", "-sn", "--since=90.days", "HEAD" }, dir) or ""
      end,
    }
    for _, part in ipairs { "conflicts", "staged", "changed", "untracked" } do
      local files = state[part] ---@type string[]
      if #files > 0 then
        add(lines, "\n%s (%d):", part, #files)
        for i = 1, math.min(#files, 40) do
          add(lines, "  %s", files[i])
        end
        if #files > 40 then
          add(lines, "  ... and %d more", #files - 40)
        end
      end
    end
    if #state.conflicts + #state.staged + #state.changed + #state.untracked == 0 then
      add(lines, "clean: nothing staged, changed or untracked")
    end
    for i, title in ipairs { "stashes", "last commits", "authors of the last 90 days" } do
      local text = parse.lines(answers[i])
      if #text > 0 then
        add(lines, "\n%s:", title)
        for _, line in ipairs(text) do
          add(lines, "  %s", (line:gsub("^%s+", ""):gsub("\t", " ")))
        end
      end
    end
    return {
      content = table.concat(lines, "\n"),
      metadata = {
        branch = state.branch, ahead = state.ahead, behind = state.behind,
        staged = #state.staged, changed = #state.changed, untracked = #state.untracked, conflicts = #state.conflicts,
      },
    }
  end,
}

hygge.register_tool {
  name = "git_changes",
  label = "Git changes",
  description = "Which files changed since a commit, a tag or a branch, by how many lines, and the commits in between. "
    .. "Without `since`: what is not committed yet.",
  parallelizable = true,
  annotations = { read_only = true, idempotent = true },
  input_schema = {
    type = "object",
    properties = {
      since = { type = "string", pattern = "^[^-]", description = "A commit, tag or branch, such as v1.2 or main." },
      path = { type = "string", description = "A folder in the repository; the working folder when absent." },
    },
    additionalProperties = false,
  },
  execute = function(_, input)
    local base = input.since or "HEAD"
    local numbers, message = git({ "diff", "--numstat", base, "--" }, input.path)
    if not numbers then
      return failed(message)
    end
    local files = parse.numstat(numbers)
    local lines, added, removed = {}, 0, 0
    for _, file in ipairs(files) do
      added, removed = added + file.added, removed + file.removed
      add(lines, "  %s  %s", file.binary and "binary" or string.format("+%d -%d", file.added, file.removed), file.path)
    end
    table.insert(lines, 1, string.format("%d files since %s: +%d -%d", #files, base, added, removed))
    if input.since then
      local log = parse.lines(git({ "log", "--format=%h %an: %s", "-n", "50", input.since .. "..HEAD", "--" }, input.path) or "")
      if #log > 0 then
        add(lines, "\ncommits:")
        for _, line in ipairs(log) do
          add(lines, "  %s", line)
        end
      end
    end
    return { content = table.concat(lines, "\n"), metadata = { files = #files, added = added, removed = removed } }
  end,
}
