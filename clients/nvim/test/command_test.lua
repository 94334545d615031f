local support = require("support")
local wait, equal, contains = support.wait, support.equal, support.contains

local function shown(part)
  return wait("the result " .. part, function()
    return support.shown("toold://" .. part)
  end)
end

fact("Tool reads values as the schema asks", function()
  local back = vim.api.nvim_get_current_win()
  vim.cmd([[Tool greet name="Ada Lovelace" times=3 loud=true language=norwegian titles=Dr titles='of maths']])
  equal("hei Dr of maths Ada Lovelace!", shown("greet/1"))
  equal(back, vim.api.nvim_get_current_win())
  equal(2, #vim.api.nvim_tabpage_list_wins(0))
  vim.cmd([[Tool greet {"name": "Bo | \"B\""}]])
  equal('hello Bo | "B"', shown("greet/2"))
  -- The window of the result before is used again.
  equal(2, #vim.api.nvim_tabpage_list_wins(0))
end)

fact("Tool takes JSON for one argument", function()
  vim.cmd([[Tool greet name=Ada titles:=["a","b"] ]])
  equal("hello a b Ada", shown("greet/1"))
end)

fact("words are split at blanks outside of quotes", function()
  local split = require("toold.arguments").split
  equal({ "a=b c", "d=e f", [[g=\d+\.x]], "h=i j" }, split([[a="b c" d='e f' g=\d+\.x h=i\ j]]))
  equal({ 'a="b"\n' }, split([[a="\"b\"\n"]]))
  local json = 'a:=["b c\\"", {"d": 1}]'
  equal({ json, "e=f" }, split(json .. " e=f"))
  equal({ "a=" }, split([[a=""]]))
  local words, message = split([[a="b]])
  equal(nil, words)
  contains("closing", message)
end)

fact("invalid words are reported, and nothing is called", function()
  vim.cmd("Tool greet Ada")
  support.noticed('expected key=value or JSON, got "Ada"')
  vim.cmd("Tool greet {name}")
  support.noticed("invalid JSON")
  vim.cmd("Tool gret name=Ada")
  support.noticed("did you mean greet")
end)

fact("Tool asks for required arguments that are missing", function()
  local asked
  support.answer(function() end, function(options)
    asked = options.prompt
    return "Eve"
  end)
  vim.cmd("Tool greet loud=true")
  equal("hello Eve!", shown("greet/1"))
  equal("greet name (Whom): ", asked)
end)

fact("an error of a tool is shown and announced", function()
  vim.cmd("Tool fail")
  contains("out of luck", shown("fail/1"))
end)

fact("names, arguments and values are completed from the schema", function(scene)
  local function complete(line)
    return vim.fn.getcompletion(line, "cmdline")
  end
  -- The first completion connects.
  equal({ "greet", "grep" }, complete("Tool gr"))
  equal({ "name=", "language=", "loud=", "times=", "titles=" }, complete("Tool greet "))
  equal({ "language=", "loud=" }, complete("Tool greet name=Ada l"))
  equal({ "language=english", "language=norwegian" }, complete("Tool greet language="))
  equal({ "language=norwegian" }, complete("Tool greet name=x language=n"))
  -- Neovim 0.7 completes nothing behind a modifier.
  if vim.fn.has("nvim-0.10") == 1 then
    equal({ "loud=" }, complete("vertical Tool greet name=x lo"))
  end
  equal({ "loud=true", "loud=false" }, complete("Tool greet loud="))
  scene.write("notes.txt", "x\n")
  equal({ "path=notes.txt" }, complete("Tool read path=no"))
  equal({ "greet" }, complete("Tool! gree"))
  equal({ "hi" }, complete("ToolCommand "))
end)

fact("Tools picks a tool and asks for its arguments", function()
  local prompts = {}
  local loud = false
  support.answer(function(labels, options)
    prompts[#prompts + 1] = options.prompt
    if options.kind == "toold_tool" then
      equal(1, #labels)
      contains("Greets somebody.", labels[1])
      return "greet"
    elseif options.kind == "toold_argument" then
      if not loud then
        loud = true
        return "Set loud"
      end
      return "Call greet"
    end
    return "true"
  end, function()
    return "Ada"
  end)
  vim.cmd("Tools politely")
  equal("hello Ada!", shown("greet/1"))
  equal({ "Tool:", "greet:", "greet loud: ", "greet:" }, prompts)
end)

fact("Tool! shows a tool and its arguments", function()
  vim.cmd("Tool! greet")
  local text = shown("greet/1")
  contains("- `name` (string), required: Whom", text)
  contains("One of english, norwegian.", text)
  contains("From plugin tools.", text)
end)

fact("ToolCommand runs a command of a plugin", function()
  vim.cmd("ToolCommand hi there all")
  equal("hi there all", shown("/hi/1"))
end)

fact("results go where the option says", function(scene)
  scene.connect({ result = "float" })
  vim.cmd("Tool greet name=Ada")
  shown("greet/1")
  equal("editor", vim.api.nvim_win_get_config(0).relative)
  vim.cmd("normal q")
  equal(1, #vim.api.nvim_tabpage_list_wins(0))
  scene.toold.setup({ result = "buffer" })
  vim.cmd("Tool greet name=Ada")
  shown("greet/2")
  equal(1, #vim.api.nvim_tabpage_list_wins(0))
  local given
  scene.toold.setup({
    result = function(name, result, lines)
      given = { name, result.is_error, lines }
    end,
  })
  vim.cmd("Tool greet name=Ada")
  wait("the function is called", function()
    return given
  end)
  equal({ "greet", false, { "hello Ada" } }, given)
end)

fact("an option that is not known is an error", function(scene)
  contains("unknown option reslt", select(2, pcall(scene.toold.setup, { reslt = "float" })))
  contains("must be a boolean", select(2, pcall(scene.toold.setup, { lend = 3 })))
end)

fact_of_its_own("tools follow the registry", function(scene)
  scene.connect()
  scene.write(
    scene.base .. "/config/toold/plugins/late.lua",
    'hygge.register_tool{name = "late", description = "Is late", input_schema = {type = "object"}, execute = function() return "x" end}\n'
  )
  wait("the tool", function()
    return require("toold.client").tool("late")
  end)
end)

fact("a plugin's notification is shown", function(scene)
  scene.connect()
  scene.call("tell", {})
  support.noticed("tools: look here")
end)

fact_of_its_own("health says how the daemon is", function(scene)
  scene.write(scene.base .. "/config/toold/plugins/broken.lua", "this is no Lua\n")
  vim.cmd("silent checkhealth toold")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  contains("toold", text)
  contains("this editor can start a daemon: " .. scene.base .. "/bin/toold", text)
  contains("protocol 2", text)
  contains("the plugin broken failed", text)
end)

fact("every command, option and function is in the manual", function(scene)
  local file = assert(io.open(scene.root .. "/doc/toold.txt"))
  local manual = file:read("*a")
  file:close()
  for name in pairs(vim.api.nvim_get_commands({})) do
    if name:find("^Tool") then
      contains("*:" .. name .. "*", manual)
    end
  end
  for name in pairs(scene.toold) do
    if name ~= "ensure" then
      contains("*toold." .. name .. "()*", manual)
    end
  end
  local source = assert(io.open(scene.root .. "/lua/toold/config.lua"))
  local options = source:read("*a"):match("local defaults = {(.-)\n}")
  source:close()
  for name in options:gmatch("\n  ([%w_]+) =") do
    contains("*toold-option-" .. name .. "*", manual)
  end
  local copy = scene.work .. "/doc"
  vim.fn.mkdir(copy)
  scene.write(copy .. "/toold.txt", manual)
  vim.cmd("helptags " .. copy)
  -- Each link leads somewhere.
  for link in manual:gmatch("|(%S-)|") do
    if not link:find("^vim%.") then
      contains("*" .. link .. "*", manual)
    end
  end
end)

fact("the level of the session is shown and changed", function(scene)
  scene.connect()
  vim.cmd("ToolLevel")
  support.noticed("level read (the default)")
  vim.cmd("ToolLevel edit")
  support.noticed("level edit (set by a person for this session)")
  vim.cmd("ToolLevel configured")
  support.noticed("level read (the default)")
  vim.cmd("ToolLevel all")
  support.noticed("expected one of read, edit, develop, operate, configured, not all")
end)

fact("the call that changed a file last is undone, with what undo leaves as it is", function(scene)
  support.answer(function(labels)
    return vim.tbl_contains(labels, "Undo") and "Undo" or "Allow once"
  end)
  scene.connect()
  vim.fn.mkdir(scene.work .. "/out")
  scene.write(".gitignore", "out/\n")
  scene.write("notes.txt", "tea\n")
  vim.fn.system({ "git", "init", "-q", scene.work })
  local _, result = scene.call("bash", { command = "rm -r out notes.txt" })
  equal(false, result.is_error)
  vim.cmd("ToolUndo notes.txt")
  support.noticed("undid the changes to notes.txt")
  support.noticed("out does not come back: nothing of it was kept")
  equal(1, vim.fn.filereadable(scene.work .. "/notes.txt"))
  vim.cmd("ToolUndo notes.txt")
  support.noticed("there is no change of ")
end)
