-- `package`, `require`, `module`, `dofile` and `loadfile`. Only files of the plugin are loaded: `host.file` compiles one,
-- or returns nil, the reason, and whether the search goes on.
local host, path = ...

local type, tostring, pcall, setmetatable, getmetatable = type, tostring, pcall, setmetatable, getmetatable
local gsub, gmatch, match, concat, setfenv = string.gsub, string.gmatch, string.match, table.concat, setfenv
local file, level = host.file, host.level

local loaded = {}
local package = { path = path, cpath = "", config = "/\n;\n?\n!\n-\n", loaded = loaded, preload = {} }

local function from_preload(name)
  return package.preload[name]
end

local function from_files(name)
  if type(package.path) ~= "string" then
    error("package.path: expected a string, got " .. type(package.path), level())
  end
  local within = gsub(gsub(name, "%.", "/"), "%%", "%%%%")
  local tried = {}
  for template in gmatch(package.path, "[^;]+") do
    local chunk, mistake, goes_on = file((gsub(template, "%?", within)))
    if chunk then
      return chunk
    elseif not goes_on then
      error(mistake, 0)
    end
    tried[#tried + 1] = mistake
  end
  return concat(tried, ", ")
end

package.loaders = { from_preload, from_files }
package.searchers = package.loaders

function package.loadlib()
  error("package.loadlib: a plugin cannot load C libraries", level())
end

function package.seeall(module)
  local meta = getmetatable(module) or {}
  meta.__index = loaded._G
  setmetatable(module, meta)
end

-- The value of a module while it loads.
local LOADING = setmetatable({}, { __metatable = "loading" })

local function find(name)
  local tried = {}
  for place = 1, #package.loaders do
    local found = package.loaders[place](name)
    if type(found) == "function" then
      return found
    elseif type(found) == "string" then
      tried[#tried + 1] = found
    end
  end
  error("require: no module '" .. name .. "': " .. concat(tried, ", "), level())
end

function require(name)
  if type(name) ~= "string" and type(name) ~= "number" then
    error("require: argument 1 'name': expected a string, got " .. type(name), level())
  end
  name = tostring(name)
  if loaded[name] == LOADING then
    error("require: module '" .. name .. "' requires itself", level())
  elseif loaded[name] then
    return loaded[name]
  end
  local chunk = find(name)
  loaded[name] = LOADING
  local ok, value = pcall(chunk, name)
  if not ok then
    loaded[name] = nil
    error(value, 0)
  end
  if value ~= nil then
    loaded[name] = value
  elseif loaded[name] == LOADING then
    loaded[name] = true
  end
  return loaded[name]
end

-- The table at a dotted name below the globals; it is made if there is none.
local function named_table(name)
  local at = loaded._G
  for part in gmatch(name, "[^.]+") do
    local next_table = at[part]
    if next_table == nil then
      next_table = {}
      at[part] = next_table
    elseif type(next_table) ~= "table" then
      error("module: name conflict for module '" .. name .. "'", level())
    end
    at = next_table
  end
  return at
end

function module(name, ...)
  local own = loaded[name]
  if type(own) ~= "table" or own == LOADING then
    own = named_table(name)
    loaded[name] = own
  end
  if own._NAME == nil then
    own._M, own._NAME, own._PACKAGE = own, name, match(name, "^(.*%.)[^.]*$") or ""
  end
  setfenv(2, own)
  for place = 1, select("#", ...) do
    select(place, ...)(own)
  end
end

function loadfile(name, _, env)
  if name == nil then
    return nil, "loadfile: there is no standard input: give it a file of the plugin"
  end
  local chunk, mistake = file(name)
  if chunk and env ~= nil then
    setfenv(chunk, env)
  end
  return chunk, mistake
end

function dofile(name)
  local chunk, mistake = loadfile(name)
  if not chunk then
    error(mistake, 0)
  end
  return chunk()
end

_G.package = package
