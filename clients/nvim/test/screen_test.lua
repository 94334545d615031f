--- The editor as a person sees it: in a terminal, by keys. The screens are those of the README; TOOLD_UPDATE=1 writes
--- them there. They are taken with Neovim 0.7, which Debian 12 has: other versions draw other borders.

local support = require("support")
local equal, contains, wait = support.equal, support.contains, support.wait

local function terminal(scene)
  -- In the test's own folder: tmux leaves its socket.
  local socket = scene.base .. "/tmux"
  local self = {}

  local function tmux(...)
    local output = vim.fn.system({ "tmux", "-S", socket, "-f", "/dev/null", ... })
    if vim.v.shell_error ~= 0 then
      error(output, 2)
    end
    return output
  end

  function self.run(command)
    tmux("new-session", "-d", "-x", "100", "-y", "22", "-c", scene.work, command)
    tmux("set-option", "-g", "escape-time", "0")
  end

  function self.type(keys)
    tmux("send-keys", "-l", keys)
    tmux("send-keys", "Enter")
  end

  function self.press(key)
    tmux("send-keys", "-l", key)
  end

  --- The screen, when it shows all of these.
  function self.screen(...)
    local parts, last = { ... }, ""
    local ok, found = pcall(wait, "the screen", function()
      last = tmux("capture-pane", "-p")
      for _, part in ipairs(parts) do
        if not last:find(part, 1, true) then
          return nil
        end
      end
      return last
    end)
    return ok and found or error(("no %s on the screen:\n%s"):format(vim.inspect(parts), last), 2)
  end

  function self.close()
    vim.fn.system({ "tmux", "-S", socket, "kill-server" })
  end

  return self
end

--- What differs from run to run is replaced by what it might be.
local function steady(scene, screen)
  local shorter = #scene.work - #"/home/you/tea"
  -- A window keeps its width.
  screen = screen:gsub("([^\n]*" .. vim.pesc(scene.work) .. "[^\n]*)│", "%1" .. (" "):rep(shorter) .. "│")
  screen = screen:gsub(vim.pesc(scene.work), "/home/you/tea"):gsub("done in %d+ ms", "done in 3 ms")
  return (screen:gsub("[ \n]+$", "") .. "\n"):gsub(" +\n", "\n")
end

local function check(scene, name, screen)
  local path = scene.root .. "/README.md"
  local file = assert(io.open(path))
  local readme = file:read("*a")
  file:close()
  local mark = "<!-- screen: " .. name .. " -->\n```text\n"
  local _, from = readme:find(mark, 1, true)
  assert(from, "the README has no " .. mark)
  local stop = assert(readme:find("```", from, true))
  if vim.env.TOOLD_UPDATE then
    local out = assert(io.open(path, "w"))
    out:write(readme:sub(1, from), screen, readme:sub(stop))
    out:close()
  else
    equal(readme:sub(from + 1, stop - 1), screen)
  end
end

fact("the user sees the request with its diff, then the changed file", function(scene)
  scene.write("notes.txt", "green tea\nblack coffee\n")
  local init = scene.write(
    "init.lua",
    ([[
      vim.opt.runtimepath:prepend(%q)
      vim.cmd("runtime plugin/toold.lua")
      vim.o.laststatus = 2
      vim.o.ruler = false
      vim.o.statusline = "%%f %%m%%=%%{v:lua.require'toold'.statusline()}"
      require("toold").setup({})
      require("toold.keys").read_for = 0
    ]]):format(scene.root)
  )
  local editor = terminal(scene)
  local ok, err = xpcall(function()
    editor.run(vim.fn.shellescape(vim.v.progpath) .. " -u " .. init .. " -i NONE -n notes.txt")
    editor.screen("green tea", "notes.txt")
    editor.type(":Tool read path=notes.txt")
    editor.screen("1: green tea", "read done in")
    editor.type(":Tool edit path=notes.txt old=black new=white")
    local ask = editor.screen("edit wants file.write", "+white coffee", "Deny, and say why")
    editor.press("y")
    local done = editor.screen("edit done in", "\nwhite coffee")
    contains("toold://edit", done)
    equal("green tea\nwhite coffee\n", scene.read("notes.txt"))
    if support.version():find("^0%.7%.") then
      check(scene, "ask", steady(scene, ask))
      check(scene, "done", steady(scene, done))
    end
    editor.type(":qall!")
  end, debug.traceback)
  editor.close()
  assert(ok, err)
end)
