describe("todo_finder", function()
  it("finds comments only, grouped by file", function()
    fake.file("src/a.rs", "// TODO(ada): tidy up\nlet TODO = 1;\nfn f() {} // FIXME: größe\r\n")
    fake.file("-b c.py", "# TODO later\nx = 'TODOS'\n# HACK(#12) - odd\n")
    fake.file("c.bin", "\0\0# TODO hidden\n")
    local result = call("todo_finder")
    expect(result.content)
      .to_be("-b c.py (2)\n  1: TODO later\n  3: HACK (#12) odd\nsrc/a.rs (2)\n  1: TODO (ada) tidy up\n  3: FIXME größe")
    expect(result.metadata).to_equal { found = 4, files = 3, skipped = 1 }
  end)

  it("groups by owner and by tag", function()
    fake.file("a.rs", "// TODO(ada): one\n// TODO two\n// BUG(ada) three\n")
    expect(call("todo_finder", { group_by = "owner" }).content)
      .to_be("(nobody) (1)\n  a.rs:2: TODO two\nada (2)\n  a.rs:1: TODO one\n  a.rs:3: BUG three")
    expect(call("todo_finder", { group_by = "tag", tags = { "BUG" } }).content).to_be("BUG (1)\n  a.rs:3: (ada) three")
  end)

  it("is bounded, and says when there is nothing", function()
    expect(call("todo_finder").content).to_be("none found in 0 files")
    fake.file("a.rs", string.rep("// TODO x" .. string.rep("y", 500) .. "\n", 10))
    local text = call("todo_finder", { limit = 3 }).content
    expect(text).to_match("%[7 more%]$")
    expect(#text < 800).to_be(true)
  end)

  it("uses the tags of the configuration", function()
    hygge.config.tags = { "REVIEW" }
    fake.file("a.lua", "-- REVIEW: this\n-- TODO: that\n")
    expect(call("todo_finder").content).to_be("a.lua (1)\n  1: REVIEW this")
    hygge.config.tags = nil
  end)
end)
