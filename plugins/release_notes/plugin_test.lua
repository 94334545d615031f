local asked
local function history(commits, tag)
  asked = {}
  fake.exec(function(command, args)
    asked[#asked + 1] = command .. " " .. table.concat(args, " ")
    if args[1] == "describe" then
      return tag and { stdout = tag .. "\n" } or { code = 128, stderr = "fatal: No names found" }
    end
    if args[1] == "tag" then return "v2.0\nv1.1\nv1.0\n" end
    local out = {}
    for _, commit in ipairs(commits) do
      out[#out + 1] = table.concat({ commit[1], commit[2], commit[3], commit[4] or "" }, "\31") .. "\30\n"
    end
    return table.concat(out)
  end)
end

describe("release_notes", function()
  it("sorts commits since the last tag", function()
    history({
      { "a1", "Ada", "feat(api): streams" },
      { "a2", "Bo", "fix: no crash with 日本 names" },
      { "a3", "Ada", "Remove the old flag" },
      { "a4", "Ada", "refactor!: new file format", "text" },
      { "a5", "Ada", "Wind, too", "words\n\nBREAKING CHANGE: rain is off" },
      { "a6", "Bo", "Rain is shown in blue" },
      { "a7", "Bo", "chore: tidy" },
    }, "v1.0")
    local result = call("release_notes")
    expect(result.content).to_be(table.concat({
      "7 commits from v1.0 to HEAD by 2 people",
      "\n## Breaking changes\n\n- new file format (a4)\n- Wind, too (a5)",
      "\n## Added\n\n- api: streams (a1)",
      "\n## Fixed\n\n- no crash with 日本 names (a2)",
      "\n## Removed\n\n- Remove the old flag (a3)",
      "\n## Changed\n\n- Rain is shown in blue (a6)",
      "\n## Behind the scenes\n\n- tidy (a7)",
      "\nBy Ada, Bo",
    }, "\n"))
    expect(asked[1]).to_be("git describe --tags --abbrev=0 HEAD^")
    expect(asked[2]).to_contain(" v1.0..HEAD --")
    expect(result.metadata).to_equal({ commits = 7, people = 2, since = "v1.0" })
  end)

  it("works without a tag, and between two points", function()
    history { { "a1", "Ada", "First" } }
    expect(call("release_notes").content).to_contain("1 commit from the beginning to HEAD by 1 person\n")
    expect(asked[2]).to_match(" HEAD %-%-$")
    history({ { "a1", "Ada", "First" } }, "v9")
    expect(call("release_notes", { since = "v1", ["until"] = "v2" }).content).to_contain("from v1 to v2")
    expect(#asked).to_be(1)
  end)

  it("takes no option for a point", function()
    history {}
    expect(function() call("release_notes", { since = "--output=x" }) end).to_raise("since")
    expect(function() call("release_notes", { ["until"] = "-h" }) end).to_raise("until")
    expect(function() render("release_notes", { since = "--output=x" }) end).to_raise("expected a tag")
    expect(#asked).to_be(0)
  end)

  it("shows control characters of commits to nobody", function()
    history { { "a1", "A\27[2Jda", "Fix\27[31m it\r\nnow" } }
    expect(call("release_notes").content).never.to_match("[\27\r]")
  end)

  it("is bounded", function()
    local many = {}
    for i = 1, 501 do many[i] = { "c" .. i, "Person " .. i, "fix: bug " .. string.rep("x", 500) } end
    history(many)
    local text = call("release_notes").content
    expect(text).to_contain("more than 500 commits")
    expect(text).to_contain("- [400 more]")
    expect(text).to_contain("470 more")
    expect(#text < 30000).to_be(true)
  end)

  it("says what git said", function()
    history {}
    expect(call("release_notes", { since = "v1" }).content).to_be("nothing changed from v1 to HEAD")
    fake.exec(function() return { code = 128, stderr = "fatal: not a git repository\n" } end)
    local result = call("release_notes")
    expect(result.is_error).to_be(true)
    expect(result.content).to_be("fatal: not a git repository")
    fake.exec(function() error("no git") end)
    expect(call("release_notes").content).to_contain("git-scm.com")
  end)
end)

describe("the prompt", function()
  it("gives the commits to a model", function()
    history({ { "a1", "Ada", "feat: streams" } }, "v1.0")
    local text = render("release_notes", { readers = "gardeners" })[1].content.text
    expect(text).to_contain("release notes for gardeners")
    expect(text).to_contain("- streams (a1)")
  end)

  it("raises what git said", function()
    fake.exec(function() return { code = 128, stderr = "fatal: not a git repository" } end)
    expect(function() render("release_notes") end).to_raise("not a git repository")
  end)
end)
