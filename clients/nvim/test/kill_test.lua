--- A daemon that is killed, in each state of the editor: one plain message, and the next command works.

local support = require("support")
local equal, contains, wait = support.equal, support.contains, support.wait

local uv = vim.uv or vim.loop

--- The threads of a process that have not ended.
local function living(pid)
  return vim.tbl_filter(function(path)
    local ok, lines = pcall(vim.fn.readfile, path .. "/stat")
    return ok and lines[1] ~= nil and lines[1]:find("^%d+ %b() [^ZX]") ~= nil
  end, vim.fn.glob("/proc/" .. pid .. "/task/*", true, true))
end

--- Kills the daemon, and waits until it has ended. The editor handles no events meanwhile, so it does not know yet.
local function kill(pid)
  uv.kill(pid, "sigkill")
  local deadline = uv.hrtime() + 30e9
  -- A process that nobody has waited for remains, with one thread, which has closed its files.
  while not vim.tbl_isempty(living(pid)) do
    assert(uv.hrtime() < deadline, "the daemon did not end")
    uv.sleep(1)
  end
end

local function lost(scene)
  wait("the loss is seen", function()
    return not scene.toold.connected()
  end)
end

--- Runs `:Tool` with these words.
local function tool(words)
  vim.cmd("Tool " .. words)
end

local QUESTION = 'question {"question": "Which tea?", "options": [{"label": "green"}, {"label": "black"}]}'

-- Each gets the scene and a function that kills the daemon.
local STATES = {
  ["idle"] = function(scene, die)
    die()
    lost(scene)
  end,
  ["idle, and the loss not seen before the next command"] = function(_, die)
    die()
  end,
  ["in a call"] = function(scene, die)
    tool("wait_for_ever")
    wait("it runs", function()
      return scene.toold.statusline():find("waiting")
    end)
    die()
    lost(scene)
  end,
  ["in a call that is just being sent"] = function(scene, die)
    tool("wait_for_ever")
    die()
    lost(scene)
  end,
  ["in a call after which a file is read again"] = function(scene, die)
    scene.write("notes.txt", "green\n")
    vim.cmd("edit " .. scene.work .. "/notes.txt")
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "unsaved" })
    tool("wait_for_ever")
    wait("it runs", function()
      return scene.toold.statusline():find("waiting")
    end)
    die()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "unsaved, again" })
    lost(scene)
    vim.cmd("silent edit!")
  end,
  ["in a permission request that is answered before the loss is seen"] = function(scene, die)
    local prompt = support.pending_choice()
    tool("bash command='touch x'")
    local choose = prompt()
    die()
    choose()
    lost(scene)
  end,
  ["in a permission request that is answered after the loss"] = function(scene, die)
    local prompt = support.pending_choice()
    tool("bash command='touch x'")
    local choose = prompt()
    die()
    lost(scene)
    choose()
  end,
  ["in a permission request of another client"] = function(scene, die)
    local prompt = support.pending_choice()
    local other = scene.other("agent")
    other.connection:request("tools.execute", { name = "bash", arguments = { command = "touch x" }, call_id = "1" })
    local choose = prompt()
    die()
    lost(scene)
    choose()
  end,
  ["in a question that is answered before the loss is seen"] = function(scene, die)
    local prompt = support.pending_choice()
    tool(QUESTION)
    local choose = prompt()
    die()
    choose()
    lost(scene)
  end,
  ["in a question that is answered after the loss"] = function(scene, die)
    local prompt = support.pending_choice()
    tool(QUESTION)
    local choose = prompt()
    die()
    lost(scene)
    choose()
  end,
  ["while another client calls a tool of the editor"] = function(scene, die)
    local other = scene.other("agent")
    other.connection:request("tools.execute", { name = "nvim_buffers", arguments = {}, call_id = "1" })
    die()
    lost(scene)
  end,
  ["while it moves to another folder"] = function(scene, die)
    vim.fn.mkdir(scene.work .. "/below")
    vim.cmd("cd below")
    die()
    lost(scene)
    vim.cmd("cd ..")
  end,
}

for _, state in ipairs(vim.fn.sort(vim.tbl_keys(STATES))) do
  fact_of_its_own("a daemon is killed: " .. state, function(scene)
    scene.connect()
    local pid
    require("toold.client").request("daemon.status", {}, function(_, status)
      pid = status.pid
    end)
    wait("the pid", function()
      return pid
    end)
    vim.v.errmsg = ""
    support.notices = {}
    STATES[state](scene, function()
      kill(pid)
    end)
    tool("greet name=Bo")
    equal("hello Bo", wait("the result of the next command", function()
      return support.shown("toold://greet")
    end))
    -- On a busy machine the next command shows its progress as well.
    local about = vim.tbl_filter(function(notice)
      return not notice:find("toold: greet ", 1, true) and not notice:find(" waiting$")
    end, support.notices)
    local heard = table.concat(about, "\n")
    -- If the next command is the first to notice, it just starts another.
    if not state:find("not seen before the next command", 1, true) then
      contains("the daemon is gone", heard)
      equal({ about[1] }, about)
    end
    for _, raw in ipairs({ "traceback", ".lua:", "ECONN", "EPIPE", "nil value" }) do
      equal(nil, heard:find(raw, 1, true))
    end
    equal("", vim.v.errmsg)
  end)
end
