--- Reloads buffers whose files a tool has changed.

local M = {}

local due = false

--- Soon, and once for several events, reloads the buffers whose files have changed. Skips buffers with unsaved text: the
--- daemon sees that text, and `:checktime` would interrupt you with a question.
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
