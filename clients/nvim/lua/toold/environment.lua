--- The variables that `session.open` gets, so that commands find the toolchains that the editor finds.
---
--- The daemon has the environment of the client that started it, perhaps days ago. Only the editor knows a virtual
--- environment that a plugin has activated since.

local text = require("toold.text")

local M = {}

--- Variables by which programs find their toolchains; a final `*` matches any text. All clients of toold pass the
--- same ones.
M.toolchain = {
  "PATH",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
  "CONDA_DEFAULT_ENV",
  "PYENV_VERSION",
  "NVM_DIR",
  "NVM_BIN",
  "FNM_DIR",
  "VOLTA_HOME",
  "CARGO_HOME",
  "RUSTUP_HOME",
  "RUSTUP_TOOLCHAIN",
  "GOPATH",
  "GOROOT",
  "GOBIN",
  "JAVA_HOME",
  "SDKMAN_DIR",
  "GEM_HOME",
  "RBENV_VERSION",
  "ASDF_DIR",
  "MISE_DATA_DIR",
  "NIX_PATH",
  "SSH_AUTH_SOCK",
  "LANG",
  "LC_*",
  "TZ",
}

local function is_of_toolchain(name)
  for _, known in ipairs(M.toolchain) do
    local start = known:match("^(.*)%*$")
    if name == known or (start and name:sub(1, #start) == start) then
      return true
    end
  end
  return false
end

--- The variables that are passed on; nil for none. The daemon accepts only UTF-8.
function M.passed_on(variables)
  local passed = {}
  for name, value in pairs(variables) do
    if is_of_toolchain(name) and text.is_utf8(value) then
      passed[name] = value
    end
  end
  -- An empty table would become an empty list in JSON.
  return next(passed) and passed or nil
end

return M
