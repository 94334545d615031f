-- Commands of the toold client. Nothing is loaded or connected before one of them runs, or `setup` does.

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
end, { nargs = "?", desc = "Pick a tool, answer for its arguments, call it" })

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
  desc = "Cancel the call that began last, or the named one; with ! all",
})

define("ToolAsks", function()
  commands().asks()
end, { desc = "Answer the permission asks and questions that were left open" })
