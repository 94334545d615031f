--- Questions of tools, answered by one key, or through `vim.ui.input`.

local client = require("toold.client")
local config = require("toold.config")
local keys = require("toold.keys")
local prompts = require("toold.prompts")
local text = require("toold.text")

local M = {}

-- The ids of the questions that were answered here.
local answered = {}

local function reply(question, answer)
  answered[question.request_id] = true
  local params = vim.tbl_extend("force", { request_id = question.request_id }, answer)
  client.request("questions.reply", params, function(err)
    if err then
      answered[question.request_id] = nil
    end
    if err and err.data and err.data.kind == "unknown_request" then
      vim.notify("toold: nothing was changed: " .. text.line(err.message), vim.log.levels.INFO)
    elseif err and err.kind ~= "disconnected" then
      vim.notify("toold: the daemon did not accept the answer: " .. err.message, vim.log.levels.ERROR)
    end
  end)
end

--- The chosen ids, in the order of the question's options.
local function ids(question, chosen)
  local list = {}
  for _, option in ipairs(question.options) do
    if chosen[option.id] then
      list[#list + 1] = option.id
    end
  end
  return list
end

local function items(question, chosen)
  local list = {}
  for number, option in ipairs(question.options) do
    local mark = question.multiple and (chosen[option.id] and "[x] " or "[ ] ") or ""
    local about = option.description and "  (" .. text.line(option.description) .. ")" or ""
    local label = mark .. text.line(option.label) .. about
    list[#list + 1] = { key = number < 10 and tostring(number) or nil, kind = "option", id = option.id, label = label }
  end
  if question.multiple then
    list[#list + 1] = { key = "<CR>", kind = "send", label = "Send the marked options" }
  end
  if question.allow_other or #question.options == 0 then
    list[#list + 1] = { key = "o", kind = "other", label = "Type an answer" }
  end
  list[#list + 1] = { key = "n", kind = "none", label = "Do not answer" }
  return list
end

-- Closes the choices of the question that is shown.
local function close_choices() end

local function show(question, chosen, done, is_read)
  local function answer(params)
    reply(question, params)
    done()
  end
  local function in_words()
    vim.ui.input({ prompt = text.line(question.question) .. " " }, function(words)
      if not words or words == "" then
        return done()
      end
      local marked = ids(question, chosen)
      answer({ answer = words, answer_ids = #marked > 0 and marked or nil })
    end)
  end
  vim.cmd("redraw")
  close_choices = keys.select(items(question, chosen), {
    prompt = text.line(question.question),
    kind = "toold_question",
    read = is_read,
    format_item = function(item)
      return item.label
    end,
  }, function(item)
    if not item then
      if prompts.is_pending(question.request_id) then
        vim.notify("toold: not answered; :ToolAsks shows it again", vim.log.levels.INFO)
      end
      done()
    elseif item.kind == "none" then
      answer({ cancelled = true })
    elseif item.kind == "other" then
      in_words()
    elseif item.kind == "send" then
      answer({ answer_ids = ids(question, chosen) })
    elseif question.multiple then
      chosen[item.id] = not chosen[item.id]
      -- Not from inside the callback: some pickers close themselves after it.
      vim.schedule(function()
        show(question, chosen, done, true)
      end)
    else
      answer({ answer_ids = { item.id } })
    end
  end)
end

function M.on_connect()
  if not config.options.questions then
    return
  end
  client.request("questions.subscribe", {}, nil, function(item)
    if item.type ~= "asked" then
      prompts.ended(item, answered)
      return
    end
    local question = item.request
    prompts.add({
      id = question.request_id,
      kind = "question",
      asked_at = question.asked_at,
      headline = text.line(question.question),
      close = function()
        close_choices()
      end,
      show = function(done)
        show(question, {}, done)
      end,
    })
  end)
end

function M.on_disconnect()
  prompts.clear("question")
end

return M
