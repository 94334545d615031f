--- The editor's own tools: open files, diagnostics, the selection, and showing a file.

local text = require("toold.text")

local uv = vim.uv or vim.loop

local M = {}

local function is_file(buffer)
  return vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
end

--- The window that you work in: the current one, unless it shows no file.
local function working_window()
  local current = vim.api.nvim_get_current_win()
  local windows = { current }
  vim.list_extend(windows, vim.api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(windows) do
    local floats = vim.api.nvim_win_get_config(window).relative ~= ""
    if not floats and vim.bo[vim.api.nvim_win_get_buf(window)].buftype == "" then
      return window
    end
  end
  return nil
end

local function absolute(path, cwd)
  return path:sub(1, 1) == "/" and path or cwd .. "/" .. path
end

local function shown(path)
  return vim.fn.fnamemodify(path, ":~:.")
end

--- The loaded buffer of a file, however its path is written.
local function buffer_of(path)
  local wanted = uv.fs_realpath(path) or path
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if name ~= "" and (uv.fs_realpath(name) or name) == wanted then
      return buffer
    end
  end
  return nil
end

local function full(lines, structured)
  return { content = text.utf8(table.concat(lines, "\n")), structured = structured }
end

local function list_buffers()
  local window = working_window()
  local current = window and vim.api.nvim_win_get_buf(window)
  local lines, found = {}, {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].buflisted and is_file(buffer) then
      local loaded = vim.api.nvim_buf_is_loaded(buffer)
      local entry = {
        path = vim.api.nvim_buf_get_name(buffer),
        filetype = vim.bo[buffer].filetype,
        modified = vim.bo[buffer].modified,
        current = buffer == current,
        lines = loaded and vim.api.nvim_buf_line_count(buffer) or nil,
      }
      local marks = {}
      if entry.current then
        entry.cursor = { line = vim.api.nvim_win_get_cursor(window)[1], column = vim.api.nvim_win_get_cursor(window)[2] + 1 }
        marks[#marks + 1] = ("current, cursor at %d:%d"):format(entry.cursor.line, entry.cursor.column)
      end
      if entry.modified then
        marks[#marks + 1] = "unsaved"
      end
      lines[#lines + 1] = shown(entry.path) .. (#marks > 0 and "  (" .. table.concat(marks, "; ") .. ")" or "")
      found[#found + 1] = entry
    end
  end
  return full(#lines > 0 and lines or { "no file is open" }, { buffers = found })
end

local SEVERITIES = { "error", "warning", "info", "hint" }

local function list_diagnostics(arguments, invocation)
  local buffer
  if arguments.path then
    buffer = buffer_of(absolute(arguments.path, invocation.cwd))
    if not buffer then
      error(arguments.path .. " is not open in the editor", 0)
    end
  end
  local least = 4
  for number, name in ipairs(SEVERITIES) do
    least = name == arguments.severity and number or least
  end
  local lines, found = {}, {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
    if diagnostic.severity <= least then
      found[#found + 1] = {
        path = vim.api.nvim_buf_get_name(diagnostic.bufnr),
        line = diagnostic.lnum + 1,
        column = diagnostic.col + 1,
        severity = SEVERITIES[diagnostic.severity],
        source = diagnostic.source,
        message = text.utf8(diagnostic.message),
      }
    end
  end
  table.sort(found, function(a, b)
    if a.path ~= b.path then
      return a.path < b.path
    end
    return a.line ~= b.line and a.line < b.line or a.line == b.line and a.column < b.column
  end)
  for _, each in ipairs(found) do
    local from = each.source and " [" .. each.source .. "]" or ""
    lines[#lines + 1] = ("%s:%d:%d: %s: %s%s"):format(shown(each.path), each.line, each.column, each.severity, each.message, from)
  end
  return full(#lines > 0 and lines or { "no diagnostics" }, { diagnostics = found })
end

--- The lines from one position to another, cut as `visualmode()` says. Columns count bytes from 1.
local function selected(buffer, mode, from, to)
  if from[2] > to[2] or from[2] == to[2] and from[3] > to[3] then
    from, to = to, from
  end
  local lines = vim.api.nvim_buf_get_lines(buffer, from[2] - 1, to[2], false)
  local first, last = from[3], to[3]
  local function through(line, column)
    -- Include the whole character that the selection ends on.
    local _, ends = line:find("^[%z\1-\127\194-\244][\128-\191]*", column)
    return line:sub(1, ends or column)
  end
  if mode == "v" then
    lines[#lines] = through(lines[#lines], last)
    lines[1] = lines[1]:sub(first)
  elseif mode == "\22" then
    local left, right = math.min(first, last), math.max(first, last)
    for i, line in ipairs(lines) do
      lines[i] = through(line, right):sub(left)
    end
  end
  return lines, from[2], to[2]
end

local function selection()
  local window = working_window()
  if not window then
    error("no file is open", 0)
  end
  local buffer = vim.api.nvim_win_get_buf(window)
  local found
  vim.api.nvim_buf_call(buffer, function()
    local mode = vim.api.nvim_get_mode().mode
    if buffer == vim.api.nvim_get_current_buf() and (mode == "v" or mode == "V" or mode == "\22") then
      found = { mode, vim.fn.getpos("v"), vim.fn.getpos(".") }
    else
      found = { vim.fn.visualmode(), vim.fn.getpos("'<"), vim.fn.getpos("'>") }
    end
  end)
  if found[1] == "" or found[2][2] == 0 then
    return full({ "nothing is selected" }, { text = "" })
  end
  local lines, first, last = selected(buffer, found[1], found[2], found[3])
  local path = vim.api.nvim_buf_get_name(buffer)
  local whole = text.utf8(table.concat(lines, "\n"))
  return full({ ("%s:%d-%d"):format(shown(path), first, last), whole }, { path = path, first_line = first, last_line = last, text = whole })
end

local function open(arguments, invocation)
  local path = absolute(arguments.path, invocation.cwd)
  local stat = uv.fs_stat(path)
  if not stat or stat.type ~= "file" then
    error(arguments.path .. " is not a file", 0)
  end
  local mode = vim.api.nvim_get_mode()
  if mode.blocking or mode.mode:sub(1, 1) ~= "n" then
    error("the user is typing, so the file was not opened", 0)
  end
  local window = working_window()
  local buffer = buffer_of(path) or vim.fn.bufadd(uv.fs_realpath(path))
  vim.bo[buffer].buflisted = true
  if window then
    vim.api.nvim_set_current_win(window)
  else
    vim.cmd("split")
  end
  vim.api.nvim_set_current_buf(buffer)
  if arguments.line then
    local line = math.min(arguments.line, vim.api.nvim_buf_line_count(buffer))
    vim.api.nvim_win_set_cursor(0, { line, math.max((arguments.column or 1) - 1, 0) })
    vim.cmd("normal! zvzz")
  end
  local at = vim.api.nvim_win_get_cursor(0)
  return full({ ("opened %s at %d:%d"):format(shown(path), at[1], at[2] + 1) }, { path = uv.fs_realpath(path), line = at[1] })
end

local function object(properties, required)
  return {
    type = "object",
    properties = next(properties) and properties or vim.empty_dict(),
    required = required,
    additionalProperties = false,
  }
end

M[1] = {
  name = "nvim_buffers",
  label = "Open files",
  description = "Lists the files that are open in the user's Neovim: which is current, where the cursor is, which have "
    .. "unsaved text.",
  read_only = true,
  input_schema = object({}),
  run = list_buffers,
}
M[2] = {
  name = "nvim_diagnostics",
  label = "Diagnostics",
  description = "Lists the errors and warnings that language servers and linters report in the user's Neovim, for the "
    .. "files that are open there.",
  read_only = true,
  input_schema = object({
    path = { type = "string", description = "Only this file; all open files by default." },
    severity = { type = "string", enum = SEVERITIES, description = "The least severe kind to list; hint by default." },
  }),
  run = list_diagnostics,
}
M[3] = {
  name = "nvim_selection",
  label = "Selection",
  description = "Returns the text that the user has selected in Neovim, or selected last in the current file, with its position.",
  read_only = true,
  input_schema = object({}),
  run = selection,
}
M[4] = {
  name = "nvim_open",
  label = "Show a file",
  description = "Shows the user a file in Neovim, at a line if given.",
  read_only = false,
  input_schema = object({
    path = { type = "string", description = "The file, relative to the working folder or absolute." },
    line = { type = "integer", minimum = 1, description = "The line to put the cursor on." },
    column = { type = "integer", minimum = 1, description = "The byte in the line, from 1." },
  }, { "path" }),
  run = open,
}

return M
