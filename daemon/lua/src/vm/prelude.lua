-- Replaces library functions that could run without a bound, and makes the functions that scripts call of host
-- functions. Runs once in each new Lua state, before any plugin; `host` holds host functions. Functions that only Lua 5.1
-- has are in lua51.lua.
local host = ...

local string, table, math, coroutine, os = string, table, math, coroutine, os
local error, type, select, next, pairs, tostring = error, type, select, next, pairs, tostring
local string_find = string.find
local table_move, table_sort = table.move, table.sort
local table_pack, table_unpack = table.pack, table.unpack
local raw_create, raw_resume, raw_yield = coroutine.create, coroutine.resume, coroutine.yield
local raw_status, isyieldable = coroutine.status, coroutine.isyieldable

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

-- A plain search takes linear time, no matter how often the needle almost matches.
local plain_find = host.plain_find
function string.find(text, pattern, init, plain)
  if plain and type(text) == "string" and type(pattern) == "string" then
    return plain_find(text, pattern, init)
  end
  return string_find(text, pattern, init, plain)
end

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

-- Sorts by runs of 8 and merges them. Unlike the built-in one, it takes any comparison, such as `<=`, and one that raises
-- leaves the list as it was.
local RUN = 8
local function sort_by(list, count, compare)
  local from, to = table_move(list, 1, count, 1, table.create(count)), table.create(count)
  for low = 1, count, RUN do
    for place = low + 1, math.min(low + RUN - 1, count) do
      local value, at = from[place], place - 1
      while at >= low and compare(value, from[at]) do
        from[at + 1] = from[at]
        at = at - 1
      end
      from[at + 1] = value
    end
  end
  local width = RUN
  while width < count do
    for low = 1, count, 2 * width do
      local middle, last = math.min(low + width, count + 1), math.min(low + 2 * width, count + 1)
      local left, right = low, middle
      for place = low, last - 1 do
        if left < middle and (right >= last or not compare(from[right], from[left])) then
          to[place] = from[left]
          left = left + 1
        else
          to[place] = from[right]
          right = right + 1
        end
      end
    end
    from, to, width = to, from, 2 * width
  end
  table_move(from, 1, count, 1, list)
end

-- A comparison in Lua can be interrupted, the built-in one cannot.
function table.sort(list, compare)
  if type(list) ~= "table" or (compare ~= nil and type(compare) ~= "function") then
    return table_sort(list, compare)
  end
  local count = #list
  if compare == nil then
    if count <= 20000 then
      return table_sort(list)
    end
    compare = less
  end
  sort_by(list, count, compare)
end

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

-- `hygge.json.pairs`: the members in the order of the JSON text, then those that were added, by name. `order` has the names of
-- decoded tables.
local function json_pairs(order)
  return function(value)
    if type(value) ~= "table" then
      error("hygge.json.pairs: argument 1 'value': expected a table, got " .. type(value), level())
    end
    local names, seen, added = {}, {}, {}
    for _, name in order[value] or {} do
      if value[name] ~= nil and not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
    for name in next, value do
      if not seen[name] then
        added[#added + 1] = name
      end
    end
    table_sort(added, function(a, b)
      if type(a) == type(b) and (type(a) == "string" or type(a) == "number") then
        return a < b
      end
      return type(a) < type(b)
    end)
    table_move(added, 1, #added, #names + 1, names)
    local place = 0
    return function()
      while place < #names do
        place = place + 1
        local name = names[place]
        if value[name] ~= nil then
          return name, value[name]
        end
      end
    end
  end
end

-- `hygge.fs.open` and `hygge.fs.lines`: files in pieces, so that a file of any size can be read.
local PIECE_BYTES = 262144
local function file_pieces(read_at)
  local Pieces = {}
  Pieces.__index = Pieces

  -- Reads on until the buffer has this many bytes, or the file ends.
  local function fill(file, count)
    while not file.ended and #file.buffer - file.at + 1 < count do
      local piece = read_at(file.path, file.offset + #file.buffer, math.max(PIECE_BYTES, math.min(count, 16777216)))
      if piece == "" then
        file.ended = true
      else
        file.buffer, file.offset, file.at =
          string.sub(file.buffer, file.at) .. piece, file.offset + file.at - 1, 1
      end
    end
  end

  -- The next `count` bytes, 256 KiB if it is not given; nil at the end.
  function Pieces:read(count)
    count = count or PIECE_BYTES
    fill(self, count)
    local piece = string.sub(self.buffer, self.at, self.at + count - 1)
    self.at = self.at + #piece
    return piece ~= "" and piece or nil
  end

  local function next_line(file)
    local from = file.at
    while true do
      local stop = plain_find(file.buffer, "\n", from)
      if stop then
        local line = string.sub(file.buffer, file.at, stop - 1)
        file.at = stop + 1
        return line
      elseif file.ended then
        local line = string.sub(file.buffer, file.at)
        file.at = #file.buffer + 1
        return line ~= "" and line or nil
      end
      local searched = #file.buffer - file.at + 1
      fill(file, searched + 1)
      from = file.at + searched
    end
  end

  function Pieces:line()
    return next_line(self)
  end

  function Pieces:lines()
    return function()
      return next_line(self)
    end
  end

  -- Goes on at this byte, counted from 0.
  function Pieces:seek(offset)
    self.buffer, self.at, self.offset, self.ended = "", 1, offset or 0, false
    return self.offset
  end

  local function open(path)
    local file = setmetatable({ path = path, buffer = "", at = 1, offset = 0, ended = false }, Pieces)
    -- A file that cannot be read is an error here already.
    fill(file, 1)
    return file
  end

  return open, function(path)
    return open(path):lines()
  end
end

-- Variables that the script has set with os.setenv, for os.getenv and for the programs that it runs.
local variables = {}

-- The options of `exec` with these variables. Those that the options name themselves come first.
local function with_variables(options)
  if next(variables) == nil or (options ~= nil and type(options) ~= "table") then
    return options
  end
  local all = options and table.clone(options) or {}
  if all.env ~= nil and type(all.env) ~= "table" then
    return options
  end
  local env = table.clone(variables)
  for name, value in pairs(all.env or {}) do
    env[name] = value
  end
  all.env = env
  return all
end

-- `exec` with `on_output`: the script gets each piece of output while the program runs, in its own coroutine.
local function exec(plain, begin, next_piece)
  return function(command, args, options)
    options = with_variables(options)
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
      local piece = next_piece(id)
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

return {
  all = all, create = raw_create, exec = exec, file_pieces = file_pieces, json_pairs = json_pairs, level = level, lift = lift, lift_waiting = lift_waiting,
  note_changing = note_changing, resume = resume, status = raw_status, update = make_update,
  variables = variables,
}
