local asked
local function git(answers)
  asked = {}
  fake.exec(function(_, args, options)
    asked[#asked + 1] = table.concat(args, " ")
    local answer = answers[args[1]] or ""
    return type(answer) == "table" and answer or { stdout = answer }
  end)
end

local STATUS = [[
# branch.oid 1234
# branch.head größe
# branch.upstream origin/größe
# branch.ab +2 -1
1 A. N... 000000 100644 100644 0000 1234 staged file.txt
1 .M N... 100644 100644 100644 1234 1234 -changed.txt
2 R. N... 100644 100644 100644 1234 1234 R100 new.txt	old.txt
u UU N... 100644 100644 100644 100644 1 2 3 both.txt
? untracked.txt
]]

describe("git_summary", function()
  it("shows where the repository stands", function()
    git { status = STATUS, stash = "stash@{0} WIP\n", log = "abc 2026-01-01 Ada: First\n", shortlog = "   12\tAda\n" }
    local result = call("git_summary", { commits = 3 })
    for _, part in ipairs {
      "branch: größe (upstream origin/größe: 2 ahead, 1 behind)", "conflicts (1):\n  both.txt", "staged (2):\n  A staged file.txt",
      "changed (1):\n  M -changed.txt", "untracked (1):\n  untracked.txt", "old.txt -> new.txt", "stashes:\n  stash@{0} WIP",
      "last commits:\n  abc 2026-01-01 Ada: First", "authors of the last 90 days:\n  12 Ada",
    } do
      expect(result.content).to_contain(part)
    end
    expect(result.metadata.staged).to_be(2)
  end)

  it("is brief for a clean repository and one without commits", function()
    git { status = "# branch.oid (initial)\n# branch.head main\n" }
    expect(call("git_summary").content).to_be("branch: main (no upstream)\nclean: nothing staged, changed or untracked")
    expect(#asked).to_be(2)
  end)

  it("is bounded", function()
    git { status = "# branch.head main\n" .. string.rep("? file\n", 1000) }
    expect(call("git_summary").content).to_contain("... and 960 more")
  end)

  it("says what git said", function()
    git { status = { code = 128, stderr = "fatal: not a git repository\n" } }
    local result = call("git_summary")
    expect(result.is_error).to_be(true)
    expect(result.content).to_be("fatal: not a git repository")
  end)
end)

describe("git_changes", function()
  it("counts lines, and shows commits since a point", function()
    git { diff = "3\t1\ta b.txt\n-\t-\tlogo.png\n", log = "abc Ada: First\n" }
    expect(call("git_changes", { since = "v1" }).content)
      .to_be("2 files since v1: +3 -1\n  +3 -1  a b.txt\n  binary  logo.png\n\ncommits:\n  abc Ada: First")
    expect(asked[1]).to_be("diff --numstat v1 --")
    expect(call("git_changes").content).to_contain("2 files since HEAD")
  end)

  it("takes no option for a point", function()
    expect(function() call("git_changes", { since = "--output=x" }) end).to_raise("since")
  end)
end)
