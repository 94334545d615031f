-- Answers "who uses port 3000?", which agents ask whenever a server does not start. Reads what `ss` (Linux) or `lsof`
-- (macOS, BSD) print, and asks `ps` about the processes.

local GET = "neither `ss` nor `lsof` is there: install the package iproute2 (`ss`, Linux) or lsof, then call again"

-- The output of a program; nil if it cannot be started, or nothing may run it.
local function output(command, args)
  local started, result = pcall(hygge.exec, command, args, { timeout = "10s" })
  if not started then return nil end
  -- `lsof` ends with 1 when it finds nothing, `ps` when a process is gone.
  if result.code ~= 0 and result.stderr ~= "" and result.stdout == "" then return nil, result.stderr end
  return result.stdout
end

local function address_of(text)
  local host, port = text:match("^(.*):(%d+)$")
  if not port then return nil end
  host = host:gsub("^%[(.*)%]$", "%1"):gsub("%%.*$", ""):gsub("^::ffff:", "")
  local is_any = host == "0.0.0.0" or host == "::" or host == "*"
  local is_own = host:match("^127%.") or host == "::1"
  return tonumber(port), is_any and "every address" or is_own and "this machine only" or host
end

-- LISTEN 0 4096 127.0.0.1:3000 0.0.0.0:* users:(("node",pid=42,fd=18))
local function from_ss(text)
  local found = {}
  for line in text:gmatch("[^\n]+") do
    local own, rest = line:match("^LISTEN%s+%d+%s+%d+%s+(%S+)%s+%S+%s*(.*)$")
    local port, where = address_of(own or "")
    if port then
      local pids = {}
      for pid in rest:gmatch("pid=(%d+)") do pids[pid] = true end
      if not next(pids) then pids["?"] = true end
      for pid in pairs(pids) do found[#found + 1] = { port = port, where = where, pid = pid } end
    end
  end
  return found
end

-- p42, cnode, n127.0.0.1:3000, each on a line.
local function from_lsof(text)
  local found, pid = {}, "?"
  for line in text:gmatch("[^\n]+") do
    local field, value = line:sub(1, 1), line:sub(2)
    if field == "p" then pid = value end
    local port, where = address_of(field == "n" and value or "")
    if port then found[#found + 1] = { port = port, where = where, pid = pid } end
  end
  return found
end

local function processes(found)
  local pids, seen = {}, {}
  for _, entry in ipairs(found) do
    if entry.pid ~= "?" and not seen[entry.pid] then
      seen[entry.pid] = true
      pids[#pids + 1] = entry.pid
    end
  end
  local about = {}
  if #pids == 0 then return about end
  local text = output("ps", { "-o", "pid=,user=,etime=,args=", "-p", table.concat(pids, ",") }) or ""
  for line in text:gmatch("[^\n]+") do
    local pid, user, age, command = line:match("^%s*(%d+)%s+(%S+)%s+(%S+)%s+(.*)$")
    if pid then
      command = command:gsub("%c", "?")
      if #command > 160 then command = command:sub(1, 160) .. "..." end
      about[pid] = string.format("pid %s of %s, up %s: %s", pid, user, age, command)
    end
  end
  return about
end

hygge.register_tool {
  name = "ports",
  label = "Listening ports",
  description = "Shows which programs listen on which TCP ports of this machine: port, address, process, since when, and the "
    .. "command line. Call it when an address is in use, or to find the server that you started.",
  parallelizable = true,
  timeout = "30s",
  annotations = { read_only = true, idempotent = true },
  permission = false,
  input_schema = {
    type = "object",
    properties = {
      port = { type = "integer", minimum = 1, maximum = 65535, description = "Only this one; all when absent." },
    },
    additionalProperties = false,
  },
  execute = function(_, input)
    local text, message = output("ss", { "-H", "-l", "-t", "-n", "-p" })
    local found
    if text then
      found = from_ss(text)
    else
      local other, why = output("lsof", { "-n", "-P", "-i", "TCP", "-s", "TCP:LISTEN", "-F", "pn" })
      if not other then return { content = why or message or GET, is_error = true } end
      found = from_lsof(other)
    end
    local wanted, seen = {}, {}
    for _, entry in ipairs(found) do
      -- One line for a server that listens on IPv4 and IPv6.
      local same = entry.port .. entry.where .. entry.pid
      if (not input.port or entry.port == input.port) and not seen[same] then
        seen[same] = true
        wanted[#wanted + 1] = entry
      end
    end
    table.sort(wanted, function(a, b)
      if a.port ~= b.port then return a.port < b.port end
      return a.where .. a.pid < b.where .. b.pid
    end)
    if #wanted == 0 then
      return input.port and "nothing listens on port " .. input.port or "nothing listens on a TCP port"
    end
    local about, lines = processes(wanted), {}
    for i, entry in ipairs(wanted) do
      if i > 100 then
        lines[i] = string.format("[%d more: ask for one port]", #wanted - 100)
        break
      end
      local process = about[entry.pid] or entry.pid ~= "?" and "pid " .. entry.pid or "a process of another user"
      lines[i] = string.format("%d on %s: %s", entry.port, entry.where, process)
    end
    return { content = table.concat(lines, "\n"), metadata = { listening = #wanted } }
  end,
}
