-- Which runner a folder's tests have, and the command for it.
local runners = {}

local function exists(dir, name)
  local ok, is_there = pcall(hygge.fs.exists, dir .. "/" .. name)
  return ok and is_there
end

local function text_of(dir, name)
  local ok, text = pcall(hygge.fs.read, dir .. "/" .. name)
  return ok and text or ""
end

-- Without following a link: the Python of an environment lies elsewhere, and reading there would be asked about.
local function has_folder(dir, name)
  local ok, entries = pcall(hygge.fs.list, dir)
  for _, entry in ipairs(ok and entries or {}) do
    if entry.name == name and entry.type == "directory" then return true end
  end
  return false
end

-- The package manager whose lock file is there.
local function package_manager(dir)
  if exists(dir, "pnpm-lock.yaml") then return "pnpm" end
  if exists(dir, "yarn.lock") then return "yarn" end
  if exists(dir, "bun.lock") or exists(dir, "bun.lockb") then return "bun" end
  return "npm"
end

local RUNNERS = {
  {
    name = "cargo", parser = "cargo", get = "Rust: rustup.rs",
    is_in = function(dir) return exists(dir, "Cargo.toml") end,
    words = function(_, filter) return { "cargo", "test", "--no-fail-fast", "--color=never", filter } end,
  },
  {
    name = "go", parser = "go", get = "Go: go.dev/dl",
    is_in = function(dir) return exists(dir, "go.mod") end,
    words = function(_, filter)
      local words = { "go", "test", "-v", "./..." }
      if filter then
        table.insert(words, 4, filter)
        table.insert(words, 4, "-run")
      end
      return words
    end,
  },
  {
    name = "npm", parser = "javascript", get = "Node.js: nodejs.org",
    is_in = function(dir)
      local ok, manifest = pcall(hygge.json.decode, text_of(dir, "package.json"))
      local scripts = ok and type(manifest) == "table" and manifest.scripts
      local test = type(scripts) == "table" and scripts.test
      return type(test) == "string" and not test:find("no test specified", 1, true)
    end,
    words = function(dir, filter)
      local manager = package_manager(dir)
      local words = { manager, manager == "bun" and "run" or nil }
      words[#words + 1] = "test"
      if filter then
        if manager == "npm" then words[#words + 1] = "--" end
        words[#words + 1] = filter
      end
      return words
    end,
  },
  {
    name = "pytest", parser = "pytest", get = "pytest: `pip install pytest` in the project's environment",
    is_in = function(dir)
      return exists(dir, "pytest.ini") or exists(dir, "conftest.py") or exists(dir, "tests/conftest.py")
        or text_of(dir, "pyproject.toml"):find("pytest", 1, true) ~= nil or text_of(dir, "setup.cfg"):find("pytest", 1, true) ~= nil
        or text_of(dir, "tox.ini"):find("pytest", 1, true) ~= nil or text_of(dir, "requirements.txt"):find("pytest", 1, true) ~= nil
    end,
    words = function(dir, filter)
      local python = "python3"
      for _, place in ipairs { "venv", ".venv" } do
        if has_folder(dir, place) then python = place .. "/bin/python" end
      end
      local words = { python, "-m", "pytest", "-q", "--tb=short", "--color=no" }
      if filter then
        words[#words + 1] = "-k"
        words[#words + 1] = filter
      end
      return words
    end,
  },
}

-- The runner of a folder, or the one of that name; nil and a message.
function runners.find(dir, name)
  for _, runner in ipairs(RUNNERS) do
    if name == runner.name or (not name and runner.is_in(dir)) then return runner end
  end
  return nil, dir .. " has no tests that this tool knows: it looks for Cargo.toml, go.mod, a `test` script in package.json, and "
    .. "pytest in pyproject.toml or beside it. Name a `path` or a `runner`, or run the tests with bash"
end

return runners
