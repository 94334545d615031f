local asked
local function answers(csv, more)
  fake.file("app.db", "x")
  fake.exec(function(command, args, options)
    asked = { line = command .. " " .. table.concat(args, " "), stdin = options.stdin }
    local result = more or {}
    result.stdout = csv
    return result
  end)
end

local function query(sql, limit)
  return call("sqlite_query", { path = "app.db", sql = sql, limit = limit })
end

describe("sqlite_query", function()
  it("opens the file read-only and gives the SQL apart from the command", function()
    answers("id,name\r\n1,Ada\r\n")
    expect(query("SELECT * FROM people").content).to_be("id | name\n1 | Ada")
    expect(asked.line).to_be("sqlite3 -batch -safe -readonly -csv -header -nullvalue NULL ./app.db")
    expect(asked.stdin).to_contain("SELECT * FROM people")
  end)

  it("asks for the same permissions whatever the SQL is", function()
    local one = needs("sqlite_query", { path = "app.db", sql = "SELECT 1" })
    expect(needs("sqlite_query", { path = "app.db", sql = "DROP TABLE x; -- '" })).to_equal(one)
    expect(one[1].category).to_be("file.read")
    expect(one[2].category).to_be("shell")
    expect(one[2].target).to_be("sqlite3 -batch -safe -readonly -csv -header -nullvalue NULL ./app.db")
  end)

  it("takes no file name for an option or a URI", function()
    for name, expected in pairs { ["-cmd"] = "./-cmd", ["file:x?mode=rwc"] = "./file:x?mode=rwc", ["a b.db"] = "./a b.db" } do
      fake.file(name, "x")
      fake.exec(function(_, args)
        expect(args[#args]).to_be(expected)
        return ""
      end)
      expect(call("sqlite_query", { path = name, sql = "SELECT 1" }).content).to_be("no rows")
    end
  end)

  it("reads quoted cells", function()
    answers('a,b\r\n"say ""hi"", Ada","two\nlines"\r\n,NULL\r\n"",x\r\n')
    expect(query("x").content).to_be('a | b\nsay "hi", Ada | two\\nlines\n | NULL\n | x')
  end)

  it("cuts long cells between characters, and rows at the limit", function()
    answers("a\r\n" .. string.rep("ä", 400) .. "\r\n2\r\n3\r\n")
    local result = query("x", 2)
    expect(result.content).to_contain("ä... [800 bytes]\n2\n[there are more than 2 rows")
    expect(utf8.len(result.content)).to_be_truthy()
    expect(result.metadata).to_equal({ rows = 2, more = true })
    answers("a\r\n1\r\n2\r\n")
    expect(query("x", 2).metadata).to_equal({ rows = 2, more = false })
  end)

  it("refuses commands of the program", function()
    answers("")
    for _, sql in ipairs { ".shell id", "SELECT 1;\n.once x" } do
      expect(query(sql).content).to_contain("only SQL runs here")
    end
  end)

  it("passes on errors, timeouts and a missing program", function()
    answers("", { code = 1, stderr = "Error: near line 1: attempt to write a readonly database\n" })
    local result = query("DELETE FROM people")
    expect(result.is_error).to_be_truthy()
    expect(result.content).to_be("Error: near line 1: attempt to write a readonly database")
    answers("", { timed_out = true })
    expect(query("x").content).to_contain("longer than 30 seconds")
    fake.exec(function() error("hygge.exec: sqlite3 was not found") end)
    expect(query("x").content).to_contain("install `sqlite3`")
    expect(call("sqlite_query", { path = "none.db", sql = "x" }).content).to_contain("none.db is not a file")
  end)
end)

describe("sqlite_schema", function()
  it("shows how the tables were made", function()
    answers('sql\r\n"CREATE TABLE people(\n  id INTEGER,\n  name TEXT\n)"\r\n')
    expect(call("sqlite_schema", { path = "app.db" }).content).to_be("CREATE TABLE people( id INTEGER, name TEXT );")
  end)

  it("quotes a name", function()
    answers("")
    expect(call("sqlite_schema", { path = "app.db", like = "o'hara" }).content).to_be("nothing there is named like o'hara")
    expect(asked.stdin).to_contain("lower('o''hara')")
    expect(call("sqlite_schema", { path = "app.db" }).content).to_be("the database has no tables")
  end)
end)
