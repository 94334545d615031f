-- Finds what was left to do: TODO, FIXME and the like in the comments of a project, with who is named
-- in them, grouped by file, tag or owner.

local DEFAULT_TAGS = { "TODO", "FIXME", "HACK", "XXX", "BUG" }

-- A tag counts only in a comment: `local TODO = 1` does not. Comment markers differ by language; any of these before
-- the tag on its line counts.
local OPENERS = { "//", "#", "--", "/*", "*", ";", "<!--", "%", "'", '"""', "{-" }

local function is_comment(before)
  for _, opener in ipairs(OPENERS) do
    if before:find(opener, 1, true) then return true end
  end
  return before:match("^%s*$") ~= nil
end

-- `TODO(name, #12): text` as its parts; nil for a line without a tag.
local function read_tag(line, tags)
  for _, tag in ipairs(tags) do
    local from = 1
    while true do
      local first, last = line:find(tag, from, true)
      if not first then break end
      local before, after = line:sub(1, first - 1), line:sub(last + 1)
      local whole_word = not before:match("[%w_]$") and not after:match("^[%w_]")
      if whole_word and is_comment(before) then
        local owner = after:match("^%(([^)]*)%)")
        local text = after:gsub("^%([^)]*%)", ""):gsub("^[%s:%-]+", ""):gsub("%s*%*/%s*$", ""):gsub("%s*%-%->%s*$", "")
        return { tag = tag, owner = owner, text = (text:gsub("%s+$", "")) }
      end
      from = last + 1
    end
  end
end

local function group_key(item, by)
  if by == "tag" then return item.tag end
  if by == "owner" then return item.owner or "(nobody)" end
  return item.file
end

hygge.register_tool {
  name = "todo_finder",
  label = "Find TODOs",
  description = "Lists TODO, FIXME, HACK, XXX and BUG comments below a folder with file and line, grouped by file, tag or "
    .. "the person named in parentheses. Binary, hidden and ignored files are left out.",
  parallelizable = true,
  timeout = "60s",
  annotations = { read_only = true, idempotent = true },
  input_schema = {
    type = "object",
    properties = {
      glob = { type = "string", description = "Which files, such as src/**/*.rs; all when absent." },
      tags = { type = "array", items = { type = "string", minLength = 2 }, description = "The words to look for." },
      group_by = { type = "string", enum = { "file", "tag", "owner" }, description = "file when absent." },
      limit = { type = "integer", minimum = 1, maximum = 2000, description = "How many to show; 200 when absent." },
    },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local tags = input.tags or hygge.config.tags or DEFAULT_TAGS
    local files = hygge.fs.glob(input.glob or "**")
    local items, skipped = {}, 0
    for i, file in ipairs(files) do
      if i % 100 == 1 then
        ctx.progress { progress = i - 1, total = #files, message = "reading" }
      end
      local ok, text = pcall(hygge.fs.read, file)
      if not ok or text:sub(1, 4096):find("\0", 1, true) then
        skipped = skipped + 1
      else
        -- Most files have none: one plain search for each tag is far cheaper than going by lines.
        local any = false
        for _, tag in ipairs(tags) do
          any = any or text:find(tag, 1, true) ~= nil
        end
        if any then
          local number = 0
          for line in (text .. "\n"):gmatch("(.-)\r?\n") do
            number = number + 1
            local item = read_tag(line, tags)
            if item then
              item.file, item.line = file, number
              items[#items + 1] = item
            end
          end
        end
      end
    end

    local by, limit = input.group_by or "file", input.limit or 200
    local groups, order = {}, {}
    for _, item in ipairs(items) do
      local key = group_key(item, by)
      if not groups[key] then
        groups[key] = {}
        order[#order + 1] = key
      end
      table.insert(groups[key], item)
    end
    table.sort(order)

    local lines, shown = {}, 0
    for _, key in ipairs(order) do
      if shown >= limit then break end
      lines[#lines + 1] = string.format("%s (%d)", key, #groups[key])
      for _, item in ipairs(groups[key]) do
        if shown >= limit then break end
        shown = shown + 1
        local place = by == "file" and tostring(item.line) or item.file .. ":" .. item.line
        local tag = by == "tag" and "" or item.tag .. " "
        local owner = item.owner and by ~= "owner" and "(" .. item.owner .. ") " or ""
        lines[#lines + 1] = string.format("  %s: %s%s%s", place, tag, owner, item.text:sub(1, 200))
      end
    end
    if #items == 0 then lines[1] = "none found in " .. #files .. " files" end
    if shown < #items then lines[#lines + 1] = string.format("[%d more]", #items - shown) end
    return {
      content = table.concat(lines, "\n"),
      metadata = { found = #items, files = #files, skipped = skipped },
    }
  end,
}
