local A, B = string.rep("a", 40), string.rep("b", 40)
local BLAME = A .. " 1 1 2\nauthor Ada\nsummary author Bo\n\tauthor Bo\n" .. A .. " 2 2\n\ttwo\n" .. B .. " 3 3 1\nauthor Bo\n\tthree\n"

local asked
local function repository(log, blame)
  asked = {}
  fake.exec(function(_, args)
    asked[#asked + 1] = table.concat(args, " ")
    if args[1] == "log" then return log end
    if args[1] == "blame" then return blame or BLAME end
    if args[2] == "--show-prefix" then return "\n" end
    return hygge.session.cwd .. "\n"
  end)
end

local function commit(name, days)
  return string.format("\31%s\31day-%d\31%d\n", name, days, hygge.now() - days * 86400)
end

before(function()
  fake.file("src/a.rs", "x")
end)

describe("who_knows", function()
  it("ranks people by their lines and their recent commits", function()
    repository(commit("Bo", 1) .. commit("Cy", 700) .. commit("Bo", 900) .. commit("Ada", 1000))
    local result = call("who_knows", { path = "src/a.rs" })
    expect(result.content).to_be("src/a.rs: 3 lines, 4 commits\n1. Bo: 1 line (33 %), 2 commits, the last day-1\n"
      .. "2. Ada: 2 lines (66 %), 1 commit, the last day-1000\n3. Cy: 1 commit, the last day-700")
    repository(commit("Bo", 1), BLAME .. string.rep("0", 40) .. " 4 4 1\nauthor Not Committed Yet\n\tnew\n")
    expect(call("who_knows", { path = "src/a.rs" }).content).never.to_contain("Not Committed Yet")
    expect(asked[1]).to_match(" %-%- src/a%.rs$")
    expect(asked[2]).to_be("blame --porcelain -w -- src/a.rs")
  end)

  it("takes a folder, and a part of a file", function()
    repository(commit("Bo", 1))
    expect(call("who_knows", { path = "src" }).content).to_be("src: 1 commit\n1. Bo: 1 commit, the last day-1")
    expect(call("who_knows", { path = "src", from = 1 }).content).to_contain("is a folder")
    repository("")
    expect(call("who_knows", { path = "src/a.rs", from = 2, to = 3 }).content).to_contain("src/a.rs:2-3: 3 lines\n1. Ada: 2 lines")
    expect(asked[1]).to_be("blame --porcelain -w -L 2,3 -- src/a.rs")
  end)

  it("takes odd names for paths only", function()
    fake.file("--output=x y", "x")
    repository(commit("Bo", 1))
    expect(call("who_knows", { path = "--output=x y" }).is_error).to_be(false)
    expect(asked[1]).to_match(" %-%- %-%-output=x y$")
    expect(call("who_knows", { path = "none" }).content).to_contain("none does not exist here")
  end)

  it("names the owners", function()
    repository(commit("Bo", 1))
    fake.file("CODEOWNERS", "# who\n* @all\n/src/ @org/core @ada # note\ndocs/** @docs\n")
    expect(call("who_knows", { path = "src/a.rs" }).content).to_contain("\nowners: @org/core @ada (CODEOWNERS:3)\n")
    expect(call("who_knows", { path = "." }).content).to_contain("owners: @all (CODEOWNERS:2)")
  end)

  it("does not print what names smuggle in", function()
    repository(commit("B\27[2Jo", 1))
    expect(call("who_knows", { path = "src" }).content).never.to_contain("\27")
  end)

  it("says what git said", function()
    fake.exec(function() return { code = 128, stderr = "fatal: not a git repository\n" } end)
    local result = call("who_knows", { path = "src" })
    expect(result.is_error).to_be(true)
    expect(result.content).to_be("fatal: not a git repository")
    repository("", "")
    expect(call("who_knows", { path = "src" }).content).to_be("src has no commits yet")
  end)
end)

describe("CODEOWNERS", function()
  local owners = require("owners")
  local function of(pattern, path) return (owners.find(pattern .. " @x", path)) end

  it("has patterns like those of .gitignore", function()
    for _, case in ipairs {
      { "*.rs", "src/deep/a.rs" }, { "/src/", "src/a/b.rs" }, { "docs/*", "docs/a.md" }, { "apps/**/test", "apps/a/b/test/c" },
      { "**/logs", "a/logs/x" }, { "apps/", "x/apps/y" }, { "/a.b", "a.b" }, { "src", "src/a.rs" },
    } do
      expect(of(case[1], case[2])).to_be("@x")
    end
    for _, case in ipairs {
      { "/src/", "lib/src/a.rs" }, { "docs/*", "docs" }, { "*.rs", "a.rsx" }, { "/a.b", "axb" }, { "#src", "#src" },
    } do
      expect(of(case[1], case[2])).to_be_nil()
    end
  end)

  it("lets the last line win, also one without owners", function()
    expect((owners.find("* @a\n*.rs @b\n/gen/\n", "a.rs"))).to_be("@b")
    expect((owners.find("* @a\n/gen/\n", "gen/a.rs"))).to_be_nil()
    expect((owners.find("[Section][2] @s\n^[Optional]\n* @a\r\n", "a"))).to_be("@a")
    expect((owners.find("", "a"))).to_be_nil()
  end)
end)
