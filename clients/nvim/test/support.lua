--- A scene for each test: folders of its own, a daemon that the client starts there, and a check that nothing is left.

local M = {}

-- In milliseconds. No test waits longer for anything.
local PATIENCE = 30000

local PLUGIN = [[
hygge.register_tool{
  name = "greet", description = "Greets somebody. Politely.", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {
      name = {type = "string", description = "Whom"},
      times = {type = "integer", minimum = 1},
      loud = {type = "boolean"},
      language = {type = "string", enum = {"english", "norwegian"}},
      titles = {type = "array", items = {type = "string"}},
    },
    required = {"name"}, additionalProperties = false,
  },
  execute = function(ctx, input)
    for i = 1, input.times or 1 do
      ctx.progress{message = "greeting", progress = i, total = input.times or 1}
    end
    local hello = input.language == "norwegian" and "hei " or "hello "
    local titles = input.titles and table.concat(input.titles, " ") .. " " or ""
    return hello .. titles .. input.name .. (input.loud and "!" or "")
  end,
}
hygge.register_tool{
  name = "wait_for_ever", description = "Waits until it is stopped", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress{message = "waiting", progress = 1, total = 2} hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "fail", description = "Fails", input_schema = {type = "object"},
  execute = function() error("out of luck") end,
}
hygge.register_tool{
  name = "tell", description = "Tells the person", input_schema = {type = "object"},
  execute = function() hygge.notify("look here") return "told" end,
}
hygge.register_command{
  name = "hi", description = "Says hi", execute = function(ctx, input) return "hi " .. input end,
}
]]

function M.version()
  local version = vim.version()
  return ("%d.%d.%d"):format(version.major, version.minor, version.patch)
end

--- Waits until the condition returns a value, and returns it.
function M.wait(what, condition)
  local seen
  local ok = vim.wait(PATIENCE, function()
    seen = condition()
    return seen and true or false
  end, 5)
  if not ok then
    error(("timed out waiting for %s\n%s"):format(what, vim.inspect(M.notices)), 2)
  end
  return seen
end

function M.equal(expected, got)
  if not vim.deep_equal(expected, got) then
    error(("expected %s\n     got %s"):format(vim.inspect(expected), vim.inspect(got)), 2)
  end
end

function M.contains(part, whole)
  if type(whole) ~= "string" or not whole:find(part, 1, true) then
    error(("expected to find %q in %s"):format(part, vim.inspect(whole)), 2)
  end
end

--- Answers `vim.ui.select` and `vim.ui.input` by the functions, which get everything that the user sees.
function M.answer(select, input)
  vim.ui.select = function(items, options, on_choice)
    local labels = vim.tbl_map(options.format_item or tostring, items)
    local wanted = select(labels, options)
    for i, label in ipairs(labels) do
      if wanted and label:find(wanted, 1, true) then
        return on_choice(items[i], i)
      end
    end
    if wanted then
      error(("no choice has %q: %s"):format(wanted, vim.inspect(labels)))
    end
    on_choice(nil)
  end
  vim.ui.input = function(options, on_confirm)
    on_confirm(input(options))
  end
end

--- Takes the first choice of `vim.ui.select` when what the returned function waits for is called, and not before.
function M.pending_choice()
  local choose
  vim.ui.select = function(items, _, on_choice)
    choose = function()
      on_choice(items[1], 1)
    end
  end
  return function()
    M.wait("the prompt", function()
      return choose
    end)
    return choose
  end
end

--- All messages to the user.
M.notices = {}

function M.noticed(part)
  return M.wait("a notice with " .. part, function()
    for _, notice in ipairs(M.notices) do
      if notice:find(part, 1, true) then
        return notice
      end
    end
  end)
end

--- The lines of the first window whose buffer has this in its name or as its file type.
function M.shown(part)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if vim.api.nvim_buf_get_name(buffer):find(part, 1, true) or vim.bo[buffer].filetype == part then
      return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
    end
  end
  return nil
end

local VARIABLES = {
  "HOME",
  "XDG_CONFIG_HOME",
  "XDG_STATE_HOME",
  "XDG_RUNTIME_DIR",
  "TOOLD_SOCKET",
  "TOOLD_PERMISSION_READ_ONLY_COMMANDS",
  "PATH",
}

local function write(path, content)
  local file = assert(io.open(path, "wb"))
  file:write(content)
  file:close()
  return path
end

--- Folders for a daemon, made and removed by `toold-test-daemon`, which runs until its standard input is closed.
function M.folders()
  local toold = assert(vim.env.TOOLD, "TOOLD must name the program")
  local harness = vim.fn.fnamemodify(toold, ":h") .. "/toold-test-daemon"
  local text, status = "", nil
  local job = vim.fn.jobstart({ harness }, {
    on_stdout = function(_, parts)
      text = text .. table.concat(parts, "\n")
    end,
    on_stderr = function(_, parts)
      io.stderr:write(table.concat(parts, "\n"))
    end,
    on_exit = function(_, code)
      status = code
    end,
  })
  assert(job > 0, "can't start " .. harness)

  local function ask(request)
    text = ""
    vim.fn.chansend(job, vim.json.encode(request) .. "\n")
    M.wait("the answer of toold-test-daemon", function()
      return text:find("\n", 1, true) or status
    end)
    assert(not status, "toold-test-daemon ended")
    local answer = vim.json.decode(text)
    assert(not answer.error, answer.error)
    return answer
  end

  local folders = ask({ plugins = { ["tools.lua"] = PLUGIN } })
  --- The daemons of these folders, and the processes that they started.
  function folders.processes()
    return ask("processes").processes
  end
  --- Stops the daemon and checks that nothing is left of it.
  function folders.stop_daemon()
    ask("stop")
  end
  function folders.remove()
    vim.fn.chanclose(job, "stdin")
    M.wait("the end of toold-test-daemon", function()
      return status
    end)
    M.equal(0, status)
  end
  return folders
end

local count = 0

--- A new folder to work in, an environment that points to the daemon's folders, and a fresh client.
function M.scene(root, folders)
  count = count + 1
  local scene = { base = folders.root, work = folders.root .. "/work" .. count, socket = folders.socket }
  vim.fn.mkdir(scene.work)
  local before, here = {}, vim.fn.getcwd()
  for _, name in ipairs(VARIABLES) do
    before[name] = vim.env[name]
  end
  local notify, echo, select, input = vim.notify, vim.api.nvim_echo, vim.ui.select, vim.ui.input

  function scene.write(name, content)
    return write(name:sub(1, 1) == "/" and name or scene.work .. "/" .. name, content)
  end

  function scene.read(name)
    local file = assert(io.open(scene.work .. "/" .. name, "rb"))
    local content = file:read("*a")
    file:close()
    return content
  end

  for _, name in ipairs(VARIABLES) do
    vim.env[name] = folders.environment[name]
  end
  -- So that `echo` is asked about, too.
  vim.env.TOOLD_PERMISSION_READ_ONLY_COMMANDS = "ask"
  vim.env.PATH = folders.bin .. ":" .. vim.env.PATH
  vim.cmd("cd " .. scene.work)
  M.notices = {}
  vim.notify = function(message)
    M.notices[#M.notices + 1] = message
  end
  vim.api.nvim_echo = function(chunks)
    M.notices[#M.notices + 1] = chunks[1][1]
  end
  for name in pairs(package.loaded) do
    if name == "toold" or name:find("^toold%.") then
      package.loaded[name] = nil
    end
  end
  scene.toold = require("toold")

  --- Connects the client, starting the daemon.
  function scene.connect(options)
    scene.toold.setup(options or {})
    local answered, failure
    scene.toold.connect(function(err)
      answered, failure = true, err
    end)
    M.wait("the connection", function()
      return answered
    end)
    M.equal(nil, failure)
  end

  --- Calls a tool and waits for its end.
  function scene.call(name, arguments)
    local answered, err, result
    scene.toold.call(name, arguments, {}, function(...)
      answered = true
      err, result = ...
    end)
    M.wait("the end of " .. name, function()
      return answered
    end)
    return err, result
  end

  --- Another frontend, with a session in the same folder.
  function scene.other(role)
    local rpc = require("toold.rpc")
    local other = { calls = {} }
    rpc.open(scene.socket, function(err, connection)
      other.err, other.connection = err, connection
    end)
    M.wait("a second connection", function()
      return other.connection or other.err
    end)
    function other.request(method, params, on_item)
      local done, err, result
      other.connection:request(method, params, function(...)
        done = true
        err, result = ...
      end, on_item)
      M.wait("the answer to " .. method, function()
        return done
      end)
      return err, result
    end
    M.equal(nil, (other.request("session.open", { cwd = scene.work, role = role, client = { name = "other" } })))
    return other
  end

  scene.processes = folders.processes
  scene.stop_daemon = folders.stop_daemon

  function scene.log()
    local file = io.open(scene.socket .. ".log")
    return file and "--- log of the daemon\n" .. file:read("*a") or ""
  end

  --- Puts everything back.
  function scene.close()
    scene.toold.stop()
    pcall(vim.api.nvim_del_augroup_by_name, "toold")
    vim.notify, vim.api.nvim_echo, vim.ui.select, vim.ui.input = notify, echo, select, input
    vim.cmd("silent! only! | silent! %bwipeout!")
    vim.cmd("cd " .. here)
    for name in pairs(vim.fn.environ()) do
      if vim.tbl_contains(VARIABLES, name) and before[name] == nil then
        vim.env[name] = nil
      end
    end
    for name, value in pairs(before) do
      vim.env[name] = value
    end
    M.equal(0, vim.fn.delete(scene.work, "rf"))
  end

  scene.root = root
  return scene
end

return M
