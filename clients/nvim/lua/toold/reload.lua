--- Buffers whose files were changed by a tool.

local M = {}

local due = false

--- Looks soon, once for all that is told at the same time, which buffers' files have changed, and reads those anew.
--- Buffers with unsaved text are left alone: the daemon sees that text, and `:checktime` would ask in the midst of it.
function M.check()
  if due then
    return
  end
  due = true
  vim.defer_fn(function()
    due = false
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and not vim.bo[buffer].modified then
        if vim.api.nvim_buf_get_name(buffer) ~= "" then
          vim.cmd("silent! checktime " .. buffer)
        end
      end
    end
  end, 20)
end

return M
