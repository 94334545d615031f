-- CODEOWNERS of GitHub and GitLab: the last line whose pattern covers a path names its owners.
local owners = {}

-- A pattern as a Lua pattern: `*` stays within a folder, `**` does not.
local function compiled(pattern)
  local is_anchored = pattern:sub(1, -2):find("/", 1, true) ~= nil
  local text = pattern:gsub("^/", ""):gsub("/$", "/**")
  text = text:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0")
  text = text:gsub("%*%*/", "\1"):gsub("%*%*", "\2"):gsub("%*", "[^/]*"):gsub("%?", "[^/]")
  text = text:gsub("\1", "\3"):gsub("\2", ".*")
  return text, is_anchored
end

-- `\3` stands for any number of folders, also none.
local function matches(path, pattern)
  local text, is_anchored = compiled(pattern)
  local function fits(candidate, text)
    local at = text:find("\3", 1, true)
    if not at then return candidate:find("^" .. text .. "$") ~= nil or candidate:find("^" .. text .. "/") ~= nil end
    local before, after = text:sub(1, at - 1), text:sub(at + 1)
    return fits(candidate, before .. after) or fits(candidate, before .. ".*/" .. after)
  end
  if fits(path, text) then return true end
  if is_anchored then return false end
  for place in path:gmatch("()/") do
    if fits(path:sub(place + 1), text) then return true end
  end
  return false
end

-- The owners of a path, relative to the repository, and the line that names them.
---@return string? names
---@return integer? line
function owners.find(text, path)
  local names, found, number = nil, nil, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    local pattern, rest = line:match("^%s*([^%s#%[^]%S*)%s*(.-)%s*$")
    if pattern and #pattern <= 200 and matches(path, pattern) then
      rest = rest:gsub("%s*#.*$", "")
      names, found = rest, number
    end
  end
  if names == "" then return nil end
  return names, found
end

return owners
