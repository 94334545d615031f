local support = require("support")
local wait, equal, contains = support.wait, support.equal, support.contains

-- Another client that answers, and a function that returns the newest request that it was sent.
local function another_that_answers(scene)
  local other = scene.other()
  local request
  equal(
    nil,
    (other.request("permissions.subscribe", {}, function(item)
      request = item.request or request
    end))
  )
  return other, function()
    return request
  end
end

fact("an ask is answered, with the diff beside it", function(scene)
  local seen
  support.answer(function(labels, options)
    seen = { labels = labels, options = options, diff = support.shown("diff") }
    return "Allow once"
  end)
  scene.connect()
  local err, result = scene.call("write", { path = "new.txt", content = "one\ntwo\n" })
  equal(nil, err)
  equal(false, result.is_error)
  equal("one\ntwo\n", scene.read("new.txt"))
  equal("toold_ask", seen.options.kind)
  contains("write wants file.write: " .. scene.work .. "/new.txt", seen.options.prompt)
  contains("+one\n+two", seen.diff)
  equal("Deny", seen.labels[#seen.labels - 1])
  equal(nil, support.shown("diff"))
end)

fact("a denial says why", function(scene)
  support.answer(function()
    return "Deny, and say why"
  end, function()
    return "use the other file"
  end)
  scene.connect()
  local _, result = scene.call("bash", { command = "touch made" })
  equal(true, result.is_error)
  contains("use the other file", result.content[1].text)
  equal(nil, (vim.uv or vim.loop).fs_stat(scene.work .. "/made"))
end)

fact("an answer can hold for the session, and for more than was asked", function(scene)
  local asked = {}
  support.answer(function(labels, options)
    asked[#asked + 1] = options.prompt
    for _, label in ipairs(labels) do
      if label:find("^Allow in this nvim session: ") then
        return label
      end
    end
    return "Allow in this nvim session"
  end)
  scene.connect()
  for _ = 1, 2 do
    local _, result = scene.call("bash", { command = "touch made" })
    equal(false, result.is_error)
  end
  equal(1, #asked)
end)

fact("an ask that is left open is shown again by ToolAsks", function(scene)
  local choice
  support.answer(function()
    return choice
  end)
  scene.connect()
  local result
  scene.toold.call("bash", { command = "echo it ran" }, {}, function(_, got)
    result = got
  end)
  support.noticed("not answered")
  equal("toold: 1 ask, bash", scene.toold.statusline():sub(1, 18))
  choice = "Allow once"
  vim.cmd("ToolAsks")
  wait("the result", function()
    return result
  end)
  contains("it ran", result.content[1].text)
  vim.cmd("ToolAsks")
  support.noticed("nothing to answer")
end)

fact("a request that another client answers closes", function(scene)
  local prompt = support.pending_choice()
  scene.connect()
  local other, request = another_that_answers(scene)
  local result
  scene.toold.call("write", { path = "new.txt", content = "x\n" }, {}, function(_, got)
    result = got
  end)
  local choose = prompt()
  wait("the request of the other client", request)
  wait("the diff", function()
    return support.shown("diff")
  end)
  equal(nil, (other.request("permissions.reply", { request_id = request().request_id, action = "deny" })))
  wait("the result", function()
    return result
  end)
  equal(true, result.is_error)
  support.noticed("denied by")
  wait("the diff goes", function()
    return not support.shown("diff")
  end)
  equal("toold", scene.toold.statusline())
  choose()
  support.noticed("is already answered: denied by")
end)

fact("permission requests of agents appear in the editor", function(scene)
  support.answer(function()
    return "Allow once"
  end)
  scene.connect()
  local agent = scene.other("agent")
  local err, result = agent.request("tools.execute", { name = "bash", arguments = { command = "echo for an agent" } })
  equal(nil, err)
  contains("for an agent", result.content[1].text)
end)

fact("an agent's ask for a folder says who wants it, and is remembered for that client", function(scene)
  local folder = scene.base .. "/home/letters"
  vim.fn.mkdir(folder, "p")
  scene.write(folder .. "/letter.txt", "dear reader\n")
  local seen = {}
  support.answer(function(labels, options)
    seen[#seen + 1] = { labels, options.prompt }
    return "Allow, and remember it for this client"
  end)
  scene.connect()
  local function read()
    local agent = scene.other()
    local params = { cwd = folder, role = "agent", client = { name = "the agent" } }
    local err, opened = agent.request("session.open", params)
    equal(nil, err)
    local _, result = agent.request("tools.execute", { name = "read", arguments = { path = "letter.txt" } })
    contains("dear reader", result.content[1].text)
    return opened.workspace
  end
  equal("pending", read())
  local labels = { "Allow, and remember it for this client", "Allow in this the agent session", "Deny", "Deny, and say why" }
  local reason = ("use %s as a workspace of the agent: its tools may read everything in there"):format(folder)
  equal({ { labels, "read wants a folder to work in: " .. reason } }, seen)
  equal("open", read())
  equal(1, #seen)
end)

fact("one key answers, once there was time to read the prompt", function(scene)
  local keys = require("toold.keys")
  local read_for = keys.read_for
  scene.connect()
  local function press(key)
    vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(key, true, false, true), "mx", false)
  end
  local function asked(command)
    local result
    scene.toold.call("bash", { command = command }, {}, function(_, got)
      result = got
    end)
    wait("the prompt", function()
      return support.shown("toold_ask")
    end)
    return function()
      return result
    end
  end
  local first = asked("echo it ran")
  local shown = support.shown("toold_ask")
  contains("bash wants shell: echo it ran", shown)
  contains("  y  Allow once", shown)
  contains("  n  Deny", shown)
  keys.read_for = 60000
  press("y")
  support.noticed("too soon after the prompt")
  equal(nil, first())
  contains("bash wants", support.shown("toold_ask"))
  keys.read_for = 0
  press("y")
  contains("it ran", wait("the result", first).content[1].text)
  equal(nil, support.shown("toold_ask"))
  local long = ("x"):rep(vim.o.columns)
  local second = asked("touch made" .. long)
  equal(true, #support.shown("toold_ask"):gsub("[^x]", "") >= vim.o.columns)
  press("n")
  equal(true, wait("the denial", second).is_error)
  -- One that is put aside comes back.
  local third = asked("echo later")
  press("<Esc>")
  support.noticed("not answered")
  equal(nil, support.shown("toold_ask"))
  vim.cmd("ToolAsks")
  wait("the prompt again", function()
    return support.shown("toold_ask")
  end)
  press("y")
  contains("later", wait("the result", third).content[1].text)
  -- One that ends elsewhere closes, and takes its keys along.
  local fourth = asked("echo elsewhere")
  local other, request = another_that_answers(scene)
  wait("the request", request)
  equal(nil, (other.request("permissions.reply", { request_id = request().request_id, action = "allow" })))
  wait("the result", fourth)
  support.noticed("allowed by")
  equal(nil, support.shown("toold_ask"))
  keys.read_for = read_for
end)

-- All clients describe in the same words what an answer covers, and each is tested with these cases.
fact("the answers are those of all clients", function()
  local folder = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
  local file = assert(io.open(folder .. "/../../../proto/tests/answers.json", "rb"))
  local cases = vim.json.decode(file:read("a"))
  file:close()
  for _, case in ipairs(cases) do
    local shown = {}
    for _, choice in ipairs(require("toold.asks").choices(case.ask)) do
      shown[#shown + 1] = choice.label:sub(1, 1):lower() .. choice.label:sub(2)
    end
    table.insert(case.answers, "deny, and say why")
    equal(case.answers, shown)
  end
end)

fact("an ask that is open says who waits for it now", function(scene)
  local shown = {}
  vim.ui.select = function(_, options)
    shown[#shown + 1] = options.prompt
  end
  scene.connect()
  local asks, prompts = require("toold.asks"), require("toold.prompts")
  local function asked(...)
    local ask = { request_id = "ask_1", tool = "bash", category = "shell", target = "make", asked_at = "", agents = { ... } }
    asks.on_item({ type = "asked", request = ask })
  end
  asked("codex")
  wait("the prompt", function()
    return #shown == 1
  end)
  asked("codex", "claude-code")
  support.noticed("toold: now bash for codex and claude-code wants shell: make")
  equal("bash for codex and claude-code wants shell: make", prompts.headline("ask_1"))
  equal(1, prompts.waiting())
  vim.cmd("ToolAsks")
  wait("the prompt again", function()
    return #shown == 2
  end)
  equal({ "bash for codex wants shell: make", "bash for codex and claude-code wants shell: make" }, shown)
  asks.on_item({ type = "resolved", request_id = "ask_1", how = "the call ended" })
  equal(0, prompts.waiting())
end)

fact("asks come one after another", function(scene)
  local open, most = 0, 0
  vim.ui.select = function(items, _, on_choice)
    open = open + 1
    most = math.max(most, open)
    vim.defer_fn(function()
      open = open - 1
      on_choice(items[1])
    end, 1)
  end
  scene.connect()
  local done = 0
  for i = 1, 5 do
    scene.toold.call("bash", { command = "touch made" .. i }, {}, function(_, result)
      equal(false, result.is_error)
      done = done + 1
    end)
  end
  wait("all five", function()
    return done == 5
  end)
  equal(1, most)
end)

fact("no prompt comes in the midst of typing", function(scene)
  local mode = vim.api.nvim_get_mode
  local asked = false
  support.answer(function()
    asked = true
    return "Allow once"
  end)
  scene.connect()
  local typing, looked = true, 0
  vim.api.nvim_get_mode = function()
    looked = looked + 1
    return typing and { mode = "i", blocking = false } or mode()
  end
  local result
  scene.toold.call("bash", { command = "echo later" }, {}, function(_, got)
    result = got
  end)
  wait("the ask", function()
    return scene.toold.statusline():find("1 ask") and looked > 2
  end)
  equal(false, asked)
  support.noticed("bash wants shell: echo later (level read; in")
  typing = false
  wait("the result", function()
    return result
  end)
  vim.api.nvim_get_mode = mode
  equal(true, asked)
end)

fact("control characters of a command are shown and not obeyed", function()
  local headline = require("toold.asks").headline({ tool = "bash", category = "shell", target = "echo \27[2J\nrm x" })
  equal("bash wants shell: echo ^[[2J rm x", headline)
  local placed = { tool = "bash", category = "shell", target = "ls", level = "read", cwd = vim.fn.getcwd() }
  local folder = vim.fn.fnamemodify(vim.fn.getcwd(), ":~")
  equal(("bash wants shell: ls (level read; in %s)"):format(folder), require("toold.asks").headline(placed))
end)

fact("a request names every agent that waits for the answer", function()
  local both = { tool = "bash", category = "shell", target = "ls", agent = "codex", agents = { "codex", "nvim", "claude" } }
  equal("bash for codex and claude wants shell: ls", require("toold.asks").headline(both))
end)

local QUESTION = {
  question = "Which colour?",
  options = { { label = "Red", description = "as blood" }, { label = "Green" } },
}

fact("a question is answered by a choice", function(scene)
  local seen
  support.answer(function(labels, options)
    seen = { labels, options.prompt }
    return "Green"
  end)
  scene.connect()
  local _, result = scene.call("question", QUESTION)
  contains("Green", result.content[1].text)
  equal({ { "Red  (as blood)", "Green", "Do not answer" }, "Which colour?" }, seen)
end)

fact("a question that another client answers closes, and says who did", function(scene)
  local prompt = support.pending_choice()
  scene.connect()
  local other = scene.other()
  local asked
  other.request("questions.subscribe", {}, function(item)
    asked = item.type == "asked" and item.request or asked
  end)
  local result
  scene.toold.call("question", QUESTION, {}, function(_, got)
    result = got
  end)
  local choose = prompt()
  wait("the question of the other client", function()
    return asked
  end)
  equal(nil, (other.request("questions.reply", { request_id = asked.request_id, answer_ids = { asked.options[2].id } })))
  wait("the result", function()
    return result
  end)
  support.noticed("answered by other: Which colour?")
  choose()
  support.noticed("is already answered: answered by other")
end)

fact("a question takes several choices, or free text", function(scene)
  local marks = 0
  support.answer(function(labels)
    marks = marks + 1
    return ({ "Red", "Green", "Send" })[marks] or error(vim.inspect(labels))
  end)
  scene.connect()
  local _, result = scene.call("question", vim.tbl_extend("force", QUESTION, { multiple = true }))
  contains("Red", result.content[1].text)
  contains("Green", result.content[1].text)
  support.answer(function()
    return "Type an answer"
  end, function()
    return "Blue, please"
  end)
  _, result = scene.call("question", vim.tbl_extend("force", QUESTION, { allow_other = true }))
  contains("Blue, please", result.content[1].text)
end)

fact("a question need not be answered", function(scene)
  support.answer(function()
    return "Do not answer"
  end)
  scene.connect()
  local err, result = scene.call("question", QUESTION)
  equal(nil, err)
  contains("not", result.content[1].text)
  -- That the question is done may be heard of after the call's end.
  wait("no question is left", function()
    return scene.toold.statusline() == "toold"
  end)
end)
