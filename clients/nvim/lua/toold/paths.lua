--- The paths of the daemon's socket and program.

local M = {}

local uv = vim.uv or vim.loop

local function absolute(environment, name)
  local value = environment[name]
  return value and value:sub(1, 1) == "/" and value or nil
end

--- The parts of the system that tell where the socket is.
local this_system = {
  uid = uv.getuid(),
  --- The text of a file, if it can be read.
  read = function(path)
    local file = io.open(path, "rb")
    local text = file and file:read("*a")
    if file then
      file:close()
    end
    return text
  end,
  is_folder = function(path)
    local stat = uv.fs_stat(path)
    return stat ~= nil and stat.type == "directory"
  end,
}

--- The running daemon that a record describes; nil for a record that a killed daemon left.
local function running(path, system)
  local ok, record = pcall(vim.json.decode, system.read(path) or "")
  if not ok or type(record) ~= "table" or type(record.pid) ~= "number" then
    return nil
  end
  if type(record.socket) ~= "string" or type(record.database) ~= "string" then
    return nil
  end
  local boot_id = system.read("/proc/sys/kernel/random/boot_id")
  if record.boot_id ~= (boot_id and vim.trim(boot_id)) then
    return nil
  end
  if record.started then
    -- The 22nd field; the second is the name in parentheses, which may hold anything.
    local stat = system.read(("/proc/%d/stat"):format(record.pid)) or ""
    local fields = vim.split(vim.trim(stat:match(".*%)(.*)") or ""), "%s+")
    if tonumber(fields[20]) ~= record.started then
      return nil
    end
  end
  return record
end

--- The socket of the user's daemon, whether or not it is running: `$TOOLD_SOCKET`; else where the daemon of the state
--- folder runs, as it has recorded there; else the first place below `$XDG_RUNTIME_DIR`, `/run/user/UID` and the state
--- folder where no daemon with another database runs. Empty and relative variables count as unset. Nil, and the reason,
--- when there is none. `environment` and `system` are for tests.
function M.socket(options, environment, system)
  environment, system = environment or vim.env, system or this_system
  if options.socket then
    return vim.fn.fnamemodify(vim.fn.expand(options.socket), ":p")
  end
  local socket = absolute(environment, "TOOLD_SOCKET")
  if socket then
    return socket
  end
  local home = absolute(environment, "HOME")
  local state_home = absolute(environment, "XDG_STATE_HOME") or home and home .. "/.local/state"
  local state = state_home and state_home .. "/toold"
  local recorded = state and running(state .. "/daemon.json", system)
  if recorded then
    return recorded.socket
  end
  local runtime = absolute(environment, "XDG_RUNTIME_DIR")
  local run_user = "/run/user/" .. system.uid
  local folders = {
    runtime and runtime .. "/toold" or false,
    system.is_folder(run_user) and run_user .. "/toold",
    state or false,
  }
  for _, folder in ipairs(folders) do
    local record = folder and running(folder .. "/toold.sock.json", system)
    if folder and (not state or not record or record.database == state .. "/toold.db") then
      return folder .. "/toold.sock"
    end
  end
  if state then
    local message = "daemons with other databases than %s/toold.db run at all usual places: set TOOLD_SOCKET"
    return nil, message:format(state)
  end
  return nil, "cannot tell where the socket is: set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME"
end

--- The `toold` to start: that of the option, else the first in PATH. Nil when there is none.
function M.program(options)
  if options.toold then
    local path = vim.fn.fnamemodify(vim.fn.expand(options.toold), ":p")
    return uv.fs_access(path, "X") and path or nil
  end
  -- A relative entry would run a program from the current folder, which anyone may have put there.
  for folder in (vim.env.PATH or ""):gmatch("[^:]+") do
    local path = folder .. "/toold"
    local stat = folder:sub(1, 1) == "/" and uv.fs_stat(path)
    if stat and stat.type == "file" and uv.fs_access(path, "X") then
      return path
    end
  end
  return nil
end

return M
