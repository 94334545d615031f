-- The people to ask about a file or a folder: the authors of its lines and of its commits, recent ones first, and its owners by
-- CODEOWNERS. Every git command here only reads, so it needs no permission of its own.

local owners = require("owners")

local MAX_COMMITS = 1000

local function git(args)
  local started, result = pcall(hygge.exec, "git", args, { timeout = "60s" })
  if not started then return nil, "Git cannot be started: install it from git-scm.com, then call again" end
  if result.timed_out then return nil, "git " .. args[1] .. " took longer than a minute: ask for a smaller part" end
  if result.code ~= 0 then return nil, ((result.stderr ~= "" and result.stderr or result.stdout):gsub("%s+$", "")) end
  return result.stdout
end

local function count(number, word)
  return string.format("%d %s%s", number, word, number == 1 and "" or "s")
end

local function clean(text)
  return (text:gsub("%c", "?")):sub(1, 80)
end

-- Lines by author. In porcelain output the author stands only at a commit's first line.
local function lines_by_author(blame)
  local author_of, counts, total, commit = {}, {}, 0, nil
  for line in blame:gmatch("[^\n]+") do
    local hash = line:match("^(%x+) %d+ %d+")
    if hash and #hash >= 40 then
      commit = hash
    elseif line:sub(1, 7) == "author " then
      author_of[commit] = line:sub(8)
    elseif line:sub(1, 1) == "\t" and commit:find("[^0]") then
      -- Lines that are not committed yet have a commit of zeros.
      local author = author_of[commit] or "?"
      counts[author] = (counts[author] or 0) + 1
      total = total + 1
    end
  end
  return counts, total
end

-- The owners that CODEOWNERS names, where GitHub and GitLab look for it.
local function owners_of(path)
  local top = git { "rev-parse", "--show-toplevel" }
  local prefix = git { "rev-parse", "--show-prefix" }
  if not top or not prefix or path:sub(1, 1) == "/" or path:find("..", 1, true) then return nil end
  local within = prefix:gsub("%s+$", "") .. path:gsub("^%./", ""):gsub("/$", "")
  for _, place in ipairs { ".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS" } do
    local ok, text = pcall(hygge.fs.read, top:gsub("%s+$", "") .. "/" .. place)
    if ok then
      local names, line = owners.find(text:sub(1, 200000), within)
      return names and string.format("owners: %s (%s:%d)", clean(names), place, line)
    end
  end
end

hygge.register_tool {
  name = "who_knows",
  label = "Who knows this",
  description = "Finds who knows a file or a folder of a Git repository: who wrote the lines that are there now, who committed to it "
    .. "most lately, when, and its owners by CODEOWNERS. Use it to choose a reviewer, or to find whom to ask why code is as it is.",
  parallelizable = true,
  timeout = "2m",
  annotations = { read_only = true, idempotent = true },
  permission = false,
  input_schema = {
    type = "object",
    properties = {
      path = { type = "string", minLength = 1, description = "A file or a folder, relative to the working folder; `.` for all of it." },
      from = { type = "integer", minimum = 1, description = "The first line, for a part of a file." },
      to = { type = "integer", minimum = 1, description = "The last line; the end of the file when absent." },
    },
    required = { "path" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local path = input.path
    local facts = hygge.fs.stat(path)
    if not facts then return { content = path .. " does not exist here: paths are relative to " .. ctx.cwd, is_error = true } end
    local is_part = input.from ~= nil or input.to ~= nil
    if is_part and facts.type ~= "file" then
      return { content = path .. " is a folder: from and to are lines of a file", is_error = true }
    end

    ctx.progress("reading the history")
    local format = "--format=%x1f%aN%x1f%ad%x1f%at"
    -- Commits that touched these lines, without their diffs; or the file, or the folder.
    local history = { "log", "--no-merges", "--max-count=" .. MAX_COMMITS, "--date=short", format }
    if not is_part then
      table.insert(history, "--")
      table.insert(history, path)
    end
    local log, blame, message
    if not is_part then
      log, message = git(history)
      if not log then return { content = message, is_error = true } end
    end
    local counts, total = {}, 0
    if facts.type == "file" then
      ctx.progress("reading who wrote which line")
      local args = { "blame", "--porcelain", "-w" }
      if is_part then
        table.insert(args, "-L")
        table.insert(args, (input.from or 1) .. "," .. (input.to or ""))
      end
      table.insert(args, "--")
      table.insert(args, path)
      blame, message = git(args)
      if not blame then
        -- A file that is not committed yet has no history.
        return { content = message, is_error = true }
      end
      counts, total = lines_by_author(blame)
    end

    local people, by_name, commits = {}, {}, 0
    local function person(name)
      if not by_name[name] then
        by_name[name] = { name = name, lines = 0, commits = 0, weight = 0, last = nil }
        people[#people + 1] = by_name[name]
      end
      return by_name[name]
    end
    for name, lines in pairs(counts) do person(name).lines = lines end
    local weights = 0
    for name, date, at in (log or ""):gmatch("\31([^\31\n]*)\31([^\31\n]*)\31(%d+)") do
      local own = person(name)
      commits = commits + 1
      own.commits = own.commits + 1
      own.last = own.last or date
      -- A commit counts half as much after a year.
      local weight = 0.5 ^ (math.max(hygge.now() - tonumber(at), 0) / (365 * 86400))
      own.weight, weights = own.weight + weight, weights + weight
    end
    if #people == 0 then return path .. " has no commits yet" end
    for _, own in ipairs(people) do
      own.score = (total > 0 and own.lines / total or 0) + (weights > 0 and own.weight / weights or 0)
    end
    table.sort(people, function(a, b)
      if a.score ~= b.score then return a.score > b.score end
      return a.name < b.name
    end)

    local place = is_part and string.format("%s:%d-%s", path, input.from or 1, input.to or "end") or path
    local sizes = {}
    if total > 0 then sizes[#sizes + 1] = count(total, "line") end
    if log then
      sizes[#sizes + 1] = (commits >= MAX_COMMITS and "the last " or "") .. count(commits, "commit")
    end
    local lines = { clean(place) .. ": " .. table.concat(sizes, ", ") }
    lines[#lines + 1] = owners_of(path)
    for i, own in ipairs(people) do
      if i > 10 then
        lines[#lines + 1] = string.format("[%d more]", #people - 10)
        break
      end
      local parts = {}
      if own.lines > 0 then parts[#parts + 1] = string.format("%s (%d %%)", count(own.lines, "line"), own.lines / total * 100) end
      if own.commits > 0 then parts[#parts + 1] = string.format("%s, the last %s", count(own.commits, "commit"), own.last) end
      lines[#lines + 1] = string.format("%d. %s: %s", i, clean(own.name), table.concat(parts, ", "))
    end
    return { content = table.concat(lines, "\n"), metadata = { people = #people, lines = total, commits = commits } }
  end,
}
