--- Questions of tools, answered through `vim.ui.select` and `vim.ui.input`.

local client = require("toold.client")
local config = require("toold.config")
local prompts = require("toold.prompts")
local text = require("toold.text")

local M = {}

local function reply(question, answer)
  local params = vim.tbl_extend("force", { request_id = question.request_id }, answer)
  client.request("questions.reply", params, function(err)
    if err and err.data and err.data.kind == "unknown_request" then
      vim.notify("toold: this question was answered already", vim.log.levels.INFO)
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
  for _, option in ipairs(question.options) do
    local mark = question.multiple and (chosen[option.id] and "[x] " or "[ ] ") or ""
    local about = option.description and "  (" .. text.line(option.description) .. ")" or ""
    list[#list + 1] = { kind = "option", id = option.id, label = mark .. text.line(option.label) .. about }
  end
  if question.multiple then
    list[#list + 1] = { kind = "send", label = "Send the marked options" }
  end
  if question.allow_other or #question.options == 0 then
    list[#list + 1] = { kind = "other", label = "Type an answer" }
  end
  list[#list + 1] = { kind = "none", label = "Do not answer" }
  return list
end

local function show(question, chosen, done)
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
  vim.ui.select(items(question, chosen), {
    prompt = text.line(question.question),
    kind = "toold_question",
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
        show(question, chosen, done)
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
      prompts.over(item.request_id)
      return
    end
    local question = item.request
    prompts.add({
      id = question.request_id,
      kind = "question",
      asked_at = question.asked_at,
      headline = text.line(question.question),
      close = function() end,
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
