--- Permission requests, answered by one key, with the diff or the command line beside it.

local client = require("toold.client")
local config = require("toold.config")
local float = require("toold.float")
local keys = require("toold.keys")
local prompts = require("toold.prompts")
local text = require("toold.text")

local M = {}

local SCOPES = {
  { key = "y", scope = "once", label = "Allow once" },
  { key = "s", scope = "session", label = "Allow in this session" },
  { key = "h", scope = "project", label = "Allow in this project for 1 hour", expires_in = 3600 },
  { key = "p", scope = "project", label = "Allow in this project" },
  { key = "a", scope = "always", label = "Allow always" },
}

--- For a client that asks for a folder to work in: all answers but those for the session are remembered for it.
local FOLDER = {
  { key = "y", scope = "always", label = "Allow, and remember it for this client" },
  { key = "s", scope = "session", label = "Allow in this session" },
}

--- Whether a client asks for a folder to work in, and not for one file: every other request to read suggests patterns.
local function is_for_workspace(ask)
  return ask.category == "file.read" and #(ask.suggestions or {}) == 0
end

local function scopes(ask)
  if is_for_workspace(ask) then
    return FOLDER
  end
  -- A request without suggestions cannot be remembered.
  return #(ask.suggestions or {}) > 0 and SCOPES or { SCOPES[1] }
end

--- The possible answers, by the keys that all clients have for them; denying comes last.
function M.choices(ask)
  local choices = {}
  local session = ask.session_name and "in " .. text.line(ask.session_name) or "in this session"
  for _, each in ipairs(scopes(ask)) do
    choices[#choices + 1] = {
      key = each.key,
      label = each.scope == "session" and "Allow " .. session or each.label,
      reply = { action = "allow", scope = each.scope, expires_in = each.expires_in },
    }
  end
  if ask.parts and #ask.parts > 0 then
    local all = { key = "w", label = "Allow all parts once", reply = { action = "allow", scope = "once", all_parts = true } }
    table.insert(choices, 2, all)
  end
  local named = { once = "once", session = session, project = "in this project", always = "always" }
  local number = 0
  for _, suggestion in ipairs(ask.suggestions or {}) do
    if suggestion.pattern ~= ask.target and number < 9 then
      number = number + 1
      local label = ("Allow %s: %s"):format(named[suggestion.scope] or suggestion.scope, text.line(suggestion.pattern))
      if suggestion.covers then
        label = label .. " (" .. text.line(suggestion.covers) .. ")"
      end
      choices[#choices + 1] = {
        key = tostring(number),
        label = label,
        reply = { action = "allow", scope = suggestion.scope, pattern = suggestion.pattern },
      }
    end
  end
  choices[#choices + 1] = { key = "n", label = "Deny", reply = { action = "deny" } }
  choices[#choices + 1] = { key = "d", label = "Deny, and say why", reply = { action = "deny" }, why = true }
  return choices
end

--- The agents other than this editor whose calls wait for the answer.
local function agents(ask)
  local all = ask.agents and #ask.agents > 0 and ask.agents or { ask.agent }
  return vim.tbl_filter(function(agent)
    return agent ~= "nvim"
  end, all)
end

--- Until when an answer counts, for a request that does not wait for long: its line stays as it was shown.
local function until_when(expires_at)
  local year, month, day, hour, min, sec = (expires_at or ""):match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)")
  if not year then
    return nil
  end
  local as_local = os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false })
  local utc = os.date("!*t", as_local)
  utc.isdst = false
  local at = as_local + os.difftime(as_local, os.time(utc))
  return at - os.time() < 5 * 60 and "answer by " .. os.date("%H:%M:%S", at) or nil
end

--- The request on one line.
function M.headline(ask)
  local who = ask.tool
  local others = agents(ask)
  if #others > 0 and not is_for_workspace(ask) then
    who = who .. " for " .. table.concat(others, " and ")
  end
  if ask.subagent then
    who = who .. ", sub-agent " .. ask.subagent
  end
  if ask.chain and #ask.chain > 0 then
    who = who .. " (of " .. table.concat(ask.chain, ", ") .. ")"
  end
  if is_for_workspace(ask) then
    return text.line(("%s wants a folder to work in: %s"):format(who, ask.reason or ask.target))
  end
  local notes = {}
  if ask.reason and ask.reason ~= "" then
    notes[#notes + 1] = ask.reason
  end
  if ask.description then
    notes[#notes + 1] = "the agent says: " .. ask.description
  end
  for _, warning in ipairs(ask.misleading or {}) do
    notes[#notes + 1] = "careful: " .. warning
  end
  if ask.level then
    notes[#notes + 1] = "level " .. ask.level
  end
  if ask.cwd then
    notes[#notes + 1] = "in " .. vim.fn.fnamemodify(ask.cwd, ":~")
  end
  notes[#notes + 1] = until_when(ask.expires_at)
  local reason = #notes > 0 and " (" .. table.concat(notes, "; ") .. ")" or ""
  local part = ask.part and (" (%d of %d)"):format(ask.part, #ask.parts) or ""
  return text.line(("%s wants %s%s: %s%s"):format(who, ask.category, part, ask.target, reason))
end

local function details(ask)
  if ask.diff and ask.diff ~= "" then
    return text.lines(ask.diff), "diff"
  end
  if ask.command and ask.command ~= ask.target then
    return text.lines(ask.command), "sh"
  end
  return nil
end

-- The ids of the requests that were answered here.
local answered = {}

local function reply(ask, answer)
  answered[ask.request_id] = true
  local params = vim.tbl_extend("force", { request_id = ask.request_id }, answer)
  client.request("permissions.reply", params, function(err)
    if err then
      answered[ask.request_id] = nil
    end
    -- The loss of the daemon is reported already, and the request is gone with it.
    if not err or err.kind == "disconnected" then
      return
    end
    if err.data and err.data.kind == "unknown_request" then
      vim.notify("toold: nothing was changed: " .. text.line(err.message), vim.log.levels.INFO)
    else
      vim.notify("toold: the daemon did not accept the answer: " .. err.message, vim.log.levels.ERROR)
      prompts.again()
    end
  end)
end

local function prompt_of(ask)
  local window
  local function close_choices() end
  local prompt = { id = ask.request_id, kind = "ask", asked_at = ask.asked_at, headline = M.headline(ask) }

  function prompt.renew(request)
    ask = request
    prompt.headline = M.headline(ask)
  end

  function prompt.close()
    close_choices()
    float.close(window)
    window = nil
  end

  function prompt.show(done)
    local lines, filetype = details(ask)
    local choices = M.choices(ask)
    if lines then
      -- The headline may take two lines, and both windows have borders.
      local place = { filetype = filetype, title = " " .. text.line(ask.target) .. " ", at = "top", below = #choices + 7 }
      window = float.open(lines, place)
    end
    vim.cmd("redraw")
    close_choices = keys.select(choices, {
      prompt = prompt.headline,
      kind = "toold_ask",
      format_item = function(choice)
        return choice.label
      end,
    }, function(choice)
      prompt.close()
      if not choice then
        if prompts.is_pending(ask.request_id) then
          vim.notify("toold: not answered; :ToolAsks shows it again", vim.log.levels.INFO)
        end
        return done()
      end
      if not choice.why then
        reply(ask, choice.reply)
        return done()
      end
      vim.ui.input({ prompt = "Why not: " }, function(message)
        if message then
          reply(ask, { action = "deny", message = message ~= "" and message or nil })
        end
        done()
      end)
    end)
  end

  return prompt
end

--- Takes an item of the subscription: a new request, an open one as it is now, or the end of one.
function M.on_item(item)
  if item.type ~= "asked" then
    prompts.ended(item, answered)
  elseif not prompts.renew(item.request.request_id, item.request) then
    prompts.add(prompt_of(item.request))
  end
end

function M.on_connect()
  if not config.options.asks then
    return
  end
  client.request("permissions.subscribe", {}, function(err)
    if err and err.kind ~= "disconnected" then
      -- An editor that an agent has started may not answer for you.
      vim.notify("toold: you cannot answer permission requests here: " .. err.message, vim.log.levels.WARN)
    end
  end, M.on_item)
end

function M.on_disconnect()
  prompts.clear("ask")
end

return M
