--- Floating windows.

local M = {}

--- A scratch buffer with these lines, which is wiped out when no window shows it.
function M.scratch(lines, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modifiable = false
  if filetype then
    vim.bo[buffer].filetype = filetype
  end
  return buffer
end

--- Opens a window and returns it. `options`: `filetype`, `title`, `enter`, `buffer`, `at`: "top" keeps `below` lines free for a
--- list of choices, which is at the "bottom".
function M.open(lines, options)
  local title = vim.fn.has("nvim-0.9") == 1 and options.title or nil
  local widest = vim.fn.strdisplaywidth(title or "")
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local room = vim.o.lines - (options.at == "top" and options.below or 6)
  local width = math.max(math.min(widest, vim.o.columns - 4), 20)
  local height = math.max(math.min(#lines, room), 3)
  local place = {
    relative = "editor",
    style = "minimal",
    border = "single",
    width = width,
    height = height,
    row = options.at == "top" and 0 or math.floor((vim.o.lines - height) / 2) - 1,
    col = math.floor((vim.o.columns - width) / 2) - 1,
  }
  if options.at == "bottom" then
    place.width = math.max(vim.o.columns - 4, 20)
    place.col = 1
    place.row = math.max(vim.o.lines - height - 3, 0)
  end
  place.title = title
  local buffer = options.buffer or M.scratch(lines, options.filetype)
  local window = vim.api.nvim_open_win(buffer, options.enter == true, place)
  vim.wo[window].wrap = false
  return window
end

function M.close(window)
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
end

return M
