-- Adds what Lua 5.1 has and Luau lacks, and replaces library functions that could run without a bound.
-- Runs once in each new Lua state, before any plugin; `host` holds host functions.
local host = ...

local string, table, math, coroutine, bit32, os = string, table, math, coroutine, bit32, os
local error, type, select, tonumber, tostring, pcall = error, type, select, tonumber, tostring, pcall
local string_rep, string_find, string_sub = string.rep, string.find, string.sub
local table_move, table_concat, table_sort = table.move, table.concat, table.sort
local table_pack, table_unpack = table.pack, table.unpack
local debug_traceback = debug.traceback
local raw_create, raw_resume, raw_yield = coroutine.create, coroutine.resume, coroutine.yield
local raw_status, isyieldable = coroutine.status, coroutine.isyieldable
local raw_collectgarbage = collectgarbage

-- The first stack level, counted from the caller of this function, that is not host code.
local debug_info = debug.info
local function level()
  local depth = 2
  while debug_info(depth, "s") == "[toold]" do
    depth = depth + 1
  end
  return depth - 1
end

-- Host functions return `true, ...` or `false, message`; this turns a message into an error at the
-- plugin's line that made the call.
local function settle(ok, ...)
  if ok then
    return ...
  end
  error((...), level())
end

local function lift(raw)
  return function(...)
    return settle(raw(...))
  end
end

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

-- A plain search takes linear time, no matter how often the needle almost matches.
local plain_find = host.plain_find
function string.find(text, pattern, init, plain)
  if plain and type(text) == "string" and type(pattern) == "string" then
    return plain_find(text, pattern, init)
  end
  return string_find(text, pattern, init, plain)
end

string.gfind = string.gmatch

-- table -------------------------------------------------------------------------------------

-- In pieces: one long move could not be stopped.
local PIECE = 100000
function table.move(from, first, last, target, to)
  if type(first) ~= "number" or type(last) ~= "number" or type(target) ~= "number" or last - first < PIECE then
    return table_move(from, first, last, target, to)
  end
  local into = to or from
  if target > first and target <= last and into == from then
    for piece = last, first, -PIECE do
      local start = math.max(first, piece - PIECE + 1)
      table_move(from, start, piece, target + start - first, into)
    end
  else
    for piece = first, last, PIECE do
      table_move(from, piece, math.min(last, piece + PIECE - 1), target + piece - first, into)
    end
  end
  return into
end

local function less(a, b)
  return a < b
end

-- A comparison in Lua can be interrupted, the built-in one cannot.
function table.sort(list, compare)
  if compare == nil and type(list) == "table" and #list > 20000 then
    compare = less
  end
  return table_sort(list, compare)
end

-- math --------------------------------------------------------------------------------------

math.mod = math.fmod

-- bit: as in LuaJIT, results are signed -----------------------------------------------------

local function signed(n)
  return n >= 0x80000000 and n - 0x100000000 or n
end

local function signing(f)
  return function(...)
    return signed(f(...))
  end
end

bit = {
  band = signing(bit32.band), bor = signing(bit32.bor), bxor = signing(bit32.bxor), bnot = signing(bit32.bnot),
  lshift = function(n, by) return signed(bit32.lshift(n, bit32.band(by, 31))) end,
  rshift = function(n, by) return signed(bit32.rshift(n, bit32.band(by, 31))) end,
  arshift = function(n, by) return signed(bit32.arshift(n, bit32.band(by, 31))) end,
  rol = signing(bit32.lrotate), ror = signing(bit32.rrotate),
  bswap = signing(bit32.byteswap), tobit = signing(bit32.band),
  tohex = function(n, digits)
    digits = digits or 8
    local form = digits < 0 and "%08X" or "%08x"
    return string_sub(string.format(form, bit32.band(n)), -math.min(8, math.abs(digits)))
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

dofile, loadfile = nil, nil

function collectgarbage(option)
  return option == "count" and raw_collectgarbage("count") or 0
end

debug = {
  traceback = function(message, level)
    if message ~= nil and type(message) ~= "string" then
      return message
    end
    local text = "stack traceback:\n\t" .. string.gsub(debug_traceback("", (level or 1) + 1), "\n(.)", "\n\t%1")
    return message and message .. "\n" .. text or text
  end,
}

-- coroutines: host waits inside a plugin's own coroutine are passed up to the host, and so are the ends of slices --

local PENDING = host.pending
local slice_is_over = host.slice_is_over
-- How many resumes on the stack cannot yield; host waits then block their thread.
local blocked = 0

local function is_wait(co, count, ok, first)
  return ok and count == 2 and first == PENDING and raw_status(co) == "suspended"
end

local function is_slice(co, count, ok)
  return ok and count == 1 and raw_status(co) == "suspended" and slice_is_over()
end

-- A loop, since a wait may be polled many times before it ends, and each call would keep its frame.
local function forward(co, results)
  while true do
    if is_wait(co, results.n, results[1], results[2]) then
      results = table_pack(raw_resume(co, raw_yield(PENDING)))
    elseif is_slice(co, results.n, results[1]) then
      -- Before the next iteration, the coroutine that runs this loop has stopped too, if it can.
      results = table_pack(raw_resume(co))
    else
      return table_unpack(results, 1, results.n)
    end
  end
end

-- Results are packed only if they look like a wait or a slice: most resumes return something else.
local function unless_host(co, ...)
  local count = select("#", ...)
  if count == 1 or (count == 2 and select(2, ...) == PENDING) then
    if raw_status(co) == "suspended" then
      return forward(co, table_pack(...))
    end
  end
  return ...
end

local function unblock(...)
  blocked = blocked - 1
  return ...
end

local function resume(co, ...)
  if isyieldable() then
    return unless_host(co, raw_resume(co, ...))
  end
  blocked = blocked + 1
  return unblock(unless_host(co, raw_resume(co, ...)))
end

coroutine.resume = resume

local function wrapped(ok, ...)
  if ok then
    return ...
  end
  error((...), 0)
end

function coroutine.wrap(f)
  local co = raw_create(f)
  return function(...)
    return wrapped(resume(co, ...))
  end
end

-- A host function that waits: `waiting` yields, `blocking` blocks the thread.
-- `place` is its position in the list of host functions that wait.
local function lift_waiting(waiting, blocking, place)
  return function(...)
    if blocked == 0 and isyieldable() then
      return settle(waiting(place, ...))
    end
    return settle(blocking(place, ...))
  end
end

-- Runs functions concurrently; the first error ends them all.
local function all(functions)
  if type(functions) ~= "table" then
    error("hygge.all: argument 1 'functions': expected a list of functions", 2)
  end
  local threads, results, live = {}, { n = #functions }, #functions
  for i = 1, live do
    threads[i] = raw_create(functions[i])
  end
  while live > 0 do
    local waits = true
    for i = 1, results.n do
      local co = threads[i]
      if co then
        local ok, value
        if isyieldable() then
          ok, value = raw_resume(co)
        else
          ok, value = resume(co)
        end
        if not ok then
          error(value, 0)
        elseif raw_status(co) == "dead" then
          results[i], threads[i], live, waits = value, nil, live - 1, false
        elseif value ~= PENDING then
          slice_is_over()
          waits = false
        end
      end
    end
    if live > 0 and waits then
      raw_yield(PENDING)
    end
  end
  return results
end

-- `exec` with `on_output`: the script gets each piece of output while the program runs, in its own coroutine.
local function exec(plain, begin, next)
  return function(command, args, options)
    local on_output = type(options) == "table" and rawget(options, "on_output")
    if not on_output then
      return plain(command, args, options)
    end
    if blocked > 0 or not isyieldable() then
      local result = plain(command, args, options)
      if result.stdout ~= "" then on_output("stdout", result.stdout) end
      if result.stderr ~= "" then on_output("stderr", result.stderr) end
      return result
    end
    local id = begin(command, args, options)
    while true do
      local piece = next(id)
      if piece.stream == nil then
        return piece
      end
      on_output(piece.stream, piece.text)
    end
  end
end

-- `hygge.store.update`: computes and swaps until no other call has changed the value meanwhile.
local random = math.random
local function make_update(read, swap, sleep)
  return function(key, change)
    for try = 1, 100 do
      local old = read(key, change)
      local new = change(old.value)
      if swap(key, old.text, new) then
        return new
      elseif try > 1 then
        -- A random wait that grows, so that calls do not meet again.
        sleep(random() * math.min(2 ^ try, 64))
      end
    end
    error("hygge.store.update: other calls changed '" .. tostring(key) .. "' each time, 100 times in a row", level())
  end
end

-- `require` on top of `find`, which returns the compiled text of a module.
local function make_require(find)
  local loaded, loading = {}, {}
  return function(name)
    if loaded[name] ~= nil then
      return loaded[name]
    end
    if loading[name] then
      error("require: module '" .. tostring(name) .. "' requires itself", level())
    end
    local chunk, mistake = find(name)
    if not chunk then
      error(mistake, 0)
    end
    loading[name] = true
    local ok, value = pcall(chunk, name)
    loading[name] = nil
    if not ok then
      error(value, 0)
    end
    loaded[name] = value == nil and true or value
    return loaded[name]
  end
end

-- While a plugin loads, calls `note` when it uses functions whose result may differ next time. Returns a function that
-- ends this.
local function note_changing(note)
  local loading = true
  for library, names in pairs({ [os] = { "time", "date", "clock" }, [math] = { "random", "randomseed" } }) do
    for _, name in ipairs(names) do
      local own = library[name]
      library[name] = function(a, b)
        if loading then
          note()
        end
        if b ~= nil then
          return own(a, b)
        elseif a ~= nil then
          return own(a)
        end
        return own()
      end
    end
  end
  return function()
    loading = false
  end
end

return { note_changing = note_changing, level = level, exec = exec, update = make_update, require = make_require, all = all, lift = lift, lift_waiting = lift_waiting, resume = resume, create = raw_create, status = raw_status }
