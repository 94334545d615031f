-- A call to give up.
hygge.register_tool({
  name = "wait_long",
  description = "Waits for a minute",
  permission = false,
  execute = function()
    hygge.sleep("60s")
    return "done"
  end,
})
