-- The standard `io` and `os`, on top of the host functions, which check permissions.
-- Files are read as a whole, and writes are not buffered.
local hygge, host = ...

local fs, log, print = hygge.fs, hygge.log, print
local type, error, pcall, select, tostring, tonumber, setmetatable = type, error, pcall, select, tostring, tonumber, setmetatable
local sub, find, match, rep, concat = string.sub, string.find, string.match, string.rep, table.concat
local level = host.level

local File = {}
File.__index = File
File.__tostring = function(file)
  return file.closed and "file (closed)" or "file (" .. file.path .. ")"
end

local function check(file)
  if getmetatable(file) ~= File then
    error("bad argument #1 (file expected)", level())
  elseif file.closed then
    error("attempt to use a closed file", level())
  end
end

local function read_one(file, format)
  local text, at = file.text, file.at
  if type(format) == "number" then
    if at > #text then
      return format == 0 and (at <= #text and "" or nil) or nil
    end
    file.at = at + format
    return sub(text, at, at + format - 1)
  end
  format = match(tostring(format), "^%*?(.)")
  if format == "a" then
    file.at = #text + 1
    return sub(text, at)
  elseif format == "l" or format == "L" then
    if at > #text then
      return nil
    end
    local stop = find(text, "\n", at, true)
    file.at = (stop or #text) + 1
    if not stop then
      return sub(text, at)
    end
    return sub(text, at, format == "L" and stop or stop - 1)
  elseif format == "n" then
    local _, blank = find(text, "^%s*", at)
    local _, last = find(text, "^[%+%-]?0[xX]%x+", blank + 1)
    if not last then
      _, last = find(text, "^[%+%-]?%d*%.?%d*", blank + 1)
      local _, exponent = find(text, "^[eE][%+%-]?%d+", last + 1)
      last = exponent or last
    end
    file.at = last + 1
    return tonumber(sub(text, blank + 1, last))
  end
  error("bad argument #1 to 'read' (invalid format)", level())
end

function File:read(...)
  check(self)
  if not self.text then
    return nil, "the file is not open for reading", 9
  end
  local count = select("#", ...)
  if count == 0 then
    return read_one(self, "l")
  end
  local results = {}
  for i = 1, count do
    results[i] = read_one(self, (select(i, ...)))
    if results[i] == nil then
      break
    end
  end
  return unpack(results, 1, count)
end

function File:lines(format)
  check(self)
  return function()
    if self.closed then
      error("file is already closed", level())
    end
    local line = read_one(self, format or "l")
    if line == nil and self.close_at_end then
      self.closed = true
    end
    return line
  end
end

function File:write(...)
  check(self)
  if not self.sink then
    return nil, "the file is not open for writing", 9
  end
  local pieces = {}
  for i = 1, select("#", ...) do
    local piece = select(i, ...)
    if type(piece) ~= "string" and type(piece) ~= "number" then
      error("bad argument #" .. i .. " to 'write' (string expected, got " .. type(piece) .. ")", level())
    end
    pieces[i] = tostring(piece)
  end
  local ok, message = pcall(self.sink, concat(pieces))
  if not ok then
    return nil, message
  end
  return self
end

function File:seek(whence, offset)
  check(self)
  whence, offset = whence or "cur", offset or 0
  local base = whence == "set" and 0 or whence == "end" and (self.size or 0) or self.at - 1
  if base + offset < 0 then
    return nil, self.path .. ": Invalid argument", 22
  end
  self.at = base + offset + 1
  return self.at - 1
end

function File:close()
  check(self)
  self.closed = true
  if self.code then
    return self.code == 0, "exit", self.code
  end
  return true
end

function File:flush()
  return self
end

function File:setvbuf()
  return true
end

local function new(fields)
  fields.at = 1
  return setmetatable(fields, File)
end

-- A file that is too large to be read as a whole: the same methods, in pieces.
local Large = {}
Large.__index = Large
Large.__tostring = File.__tostring

function Large:read(...)
  if self.closed then
    error("attempt to use a closed file", level())
  end
  local results, count = {}, math.max(1, select("#", ...))
  for i = 1, count do
    local format = (select(i, ...)) or "l"
    if type(format) == "number" then
      results[i] = self.pieces:read(format)
    else
      local kind = match(tostring(format), "^%*?(.)")
      if kind == "l" then
        results[i] = self.pieces:line()
      elseif kind == "a" then
        local all = {}
        for piece in function() return self.pieces:read() end do
          all[#all + 1] = piece
        end
        results[i] = concat(all)
      else
        error("bad argument #1 to 'read' (a large file is read by lines or by numbers of bytes)", level())
      end
    end
    if results[i] == nil then
      break
    end
  end
  return unpack(results, 1, count)
end

function Large:lines()
  return function()
    local line = self:read("l")
    if line == nil and self.close_at_end then
      self.closed = true
    end
    return line
  end
end

function Large:seek(whence, offset)
  whence, offset = whence or "cur", offset or 0
  if whence == "set" then
    return self.pieces:seek(offset)
  elseif whence == "end" then
    return self.pieces:seek(fs.stat(self.path).size + offset)
  end
  return self.pieces:seek(self.pieces.offset + self.pieces.at - 1 + offset)
end

function Large:close()
  self.closed = true
  return true
end

function Large:write()
  return nil, "the file is not open for writing", 9
end

Large.flush, Large.setvbuf = File.flush, File.setvbuf

local function large(path)
  return setmetatable({ path = path, pieces = fs.open(path) }, Large)
end

-- The text with the piece at this place, over what was there. A gap before it becomes zeros.
local function placed(text, at, piece)
  return sub(text, 1, at - 1) .. rep("\0", at - 1 - #text) .. piece .. sub(text, at + #piece)
end

local io = {}
local input, output

function io.open(path, mode)
  path, mode = tostring(path), mode or "r"
  local kind, plus = match(mode, "^([rwa])b?(%+?)b?$")
  if not kind then
    error("bad argument #2 to 'open' (invalid mode)", level())
  end
  local file = { path = path, size = 0 }
  if kind == "r" or plus == "+" then
    local ok, text = pcall(fs.read, path)
    if ok then
      file.text = text
    elseif kind == "r" and plus == "" and find(tostring(text), "is larger than", 1, true) then
      return large(path)
    elseif kind == "r" then
      return nil, text, 2
    else
      file.text = ""
    end
  end
  if kind == "w" then
    local ok, message = pcall(fs.write, path, "")
    if not ok then
      return nil, message, 13
    end
    file.text = plus == "+" and "" or nil
  end
  file.size = file.text and #file.text or 0
  if kind ~= "r" or plus == "+" then
    file.sink = function(piece)
      local at = kind == "a" and file.size + 1 or file.at
      if at == file.size + 1 then
        fs.append(path, piece)
        file.text = file.text and file.text .. piece
      else
        local text = placed(file.text or fs.read(path), at, piece)
        fs.write(path, text)
        file.text = file.text and text
      end
      file.at = at + #piece
      file.size = math.max(file.size, file.at - 1)
    end
  end
  return new(file)
end

function io.lines(path, format)
  if path == nil then
    return input:lines()
  end
  local file, message = io.open(path)
  if not file then
    error(message, level())
  end
  file.close_at_end = true
  return file:lines(format)
end

function io.popen(command, mode)
  if mode == "w" then
    error("io.popen: only reading is supported; use the option stdin of hygge.exec to write", level())
  end
  local result = host.shell(command)
  local text = result.stdout
  if result.stderr ~= "" then
    log("warn", result.stderr)
  end
  return new { path = command, text = text, size = #text, code = result.code }
end

io.stdout = new { path = "stdout", sink = function(text) print((string.gsub(text, "\n$", ""))) end }
io.stderr = new { path = "stderr", sink = function(text) log("warn", (string.gsub(text, "\n$", ""))) end }
io.stdin = new { path = "stdin", text = "" }

input, output = io.stdin, io.stdout

-- Opens a file that is given by its name. As in Lua 5.1, a failure is an error.
local function opened(file, mode)
  if type(file) ~= "string" then
    check(file)
    return file
  end
  local new_file, message = io.open(file, mode)
  if not new_file then
    error(message, level())
  end
  return new_file
end

function io.input(file)
  if file ~= nil then
    input = opened(file, "r")
  end
  return input
end

function io.output(file)
  if file ~= nil then
    output = opened(file, "w")
  end
  return output
end

function io.write(...)
  return output:write(...)
end

function io.read(...)
  return input:read(...)
end

function io.flush()
  return output
end

-- Nobody else can know its name, so its text is only here, and nothing of it is left.
function io.tmpfile()
  local file = new { path = "temporary", text = "", size = 0 }
  file.sink = function(piece)
    file.text = placed(file.text, file.at, piece)
    file.at, file.size = file.at + #piece, #file.text
  end
  return file
end

function io.type(value)
  local meta = getmetatable(value)
  if meta ~= File and meta ~= Large then
    return nil
  end
  return value.closed and "closed file" or "file"
end

function io.close(file)
  return (file or output):close()
end

local function tried(ok, message)
  if ok then
    return true
  end
  return nil, message, 1
end

function os.remove(path)
  return tried(pcall(fs.remove, path))
end

function os.rename(from, to)
  return tried(pcall(host.rename, from, to))
end

function os.execute(command)
  if command == nil then
    return true
  end
  return host.shell(command).code
end

function os.exit()
  error("os.exit: a plugin cannot end the daemon; return from the function instead", level())
end

local getenv, variables = host.getenv, host.variables

function os.getenv(name)
  local own = variables[name]
  if own ~= nil then
    return own
  end
  return getenv(name)
end

-- For this plugin: for os.getenv, and for the programs that hygge.exec runs.
function os.setenv(name, value)
  if type(name) ~= "string" or not match(name, "^[%a_][%w_]*$") then
    error("os.setenv: argument 1 'name': expected the name of a variable", level())
  end
  variables[name] = tostring(value)
  return true
end

os.tmpname = host.tmpname

return io
