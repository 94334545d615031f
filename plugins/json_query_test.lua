local function query(text, document, more)
  fake.file("a.json", type(document) == "string" and document or hygge.json.encode(document))
  local input = more or {}
  input.path, input.query = input.path or "a.json", text
  return call("json_query", input)
end

local PEOPLE = { users = { { name = "Ada", age = 36 }, { name = "Bö", age = 20, tags = hygge.json.array {} } }, version = "1.2" }

describe("json_query", function()
  it("takes values by paths", function()
    for text, expected in pairs {
      ["."] = '{"users":[{"age":36,"name":"Ada"},{"age":20,"name":"Bö","tags":[]}],"version":"1.2"}',
      [".version"] = '"1.2"', ["$.users[-1].age"] = "20", [".users[*].name"] = '"Ada"\n"Bö"', [".users[?age<=20].name"] = '"Bö"',
      [".users[?name~A]['age']"] = "36", [".users | length"] = "2", [".users[1].tags | type"] = '"array"', ["..age | unique"] = "36\n20",
      [".none"] = "nothing matches .none", [".users[9]"] = "nothing matches .users[9]",
    } do
      expect(query(text, PEOPLE).content).to_be(expected)
    end
  end)

  it("names the place of a mistake in the query", function()
    for text, place in pairs { [".a[?b**3]"] = "character 3", [".a b"] = "character 3", [".a | sort"] = "unknown ending sort" } do
      local result = query(text, {})
      expect(result.is_error).to_be(true)
      expect(result.content).to_contain(place)
    end
  end)

  it("says why a file cannot be read", function()
    expect(query(".", "{broken").is_error).to_be(true)
    expect(query(".", "").content).to_contain("a.json")
    expect(query(".", {}, { path = "none.json" }).content).to_contain("none.json")
    expect(query(".", {}, { path = "none/*.json" }).content).to_be("no file matches none/*.json")
  end)

  it("asks many files, and goes on after one that is broken", function()
    fake.file("p/-x y/package.json", '{"license": "MIT"}')
    fake.file("p/z/package.json", "{")
    local result = query(".license", {}, { path = "p/*/package.json" })
    expect(result.content).to_match('^p/%-x y/package%.json: "MIT"\n%[p/z/package%.json: .*%]$')
    expect(result.metadata).to_equal { matches = 1, files = 2, unreadable = 1 }
  end)

  it("is bounded", function()
    local many = {}
    for i = 1, 300 do many[i] = i end
    expect(query("[]", many).content).to_contain("\n100\n[200 more; raise limit or narrow the query]")
    expect(query("[0]", { string.rep("x", 5000) }).content).to_contain("[cut, 5002 bytes]")
  end)
end)
