--- Undoing the call that changed a file last: its diff, what undo leaves as it is, and one key.

local client = require("toold.client")
local float = require("toold.float")
local keys = require("toold.keys")
local text = require("toold.text")

local M = {}

local CHOICES = { { key = "u", label = "Undo" }, { key = "n", label = "Keep" } }

local function complain(err)
  vim.notify("toold: " .. text.line(err.message), vim.log.levels.ERROR)
end

local function undo(params)
  client.request("files.undo", params, function(err, undone)
    if err then
      return complain(err)
    end
    local paths = vim.tbl_map(function(path)
      return text.line(vim.fn.fnamemodify(path, ":."))
    end, undone.paths)
    local lines = { "toold: undid the changes to " .. table.concat(paths, ", ") }
    vim.list_extend(lines, vim.tbl_map(text.line, undone.notes or {}))
    vim.notify(table.concat(lines, "\n"), vim.log.levels.INFO)
    vim.cmd("checktime")
  end)
end

--- Shows what the undo of the call that changed `path` last would do, and asks. The client must be connected.
function M.ask(path)
  local params = { path = path, all = true, folder = vim.fn.getcwd() }
  client.request("files.undo", vim.tbl_extend("force", params, { dry_run = true }), function(err, plan)
    if err then
      return complain(err)
    end
    local lines = text.lines(plan.diff ~= "" and plan.diff or "The text does not change.")
    vim.list_extend(lines, vim.tbl_map(text.line, plan.notes or {}))
    local window = float.open(lines, { filetype = "diff", title = " Undo ", at = "top", below = #CHOICES + 6 })
    vim.cmd("redraw")
    local prompt = "Undo the call that changed " .. text.line(vim.fn.fnamemodify(path, ":.")) .. " last?"
    keys.select(CHOICES, {
      prompt = prompt,
      kind = "toold_undo",
      format_item = function(choice)
        return choice.label
      end,
    }, function(choice)
      float.close(window)
      if choice and choice.key == "u" then
        undo(params)
      end
    end)
  end)
end

return M
