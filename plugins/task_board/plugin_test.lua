local function add(text, more)
  local input = more or {}
  input.text = text
  return call("board_add", input)
end

describe("the board", function()
  it("is empty at first", function()
    expect(call("board_list").content).to_be("no tasks")
    expect(call("board_list", { state = "done" }).content).to_be("no tasks are done")
    expect(read("board://tasks")[1].text).to_be("no tasks")
    local claimed = call("board_claim", { who = "a" })
    expect(claimed.is_error).to_be_truthy()
    expect(claimed.content).to_be("no task is open")
  end)

  it("numbers tasks and shows their notes and tags", function()
    expect(add("Fix the login", { tags = { "web", "bug" }, note = "see auth.rs:12" }).content).to_contain("1. Fix the login (web, bug)")
    expect(add("Naïve  größe\n日本").content).to_contain("2. Naïve größe 日本")
    local text = call("board_list").content
    expect(text).to_contain("[ ] 1. Fix the login (web, bug)\n       see auth.rs:12\n[ ] 2.")
    expect(read("board://tasks")[1].text).to_be(text)
  end)

  it("does not take the same task twice", function()
    add("Fix the login")
    expect(add("Fix  the login").content).to_contain("that is task 1 already")
    expect(call("board_list").metadata.tasks).to_be(1)
  end)

  it("gives a task to one agent only", function()
    add("one")
    add("two")
    expect(call("board_claim", { who = "ada" }).content).to_contain("yours: [~] 1. one - claimed ada, just now")
    local refused = call("board_claim", { id = 1, who = "bo" })
    expect(refused.is_error).to_be_truthy()
    expect(refused.content).to_contain("ada has claimed task 1")
    expect(call("board_claim", { id = 1, who = "ada" }).is_error).to_be(false)
    expect(call("board_claim", { who = "bo" }).content).to_contain("2. two")
    expect(call("board_claim", { who = "cy" }).content).to_be("no task is open")
  end)

  it("finishes and gives back", function()
    add("one")
    call("board_claim", { id = 1, who = "ada" })
    expect(call("board_finish", { id = 1, who = "ada", reopen = true, note = "needs a key" }).content)
      .to_be("[ ] 1. one\n       needs a key")
    expect(call("board_finish", { id = 1, who = "bo", note = "in 3f2a" }).content).to_contain("[x] 1. one - done bo")
    expect(call("board_list").content).to_be("no tasks")
    expect(call("board_list", { state = "all" }).content).to_contain("in 3f2a")
    expect(call("board_claim", { id = 1, who = "cy" }).content).to_contain("reopen")
    expect(call("board_finish", { id = 7, who = "cy" }).content).to_contain("there is no task 7")
  end)

  it("forgets old tasks that are done, and says when it is full", function()
    for i = 1, 40 do
      add("task " .. i)
      call("board_finish", { id = i, who = "ada" })
    end
    for i = 1, 170 do add("open " .. i) end
    expect(call("board_list", { state = "done" }).metadata.tasks).to_be(30)
    expect(call("board_list").metadata.tasks).to_be(170)
    expect(add("one more").content).to_contain("the board is full")
  end)

  it("is a slash command", function()
    expect(command("board", "  Fix it ").content).to_contain("added: [ ] 1. Fix it")
    expect(command("board").content).to_be("[ ] 1. Fix it")
  end)

  it("refuses a task without a text", function()
    expect(function() call("board_add", {}) end).to_raise("text")
    expect(function() call("board_add", { text = "" }) end).to_raise("text")
  end)
end)
