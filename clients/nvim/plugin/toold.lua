-- Commands of the toold client. Nothing loads or connects before you run one of them or call `setup`.

if vim.g.loaded_toold then
  return
end
vim.g.loaded_toold = true

local function commands()
  return require("toold.commands")
end

local define = vim.api.nvim_create_user_command

define("Tool", function(opts)
  commands().tool(opts)
end, {
  nargs = "+",
  bang = true,
  complete = function(...)
    return commands().complete_tool(...)
  end,
  desc = "Call a tool: :Tool NAME key=value ..., or :Tool NAME {JSON}; :Tool! NAME shows its schema",
})

define("Tools", function(opts)
  commands().tools(opts.args)
end, { nargs = "?", desc = "Pick a tool, enter its arguments, call it" })

define("ToolCommand", function(opts)
  commands().command(opts)
end, {
  nargs = "+",
  complete = function(...)
    return commands().complete_command(...)
  end,
  desc = "Run a slash command of a plugin",
})

define("ToolCancel", function(opts)
  commands().cancel(opts)
end, {
  nargs = "?",
  bang = true,
  complete = function(...)
    return commands().complete_call(...)
  end,
  desc = "Cancel the last call, or the one with this id; with ! all",
})

define("ToolAsks", function()
  commands().asks()
end, { desc = "Answer the permission requests and questions that are still open" })

define("ToolUndo", function(opts)
  commands().undo(opts.args)
end, { nargs = "?", complete = "file", desc = "Undo the call that changed this file last, after a look at the diff" })

define("ToolLevel", function(opts)
  commands().level(opts)
end, {
  nargs = "?",
  complete = function(...)
    return commands().complete_level(...)
  end,
  desc = "Show how much runs without an approval in the session of this editor, or change it",
})
