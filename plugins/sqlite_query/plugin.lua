-- Questions to SQLite databases. The database is opened read-only and in SQLite's safe mode, and the SQL goes through
-- standard input: the command is the same for every question, so that one permission for a database is enough.

local GET = "SQLite's command-line program is missing: install `sqlite3` (Debian, Fedora: package sqlite3 or sqlite; "
  .. "macOS has it; Windows: sqlite.org/download), then call again"

local MAX_CELL = 300

-- Neither an option nor a URI, whatever the file is called.
local function as_file(path)
  if path:sub(1, 1) == "/" or path:sub(1, 2) == "./" then return path end
  return "./" .. path
end

local function command(path)
  return { "sqlite3", "-batch", "-safe", "-readonly", "-csv", "-header", "-nullvalue", "NULL", as_file(path) }
end

local function permission(input)
  return {
    { category = "file.read", target = as_file(input.path), reason = "the database" },
    { category = "shell", target = command(input.path), reason = "asks the database, without changing it" },
  }
end

local function failed(message)
  return { content = message, is_error = true }
end

-- The first rows of CSV (RFC 4180), each as a list of cells, and whether there are more.
local function rows_of(csv, limit)
  local rows, row, at = {}, {}, 1
  while at <= #csv do
    local cell
    if csv:sub(at, at) == '"' then
      local from = at + 1
      local parts = {}
      while true do
        local close = csv:find('"', from, true) or #csv + 1
        parts[#parts + 1] = csv:sub(from, close - 1)
        at = close + 1
        if csv:sub(at, at) ~= '"' then break end
        parts[#parts + 1] = '"'
        from = at + 1
      end
      cell = table.concat(parts)
    else
      local stop = csv:find("[,\r\n]", at) or #csv + 1
      cell, at = csv:sub(at, stop - 1), stop
    end
    row[#row + 1] = cell
    local mark = csv:sub(at, at)
    if mark == "," then
      at = at + 1
      if at > #csv then row[#row + 1] = "" end
    else
      at = at + (csv:sub(at, at + 1) == "\r\n" and 2 or 1)
      rows[#rows + 1], row = row, {}
      if #rows > limit then return rows, at <= #csv end
    end
  end
  if #row > 0 then rows[#rows + 1] = row end
  return rows, false
end

local function shown(cell)
  local text = cell:gsub("[%c]", function(c) return c == "\n" and "\\n" or c == "\t" and "\\t" or "?" end)
  if #text <= MAX_CELL then return text end
  local cut = utf8.offset(text, 0, MAX_CELL) or MAX_CELL
  return text:sub(1, cut - 1) .. string.format("... [%d bytes]", #cell)
end

-- Asks a database; returns the CSV, or nil and a message.
local function ask(path, sql, ctx)
  local there, facts = pcall(hygge.fs.stat, as_file(path))
  if not there then return nil, tostring(facts) end
  if not facts or facts.type ~= "file" then
    return nil, path .. " is not a file: glob finds databases, for example `**/*.{db,sqlite,sqlite3}`"
  end
  local words = command(path)
  local started, result = pcall(hygge.exec, words[1], { unpack(words, 2) }, { stdin = sql .. "\n;\n", timeout = "30s" })
  if not started then
    ctx.progress("sqlite3 cannot be started")
    return nil, tostring(result):find("not", 1, true) and GET or tostring(result)
  end
  if result.timed_out then
    return nil, "the question took longer than 30 seconds: ask for less, with WHERE and LIMIT, or look at the plan with EXPLAIN QUERY PLAN"
  end
  if result.stderr ~= "" or result.code ~= 0 then
    return nil, ((result.stderr ~= "" and result.stderr or result.stdout):gsub("%s+$", ""))
  end
  return result.stdout
end

local path = { type = "string", minLength = 1, description = "The database file, relative to the working folder." }

hygge.register_tool {
  name = "sqlite_query",
  label = "Ask a SQLite database",
  description = "Runs SQL against a SQLite database file that it cannot change, and returns the rows as `a | b | c` under their "
    .. "column names. Call `sqlite_schema` first, unless you know the tables. SELECT, WITH, VALUES, EXPLAIN and PRAGMA work; "
    .. "statements that write fail.",
  parallelizable = true,
  timeout = "60s",
  annotations = { read_only = true, idempotent = true },
  permission = permission,
  input_schema = {
    type = "object",
    properties = {
      path = path,
      sql = { type = "string", minLength = 1, maxLength = 20000, description = "One statement." },
      limit = { type = "integer", minimum = 1, maximum = 1000, description = "How many rows to show; 50 when absent." },
    },
    required = { "path", "sql" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    if ("\n" .. input.sql):find("\n%.") then
      return failed("a line that begins with a dot is a command of the program sqlite3, not SQL: only SQL runs here")
    end
    local csv, message = ask(input.path, input.sql, ctx)
    if not csv then return failed(message) end
    local limit = input.limit or 50
    local rows, has_more = rows_of(csv, limit)
    if #rows == 0 then return { content = "no rows", metadata = { rows = 0 } } end
    local lines = {}
    for i, row in ipairs(rows) do
      for place, cell in ipairs(row) do row[place] = shown(cell) end
      lines[i] = table.concat(row, " | ")
    end
    local count = #rows - 1
    if has_more then lines[#lines + 1] = string.format("[there are more than %d rows: raise limit, or ask for less]", count) end
    return { content = table.concat(lines, "\n"), metadata = { rows = count, more = has_more } }
  end,
}

hygge.register_tool {
  name = "sqlite_schema",
  label = "Tables of a SQLite database",
  description = "Lists the tables, views and indexes of a SQLite database file as the SQL that made them.",
  parallelizable = true,
  timeout = "60s",
  annotations = { read_only = true, idempotent = true },
  permission = permission,
  input_schema = {
    type = "object",
    properties = {
      path = path,
      like = { type = "string", minLength = 1, maxLength = 200, description = "Only those whose name contains this." },
    },
    required = { "path" },
    additionalProperties = false,
  },
  execute = function(ctx, input)
    local like = input.like and " AND instr(lower(name), lower('" .. input.like:gsub("'", "''") .. "')) > 0" or ""
    local csv, message = ask(input.path,
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL" .. like .. " ORDER BY type = 'index', name", ctx)
    if not csv then return failed(message) end
    local rows, has_more = rows_of(csv, 200)
    local lines = {}
    for i = 2, #rows do lines[i - 1] = (rows[i][1]:gsub("%s+", " ")):sub(1, 2000) .. ";" end
    if #lines == 0 then return input.like and "nothing there is named like " .. input.like or "the database has no tables" end
    if has_more then lines[#lines + 1] = "[there are more than 199: use like]" end
    return { content = table.concat(lines, "\n"), metadata = { objects = #rows - 1 } }
  end,
}
