-- Git's machine-readable output as tables.
local parse = {}

function parse.lines(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    lines[#lines + 1] = line
  end
  return lines
end

---@class git.State
---@field branch string
---@field upstream? string
---@field ahead number?
---@field behind number?
---@field is_empty? boolean There is no commit yet.
---@field staged string[]
---@field changed string[]
---@field untracked string[]
---@field conflicts string[]

-- `git status --porcelain=v2 --branch`
---@param text string
---@return git.State
function parse.status(text)
  ---@type git.State
  local state = { branch = "(detached)", ahead = 0, behind = 0, staged = {}, changed = {}, untracked = {}, conflicts = {} }
  for _, line in ipairs(parse.lines(text)) do
    local head = line:match("^# branch%.head (.+)")
    local kind, xy, rest = line:match("^([12u]) (..) (.+)")
    if head then
      state.branch = head
    elseif line:match("^# branch%.oid %(initial%)") then
      state.is_empty = true
    elseif line:match("^# branch%.upstream ") then
      state.upstream = line:match("^# branch%.upstream (.+)")
    elseif line:match("^# branch%.ab ") then
      local ahead, behind = line:match("%+(%d+) %-(%d+)")
      state.ahead, state.behind = tonumber(ahead), tonumber(behind)
    elseif line:sub(1, 2) == "? " then
      table.insert(state.untracked, line:sub(3))
    elseif kind == "u" then
      table.insert(state.conflicts, (rest:match("^%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (.+)")))
    elseif kind then
      -- A renamed file has a score before its name, and its old name after a tab.
      local path = rest:match(kind == "1" and "^%S+ %S+ %S+ %S+ %S+ %S+ (.+)" or "^%S+ %S+ %S+ %S+ %S+ %S+ %S+ (.+)")
      local new, old = (path or rest):match("^(.-)\t(.+)$")
      path = new and (old .. " -> " .. new) or path or rest
      local index, tree = xy:sub(1, 1), xy:sub(2, 2)
      if index ~= "." then table.insert(state.staged, index .. " " .. path) end
      if tree ~= "." then table.insert(state.changed, tree .. " " .. path) end
    end
  end
  return state
end

-- `git diff --numstat`; binary files have dashes for numbers.
function parse.numstat(text)
  local files = {}
  for _, line in ipairs(parse.lines(text)) do
    local added, removed, path = line:match("^(%S+)\t(%S+)\t(.+)$")
    if path then
      files[#files + 1] = {
        path = path, binary = added == "-", added = tonumber(added) or 0, removed = tonumber(removed) or 0,
      }
    end
  end
  return files
end

return parse
