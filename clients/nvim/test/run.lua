--- Runs the tests: `nvim --headless --clean -c 'luafile test/run.lua'` in the client's folder, with TOOLD and TOOLCTL
--- set to the programs. `TOOLD_TEST=words` runs those whose names have the words. Ends with status 1 on a failure.

local folder = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local root = vim.fn.fnamemodify(folder, ":h")
vim.opt.runtimepath:prepend(root)
package.path = folder .. "/?.lua;" .. package.path
vim.cmd("runtime plugin/toold.lua")

local support = require("support")
local tests = {}

--- Declares a test; its name is the fact that it shows. Most share a daemon, each in a folder of its own.
function _G.fact(name, body)
  tests[#tests + 1] = { name = name, body = body }
end

--- A test with a daemon of its own, which does not run yet.
function _G.fact_of_its_own(name, body)
  tests[#tests + 1] = { name = name, body = body, own = true }
end

local function run_all()
  for _, file in ipairs(vim.fn.sort(vim.fn.glob(folder .. "/*_test.lua", true, true))) do
    dofile(file)
  end
  local failed, ran = 0, 0
  local shared = support.folders()
  for _, test in ipairs(tests) do
    if test.name:find(vim.env.TOOLD_TEST or "", 1, true) then
      ran = ran + 1
      local folders = test.own and support.folders() or shared
      local scene = support.scene(root, folders)
      local ok, err = xpcall(test.body, debug.traceback, scene)
      local log = scene.log()
      local clean, left = xpcall(function()
        scene.close()
        if test.own then
          folders.stop_daemon()
          folders.remove()
        end
      end, debug.traceback)
      if ok and clean then
        io.stdout:write("ok    ", test.name, "\n")
      else
        failed = failed + 1
        io.stdout:write("FAIL  ", test.name, "\n", ok and "" or err .. "\n", clean and "" or left .. "\n", log)
      end
    end
  end
  shared.stop_daemon()
  shared.remove()
  io.stdout:write(("%d passed, %d failed, with Neovim %s\n"):format(ran - failed, failed, support.version()))
  return failed == 0 and ran > 0
end

local ok, result = xpcall(run_all, debug.traceback)
if not ok then
  io.stdout:write(result, "\n")
end
vim.cmd(ok and result and "qall!" or "cquit 1")
