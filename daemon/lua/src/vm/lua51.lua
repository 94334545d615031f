-- The parts of Lua 5.1 that Luau lacks, or does differently. Runs once in each new Lua state, after the prelude and before any
-- plugin; `host` holds host functions.
local host, level = ...

local string, table, math, bit32, os, debug = string, table, math, bit32, os, debug
local type, select, tonumber, tostring = type, select, tonumber, tostring
local string_rep, string_find, string_sub, string_match = string.rep, string.find, string.sub, string.match
local string_gsub, string_gmatch, string_format = string.gsub, string.gmatch, string.format
local table_pack, table_unpack, table_concat = table.pack, table.unpack, table.concat

_VERSION = "Lua 5.1"

-- errors ------------------------------------------------------------------------------------

-- The last table that was raised. If nobody catches it, the host makes a text of it; of the error, only the table's
-- address arrives there.
local raised

local raw_error = error
function error(value, depth)
  if type(value) == "table" then
    raised = value
  end
  if depth == nil then
    depth = 1
  end
  return raw_error(value, depth == 0 and 0 or depth + 1)
end

-- Any value can be the message, as for `error`.
local raw_assert = assert
function assert(...)
  local ok, value = ...
  if ok or select("#", ...) == 0 then
    return raw_assert(...)
  elseif value ~= nil and type(value) ~= "string" then
    error(value, 0)
  end
  value = value or "assertion failed!"
  -- As in gopher-lua, the message says where, unless it does so already.
  error(value, string_find(value, "^[^\n]-:%d+: ") and 0 or level())
end

local error = error

-- string ------------------------------------------------------------------------------------

function string.rep(text, times, separator)
  if separator == nil or separator == "" then
    return string_rep(text, times)
  end
  times = tonumber(times) or error("bad argument #2 to 'rep' (number expected)", 2)
  if times < 1 then
    return ""
  end
  return string_rep(text .. separator, times - 1) .. text
end

string.gfind = string.gmatch

-- The header of Lua 5.1's bytecode on this kind of machine, without code: libraries look at it when they load, and nothing
-- loads bytecode.
function string.dump(f)
  if type(f) ~= "function" then
    error("bad argument #1 to 'dump' (function expected, got " .. type(f) .. ")", level())
  end
  return "\27Lua\81\0\1\4\8\4\8\0"
end

-- `%s` takes any value, as in gopher-lua.
local function format_any(form, ...)
  local values, place = table_pack(...), 0
  for verb in string_gmatch(form, "%%[-+ #0-9.]*(.)") do
    if verb ~= "%" then
      place = place + 1
      if verb == "s" and place <= values.n and type(values[place]) ~= "string" then
        values[place] = tostring(values[place])
      end
    end
  end
  return string_format(form, table_unpack(values, 1, values.n))
end

function string.format(form, ...)
  for place = 1, select("#", ...) do
    local kind = type((select(place, ...)))
    if kind ~= "string" and kind ~= "number" then
      return format_any(form, ...)
    end
  end
  return string_format(form, ...)
end

local function unescape(character)
  if not string_find(character, "[%d%%]") then
    return character
  end
end

-- In a replacement, `%` before any other character stands for that character.
function string.gsub(text, pattern, replacement, times)
  if type(replacement) == "string" and string_find(replacement, "%%[^%d%%]") then
    replacement = string_gsub(replacement, "%%(.)", unescape)
  end
  return string_gsub(text, pattern, replacement, times)
end

-- math --------------------------------------------------------------------------------------

math.mod = math.fmod
-- Programs use the members of `math` as keys.
math.nan = nil

-- bit: as in LuaJIT, results are signed -----------------------------------------------------

local function signed(n)
  return n >= 0x80000000 and n - 0x100000000 or n
end

-- Written out for two values: functions of any number of values, and calls of other functions, take much longer. Luau
-- compiles the members of the global `bit32` to instructions.
bit = {
  band = function(a, b, c, ...)
    local n = bit32.band(a, b or a)
    if c ~= nil then n = bit32.band(n, c, ...) end
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  bor = function(a, b, c, ...)
    local n = bit32.bor(a, b or a)
    if c ~= nil then n = bit32.bor(n, c, ...) end
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  bxor = function(a, b, c, ...)
    local n = bit32.bxor(a, b or 0)
    if c ~= nil then n = bit32.bxor(n, c, ...) end
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  bnot = function(a)
    local n = bit32.bnot(a)
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  lshift = function(a, by)
    local n = bit32.lshift(a, bit32.band(by, 31))
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  rshift = function(a, by)
    local n = bit32.rshift(a, bit32.band(by, 31))
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  arshift = function(a, by)
    local n = bit32.arshift(a, bit32.band(by, 31))
    return n >= 0x80000000 and n - 0x100000000 or n
  end,
  rol = function(a, by) return signed(bit32.lrotate(a, by)) end,
  ror = function(a, by) return signed(bit32.rrotate(a, by)) end,
  bswap = function(a) return signed(bit32.byteswap(a)) end,
  tobit = function(a) return signed(bit32.band(a)) end,
  tohex = function(n, digits)
    digits = digits or 8
    local form = digits < 0 and "%08X" or "%08x"
    return string_sub(string_format(form, bit32.band(n)), -math.min(8, math.abs(digits)))
  end,
}

-- load --------------------------------------------------------------------------------------

local compile = host.compile

function loadstring(source, name)
  if type(source) ~= "string" then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(source) .. ")", 2)
  end
  return compile(source, name)
end

function load(source, name, mode, env)
  if type(source) == "function" then
    local pieces = {}
    while true do
      local piece = source()
      if piece == nil or piece == "" then
        break
      elseif type(piece) ~= "string" then
        return nil, "reader function must return a string"
      end
      pieces[#pieces + 1] = piece
    end
    source = table_concat(pieces)
  elseif type(source) ~= "string" then
    error("bad argument #1 to 'load' (string or function expected, got " .. type(source) .. ")", 2)
  end
  if mode == "b" then
    return nil, "attempt to load a text chunk (mode is 'b')"
  end
  local chunk, message = compile(source, name)
  if chunk and env ~= nil then
    setfenv(chunk, env)
  end
  return chunk, message
end

-- memory ------------------------------------------------------------------------------------

local raw_collectgarbage = collectgarbage
-- Results of Lua 5.1 for options that have no effect: the collector runs by itself, within the memory limit.
local COLLECTOR = { collect = 0, stop = 0, restart = 0, step = true, setpause = 200, setstepmul = 200 }

function collectgarbage(option)
  option = option or "collect"
  if option == "count" then
    return raw_collectgarbage("count")
  end
  local result = COLLECTOR[option]
  if result == nil then
    error("bad argument #1 to 'collectgarbage' (invalid option '" .. tostring(option) .. "')", 2)
  end
  return result
end

-- os ----------------------------------------------------------------------------------------

local raw_time, raw_date = os.time, os.date
local CONVERSIONS = { D = "%m/%d/%y", F = "%Y-%m-%d", R = "%H:%M", T = "%H:%M:%S", h = "%b", n = "\n", t = "\t" }

function os.date(format, time)
  if type(format) == "string" and string_find(format, "%%[DFRThnt]") then
    format = string_gsub(format, "%%(.)", CONVERSIONS)
  end
  return raw_date(format, time)
end

-- Fields are local time, which Luau reads as UTC.
function os.time(fields)
  if fields == nil then
    return raw_time()
  end
  local utc = raw_time(fields)
  if not utc then
    return nil
  end
  local function offset(time)
    local local_fields = raw_date("*t", time)
    return local_fields and raw_time(local_fields) - time or 0
  end
  -- The second step counts where the clocks change between the two.
  return utc - offset(utc - offset(utc))
end

function os.setlocale(locale)
  if locale == nil or locale == "" or locale == "C" or locale == "POSIX" then
    return "C"
  end
  return nil
end

-- debug -------------------------------------------------------------------------------------

local debug_info, debug_traceback = debug.info, debug.traceback
-- The file of a source name that messages show.
local path_of = function() end

local function describe(info)
  local short, func = info.short_src, info.func
  if short == "[toold]" or short == "[C]" then
    -- Functions of the host look like those of C libraries.
    return { source = "=[C]", short_src = "[C]", what = "C", currentline = -1, linedefined = -1, lastlinedefined = -1,
      nups = 0, namewhat = "", name = info.name }
  end
  local path = path_of(short)
  info.source = path and "@" .. path or string_sub(short, 1, 1) == "[" and short or "=" .. short
  info.linedefined = debug_info(func, "l")
  info.lastlinedefined = -1
  info.namewhat = ""
  info.nups = 0
  return info
end

local function information(func, short, line, name, parameters, is_vararg)
  if short == nil then
    return nil
  end
  local is_main = name == "" and is_vararg and parameters == 0 and debug_info(func, "l") <= 1
  return describe {
    func = func, short_src = short, currentline = line, what = is_main and "main" or "Lua",
    name = name ~= "" and name or nil,
  }
end

local function getinfo(...)
  local thread, at = ...
  if type(thread) == "thread" then
    if type(at) == "function" then
      return getinfo(at)
    end
    return information(debug_info(thread, at, "fslna"))
  end
  at = thread
  if type(at) == "function" then
    local info = information(debug_info(at, "fslna"))
    info.currentline = -1
    return info
  elseif type(at) ~= "number" then
    error("bad argument #1 to 'getinfo' (function or level expected)", level())
  elseif at < 0 then
    return nil
  end
  return information(debug_info(at + 1, "fslna"))
end

local function frames(trace)
  local lines = {}
  for line in string_gmatch(trace, "[^\n]+") do
    local place, name = string_match(line, "^(.-) function (.*)$")
    place = place or line
    if string_sub(place, 1, 7) == "[toold]" then
      place = "[C]"
    end
    lines[#lines + 1] = "\n\t" .. place .. (name and ": in function '" .. name .. "'" or ": in ?")
  end
  return "stack traceback:" .. table_concat(lines)
end

local function traceback(...)
  local thread, message, at = ...
  if type(thread) ~= "thread" then
    thread, message, at = nil, thread, message
  end
  if message ~= nil and type(message) ~= "string" and type(message) ~= "number" then
    return message
  end
  local trace = thread and debug_traceback(thread, "", at or 0) or debug_traceback("", (at or 1) + 1)
  return message and message .. "\n" .. frames(trace) or frames(trace)
end

-- Lengths that are no numbers, which other Luas take.
local measured = setmetatable({}, { __mode = "k" })
local function with_number_lengths(meta)
  local own = type(meta) == "table" and rawget(meta, "__len")
  if type(own) == "function" and not measured[own] then
    local function length(value)
      local count = own(value)
      return type(count) == "number" and count or 0
    end
    measured[length] = true
    rawset(meta, "__len", length)
  end
  return meta
end

_G.debug = {
  getinfo = getinfo,
  traceback = traceback,
  -- A metatable that is protected stays so: others belong to the host.
  getmetatable = getmetatable,
  setmetatable = function(value, meta)
    if type(value) == "table" then
      return setmetatable(value, with_number_lengths(meta))
    end
    host.set_type_metatable(value, meta)
    return value
  end,
  getfenv = getfenv,
  setfenv = setfenv,
}

return {
  -- Takes the last table that was raised.
  take_raised = function()
    local value = raised
    raised = nil
    return value
  end,
  name_sources = function(find)
    path_of = find
  end,
}
