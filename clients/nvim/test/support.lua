--- A place for each test: folders of its own, a daemon that the client starts there, and a look for what is left.

local uv = vim.uv or vim.loop

local M = {}

-- No wait in any test is longer, in milliseconds; what takes this long does not come.
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

--- Waits for a condition, which says what was seen, and gives that.
function M.wait(what, condition)
  local seen
  local ok = vim.wait(PATIENCE, function()
    seen = condition()
    return seen and true or false
  end, 5)
  if not ok then
    error(("waited in vain: %s\n%s"):format(what, vim.inspect(M.notices)), 2)
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

--- Answers `vim.ui.select` and `vim.ui.input` with what the functions say; they see all that the person would.
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

--- All that is said to the person.
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

--- The lines of the windows whose buffer has this in its name or file type.
function M.shown(part)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if vim.api.nvim_buf_get_name(buffer):find(part, 1, true) or vim.bo[buffer].filetype == part then
      return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
    end
  end
  return nil
end

local function processes(socket)
  local found, mark = {}, "TOOLD_SOCKET=" .. socket .. "\0"
  for _, entry in ipairs(vim.fn.glob("/proc/[0-9]*", true, true)) do
    local file = io.open(entry .. "/environ", "rb")
    -- It may have ended, or be somebody else's.
    local environment = file and file:read("*a") or ""
    if file then
      file:close()
    end
    local pid = tonumber(entry:match("%d+$"))
    if pid ~= vim.fn.getpid() and ("\0" .. environment):find("\0" .. mark, 1, true) then
      found[#found + 1] = pid
    end
  end
  return found
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

--- Folders for a daemon, with the real `toold` among its programs.
function M.base()
  local base = uv.fs_realpath(uv.fs_mkdtemp((vim.env.TMPDIR or "/tmp") .. "/toold-nvim-XXXXXX"))
  for _, name in ipairs({ "config/toold/plugins", "state", "run", "home", "bin" }) do
    vim.fn.mkdir(base .. "/" .. name, "p")
  end
  write(base .. "/config/toold/plugins/tools.lua", PLUGIN)
  assert(uv.fs_symlink(assert(vim.env.TOOLD, "TOOLD must name the program"), base .. "/bin/toold"))
  return base
end

local count = 0

--- A folder to work in, an environment that points to the base's folders, and a fresh client.
function M.place(root, base)
  count = count + 1
  local place = { base = base, work = base .. "/work" .. count, socket = base .. "/run/toold.sock" }
  vim.fn.mkdir(place.work)
  local before, here = {}, vim.fn.getcwd()
  for _, name in ipairs(VARIABLES) do
    before[name] = vim.env[name]
  end
  local notify, echo, select, input = vim.notify, vim.api.nvim_echo, vim.ui.select, vim.ui.input

  function place.write(name, content)
    return write(name:sub(1, 1) == "/" and name or place.work .. "/" .. name, content)
  end

  function place.read(name)
    local file = assert(io.open(place.work .. "/" .. name, "rb"))
    local content = file:read("*a")
    file:close()
    return content
  end

  vim.env.HOME = base .. "/home"
  vim.env.XDG_CONFIG_HOME = base .. "/config"
  vim.env.XDG_STATE_HOME = base .. "/state"
  vim.env.XDG_RUNTIME_DIR = nil
  vim.env.TOOLD_SOCKET = place.socket
  -- So that `echo` is asked about, too.
  vim.env.TOOLD_PERMISSION_READ_ONLY_COMMANDS = "ask"
  vim.env.PATH = base .. "/bin:" .. vim.env.PATH
  vim.cmd("cd " .. place.work)
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
  place.toold = require("toold")

  --- Connects the client, starting the daemon.
  function place.connect(options)
    place.toold.setup(options or {})
    local answered, failure
    place.toold.connect(function(err)
      answered, failure = true, err
    end)
    M.wait("the connection", function()
      return answered
    end)
    M.equal(nil, failure)
  end

  --- Calls a tool and waits for its end.
  function place.call(name, arguments)
    local answered, err, result
    place.toold.call(name, arguments, {}, function(...)
      answered = true
      err, result = ...
    end)
    M.wait("the end of " .. name, function()
      return answered
    end)
    return err, result
  end

  --- Another frontend, with a session in the same folder.
  function place.other(role)
    local rpc = require("toold.rpc")
    local other = { calls = {} }
    rpc.open(place.socket, function(err, connection)
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
    M.equal(nil, (other.request("session.open", { cwd = place.work, role = role, client = { name = "other" } })))
    return other
  end

  --- The daemon, and what it started.
  function place.processes()
    return processes(place.socket)
  end

  --- Stops the daemon and waits until it is gone.
  function place.stop_daemon()
    local left = processes(place.socket)
    if uv.fs_stat(place.socket) then
      local other = place.other()
      other.request("daemon.shutdown", { drain_ms = 0 })
    end
    M.wait("the end of the daemon", function()
      for _, pid in ipairs(left) do
        if uv.kill(pid, 0) == 0 then
          return false
        end
      end
      return not uv.fs_stat(place.socket)
    end)
  end

  function place.log()
    local file = io.open(place.socket .. ".log")
    return file and "--- log of the daemon\n" .. file:read("*a") or ""
  end

  --- Puts everything back; at the last leave of a base its daemon is stopped, and nothing may be left of it.
  function place.leave(last)
    place.toold.stop()
    if last then
      place.stop_daemon()
      M.equal({}, processes(place.socket))
    end
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
    M.equal(0, vim.fn.delete(last and base or place.work, "rf"))
  end

  place.root = root
  return place
end

return M
