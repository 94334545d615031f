local support = require("support")
local equal, contains, wait = support.equal, support.contains, support.wait

--- Another frontend that may call the editor's tools.
local function agent(scene, options)
  support.answer(function()
    return "Allow in this other session"
  end)
  scene.connect(options)
  local other = scene.other("agent")
  wait("the editor's tools", function()
    local _, list = other.request("tools.list", { source = "frontend" })
    return #list.tools > 0
  end)
  return function(name, arguments)
    local err, result = other.request("tools.execute", { name = name, arguments = arguments or vim.empty_dict() })
    equal(nil, err)
    return result
  end
end

fact("agents see what is open", function(scene)
  scene.write("a.lua", "return 1\n")
  scene.write("b.txt", "one\ntwo\n")
  vim.cmd("edit a.lua | edit b.txt")
  vim.api.nvim_win_set_cursor(0, { 2, 1 })
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "changed" })
  local result = agent(scene)("nvim_buffers")
  equal("a.lua\nb.txt  (current, cursor at 2:2; unsaved)", result.content[1].text)
  equal(scene.work .. "/b.txt", result.structured.buffers[2].path)
  equal(true, result.structured.buffers[2].modified)
end)

fact("agents see diagnostics", function(scene)
  scene.write("a.lua", "return 1\nx\n")
  vim.cmd("edit a.lua")
  local space = vim.api.nvim_create_namespace("linter")
  vim.diagnostic.set(space, 0, {
    { lnum = 1, col = 0, severity = vim.diagnostic.severity.ERROR, message = "x is odd", source = "linter" },
    { lnum = 0, col = 7, severity = vim.diagnostic.severity.HINT, message = "a hint" },
  })
  local call = agent(scene)
  equal("a.lua:1:8: hint: a hint\na.lua:2:1: error: x is odd [linter]", call("nvim_diagnostics").content[1].text)
  equal("a.lua:2:1: error: x is odd [linter]", call("nvim_diagnostics", { path = "a.lua", severity = "error" }).content[1].text)
  local result = call("nvim_diagnostics", { path = "none.lua" })
  equal(true, result.is_error)
  contains("not open in the editor", result.content[1].text)
end)

fact("agents see the selection", function(scene)
  scene.write("a.txt", "one two\nthree fünf\nseven\n")
  vim.cmd("edit a.txt")
  local call = agent(scene)
  equal("nothing is selected", call("nvim_selection").content[1].text)
  vim.cmd([[execute "normal! gg04lvj2l\<Esc>"]])
  equal("a.txt:1-2\ntwo\nthree f", call("nvim_selection").content[1].text)
  vim.cmd([[execute "normal! 2G0füvV\<Esc>"]])
  equal("three fünf", call("nvim_selection").structured.text)
  vim.cmd([[execute "normal! 2G0füv\<Esc>"]])
  equal("ü", call("nvim_selection").structured.text)
  vim.cmd([[execute "normal! gg0l\<C-v>jl\<Esc>"]])
  equal("ne\nhr", call("nvim_selection").structured.text)
end)

fact("agents show the user a file", function(scene)
  scene.write("a.txt", "one\ntwo\nthree\n")
  local call = agent(scene)
  equal("opened a.txt at 2:3", call("nvim_open", { path = "a.txt", line = 2, column = 3 }).content[1].text)
  equal(scene.work .. "/a.txt", vim.api.nvim_buf_get_name(0))
  equal({ 2, 2 }, vim.api.nvim_win_get_cursor(0))
  equal("opened a.txt at 3:1", call("nvim_open", { path = scene.work .. "/a.txt", line = 99 }).content[1].text)
  local result = call("nvim_open", { path = "term://touch made" })
  equal(true, result.is_error)
  contains("is not a file", result.content[1].text)
end)

fact("an option selects the tools to provide", function(scene)
  scene.connect({ lend = { "nvim_open" } })
  local names = wait("the tools", function()
    local _, list = scene.other().request("tools.list", { source = "frontend" })
    return #list.tools > 0 and vim.tbl_map(function(tool)
      return tool.name .. " of " .. tool.source.name
    end, list.tools)
  end)
  equal({ "nvim_open of nvim" }, names)
end)

fact("provided tools move with the session", function(scene)
  scene.connect()
  vim.fn.mkdir(scene.work .. "/below")
  vim.cmd("cd below")
  wait("the session moves", function()
    local session = require("toold.client").session
    return session and session.cwd == scene.work .. "/below"
  end)
  wait("the tools are there once", function()
    local tools = vim.tbl_filter(function(tool)
      return tool.name == "nvim_open"
    end, scene.toold.tools())
    return #tools == 1
  end)
  support.answer(function()
    return "Allow once"
  end)
  scene.write("below/x.txt", "x\n")
  local err, result = scene.call("nvim_open", { path = "x.txt" })
  equal(nil, err)
  equal("opened x.txt at 1:1", result.content[1].text)
end)
