--- The paths of the daemon's socket and program.

local M = {}

local uv = vim.uv or vim.loop

local function absolute(name)
  local value = vim.env[name]
  return value and value:sub(1, 1) == "/" and value or nil
end

--- The socket's path. Empty and relative variables count as unset. Nil without a home folder.
function M.socket(options)
  if options.socket then
    return vim.fn.fnamemodify(vim.fn.expand(options.socket), ":p")
  end
  local socket = absolute("TOOLD_SOCKET")
  if socket then
    return socket
  end
  local folder = absolute("XDG_RUNTIME_DIR") or absolute("XDG_STATE_HOME")
  if not folder then
    local home = absolute("HOME")
    if not home then
      return nil
    end
    folder = home .. "/.local/state"
  end
  return folder .. "/toold/toold.sock"
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
