--- Makes text from outside safe to show or to send.

local M = {}

--- One line, with control characters made visible.
function M.line(text)
  text = tostring(text or ""):gsub("%s*\n%s*", " ")
  return vim.fn.strtrans(text)
end

--- Lines for a buffer.
function M.lines(text)
  local lines = vim.split(tostring(text or ""), "\n", { plain = true })
  for i, line in ipairs(lines) do
    -- A NUL in a buffer's line would be a line end, and a carriage return is of no use to a reader.
    lines[i] = line:gsub("\r$", ""):gsub("%z", "^@")
  end
  if #lines > 1 and lines[#lines] == "" then
    lines[#lines] = nil
  end
  return lines
end

--- Cut to so many cells, so that the message does not wait for a key.
function M.cut(text, cells)
  if vim.fn.strdisplaywidth(text) <= cells then
    return text
  end
  local cut = vim.fn.strcharpart(text, 0, math.max(cells - 1, 0))
  while vim.fn.strdisplaywidth(cut) > cells - 1 and cut ~= "" do
    cut = vim.fn.strcharpart(cut, 0, vim.fn.strchars(cut) - 1)
  end
  return cut .. "…"
end

--- Lines of so many cells at most.
function M.wrapped(text, cells)
  local lines = {}
  while vim.fn.strdisplaywidth(text) > cells do
    local count = math.min(vim.fn.strchars(text), cells)
    while vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) > cells do
      count = count - 1
    end
    lines[#lines + 1] = vim.fn.strcharpart(text, 0, count)
    text = vim.fn.strcharpart(text, count)
  end
  lines[#lines + 1] = text
  return lines
end

--- The size of the character at `at` in bytes; nil when no valid UTF-8 begins there.
local function width(text, at)
  local lead, second = text:byte(at, at + 1)
  local size = lead < 0x80 and 1 or lead >= 0xC2 and lead < 0xE0 and 2 or lead >= 0xE0 and lead < 0xF0 and 3
  size = size or lead >= 0xF0 and lead < 0xF5 and 4
  if not size then
    return nil
  end
  -- Overlong forms, surrogates, and values beyond Unicode.
  local low = lead == 0xE0 and 0xA0 or lead == 0xF0 and 0x90 or 0x80
  local high = lead == 0xED and 0x9F or lead == 0xF4 and 0x8F or 0xBF
  if size > 1 and not (second and second >= low and second <= high) then
    return nil
  end
  for i = at + 2, at + size - 1 do
    local byte = text:byte(i)
    if not byte or byte < 0x80 or byte > 0xBF then
      return nil
    end
  end
  return size
end

function M.is_utf8(text)
  local at = text:find("[\128-\255]")
  while at do
    local size = width(text, at)
    if not size then
      return false
    end
    at = text:find("[\128-\255]", at + size)
  end
  return true
end

--- The text with each invalid byte replaced, since JSON holds only UTF-8.
function M.utf8(text)
  if M.is_utf8(text) then
    return text
  end
  local parts, from, at = {}, 1, text:find("[\128-\255]")
  while at do
    local size = width(text, at)
    if not size then
      parts[#parts + 1] = text:sub(from, at - 1) .. "\239\191\189"
      from = at + 1
    end
    at = text:find("[\128-\255]", at + (size or 1))
  end
  return table.concat(parts) .. text:sub(from)
end

return M
