---@meta hygge
-- The functions that plugins of toold can call, described for lua-language-server. Nothing here runs.
--
-- Functions return values or raise an error; they return no error codes. Functions that touch files, programs
-- or tools ask the permission policy first, and stop when their call is cancelled.

---@alias hygge.Duration string | number A text such as "500ms", "30s", "2m", "1h", or a number of milliseconds.
---@alias hygge.Level "debug" | "info" | "warn" | "error"
---@alias hygge.Category "file.read" | "file.write" | "shell" | "network" | "mcp" | "agent" | "plugin"

---Something that a call will touch, for the permission policy to decide on.
---@class hygge.Need
---@field category hygge.Category
---@field target string | (string | number)[] A path, a command line or its words, `host:port`, for `mcp` `server/tool`, or a name.
---@field dir? string For `shell`: the folder that the command runs in; the call's `cwd` when absent.
---@field reason? string Shown when you are asked for permission.

---A piece of a result: text, an image or audio in Base64, or a resource.
---@class hygge.Block
---@field type "text" | "image" | "audio" | "resource"
---@field text? string
---@field data? string Base64; anything else is an error of the plugin.
---@field bytes? string Instead of `data`: the bytes of an image or a sound as they are.
---@field mime_type? string
---@field uri? string
---@field blob? string Base64.
---@field name? string Of a link: a resource without text and blob.
---@field description? string Of a link.
---@field meta? table The `_meta` of a resource in MCP.

---What a tool may return instead of a plain value.
---@class hygge.Result
---@field content? string | (string | hygge.Block)[] For the model.
---@field is_error? boolean The tool ran and failed.
---@field metadata? table For frontends and the audit log, not for the model.
---@field structured? any A value that fits `output_schema`.

---@class hygge.SessionInfo
---@field id string
---@field cwd string

---The first argument of `execute`. Its functions are called with a dot.
---@class hygge.Context
---@field input table The arguments; they fit the schema.
---@field call_id string
---@field tool string
---@field session hygge.SessionInfo
---@field cwd string The folder that relative paths are relative to.
---@field model? string The model that the session works with, if its frontend says so.
local ctx = {}

---Reports progress to the caller.
---Raises: a value that is neither a text nor a table.
---
---```lua
---ctx.progress("half of it")
---ctx.progress { progress = 1, total = 2 }
---return "done" --> done
---```
---@param progress string | {message?: string, progress?: number, total?: number, details?: table}
function ctx.progress(progress) end

---Sends output to the caller while the tool runs. If the time limit is reached, it becomes the result.
---
---```lua
---ctx.output("line 1\n")
---return "done" --> done
---```
---@param text string
function ctx.output(text) end

---Whether the call was cancelled. The script is stopped a moment later if it does not return by itself.
---
---```lua
---return ctx.cancelled() --> false
---```
---@return boolean
function ctx.cancelled() end

---How much time the call has left.
---
---```lua
---return ctx.remaining_ms() > 0 --> true
---```
---@return number milliseconds
function ctx.remaining_ms() end

---How a call ended.
---@class hygge.Outcome
---@field status "ok" | "error" | "cancelled" | "timed_out" `error`: the handler raised an error, or its result has `is_error`.
---@field error? string Absent with `ok`.
---@field duration_ms integer How long the handler ran.

---A content block of an image, for the result of a tool.
---Raises: neither `bytes` nor `data`.
---
---```lua
---return ctx.image { bytes = "\137PNG" }.data --> iVBORw==
---```
---@param spec {bytes?: string, data?: string, mime_type?: string, mime?: string} `bytes` as they are, or `data` in Base64; `image/png` when it has no type.
---@return hygge.Block
function ctx.image(spec) end

---A content block of a sound, for the result of a tool.
---Raises: neither `bytes` nor `data`.
---
---```lua
---return ctx.audio { bytes = "RIFF" }.mime_type --> audio/wav
---```
---@param spec {bytes?: string, data?: string, mime_type?: string, mime?: string} As for `ctx.image`; `audio/wav` when it has no type.
---@return hygge.Block
function ctx.audio(spec) end

---Runs a function once the call has ended, however it ended: to remove files, to stop what was started. The last one
---that was given runs first. They have the permissions of the call, but you are not asked: what a rule, a grant or your
---answer during the call does not allow is refused. All of them together may take 1.5 seconds. An error is in the
---plugin's log and does not change the result. Raises outside of handlers.
---Raises: a value that is no function; more than 100 functions.
---
---```lua
---ctx.on_end(function(outcome) hygge.log("info", outcome.status) end)
---return "done" --> done
---```
---@param f fun(outcome: hygge.Outcome)
function ctx.on_end(f) end

---Asks for permission for something that the host cannot see, such as what a program will do.
---Raises: a need without category or target.
---
---```lua
---return ctx.ask { category = "file.read", target = "." } --> true
---```
---@param need hygge.Need
---@return boolean allowed
function ctx.ask(need) end

---Asks the user a question. The call's time limit is paused meanwhile. Raises if no connected frontend can ask.
---Raises: no connected frontend can ask.
---
---```lua
---hygge.register_tool {
---  name = "color",
---  execute = function(ctx)
---    local answer = ctx.question { question = "Which color?", options = { "red", "blue" } }
---    return answer and answer.text or "none"
---  end,
---}
---```
---@param question {question: string, options?: (string | {label: string, id?: string, description?: string})[], multiple?: boolean, allow_other?: boolean}
---@return {id?: string, ids: string[], text?: string}? answer nil if the user declines to answer.
function ctx.question(question) end

---Asks the user to fill in a form. The call's time limit is paused meanwhile. Raises if no connected frontend can ask.
---Raises: no connected frontend can ask; a schema that is none.
---
---```lua
---hygge.register_tool {
---  name = "sign_up",
---  execute = function(ctx)
---    local form = ctx.elicit { message = "Who are you?", schema = { properties = { name = { type = "string" } } } }
---    return form.action == "accept" and form.content.name or "nobody"
---  end,
---}
---```
---@param form {message: string, schema: table, key?: string} `schema` is a JSON Schema of an object with simple fields; `key` names the form to clients that get several forms at once.
---@return {action: "accept" | "decline" | "cancel", content?: table} answer `content` fits the schema; it is there with `accept`.
function ctx.elicit(form) end

---Asks the model of the client that made the call (MCP: sampling). Raises if that client does not allow it.
---The call's time limit is paused meanwhile.
---Raises: the client does not allow it.
---
---```lua
---hygge.register_tool {
---  name = "short",
---  execute = function(ctx, input)
---    return ctx.sample { prompt = "Shorten: " .. input.text, max_tokens = 100 }.content
---  end,
---}
---```
---@param request string | hygge.SampleRequest A text is one message of the user.
---@return {content: string, blocks: hygge.Block[], role: "user" | "assistant", model: string, stop_reason?: string}
function ctx.sample(request) end

---Asks the client that made the call for the folders that it works in (MCP: roots). Raises if it does not provide them.
---For display only: the session decides which files may be touched.
---Raises: the client does not provide them.
---
---```lua
---hygge.register_tool {
---  name = "roots",
---  execute = function(ctx)
---    return #ctx.roots() .. " folders"
---  end,
---}
---```
---@return {uri: string, name?: string}[]
function ctx.roots() end

---@class hygge.SampleRequest
---@field prompt? string One message of the user, instead of `messages`.
---@field messages? (string | hygge.Message)[]
---@field system_prompt? string
---@field max_tokens? integer 1024 when absent.
---@field temperature? number
---@field stop_sequences? string[]
---@field model_preferences? table As in MCP's `modelPreferences`.

---@class hygge.Message
---@field role? "user" | "assistant" The user when absent.
---@field content string | hygge.Block | (string | hygge.Block)[] Each part of a list is a message of its own.

---@class hygge.ToolSpec
---@field name string `[a-z][a-z0-9_]*`, at most 64 characters, unique among all tools.
---@field execute fun(ctx: hygge.Context, input: table): string | number | boolean | hygge.Result | table | nil
---@field description? string When a model should call it, and what it returns.
---@field label? string For people; the name when absent.
---@field input_schema? table A JSON Schema of an object. An empty table is `[]` under `required`, `enum`, `type`, `anyOf`, `oneOf`, `allOf`, else `{}`.
---@field output_schema? table A JSON Schema of `structured`.
---@field parallelizable? boolean Calls may run in parallel, possibly in several Lua states, which do not share globals.
---@field timeout? hygge.Duration
---@field cacheable? boolean The result for the same arguments and folder may be served from the cache until a file changes that `hygge.fs` or `io` read for it. Calls that list folders, write, or run programs are not cached.
---@field cache_ttl? hygge.Duration For how long; 5 minutes when absent.
---@field annotations? hygge.Annotations
---@field grammar? hygge.Grammar For a tool whose input is one string: models of providers with such tools write it as it is, and not as JSON.
---@field override? boolean Replaces a built-in tool of this name, once a person granted it (`toolctl plugins grant`).
---@field permission? false | fun(input: table): hygge.Need | hygge.Need[] | nil What a call will touch. Absent: category `plugin`, the tool's name. `false`: only what the host's functions ask for when they are called.

---The grammar of a tool's input, whose schema has one property: a string, which is required.
---@class hygge.Grammar
---@field syntax "lark" | "regex"
---@field definition string

---Hints for frontends. A hint that is absent claims nothing.
---@class hygge.Annotations
---@field read_only? boolean
---@field destructive? boolean
---@field idempotent? boolean
---@field open_world? boolean
---@field task? "optional" | "required" When an MCP client that supports tasks gets a task instead of the result: `optional` as soon as the call does not finish in a moment (questions that it asks before come first), `required` always. Absent: when it takes unusually long.

---The texts `tool_name`, `message` and `mode_name` are empty where they do not apply. `hook_name` is the event's name.
---@class hygge.HookEvent
---@field event "pre_tool" | "post_tool" | "pre_message" | "post_message"
---@field session_id string
---@field hook_name string
---@field pwd string
---@field mode_name string

---Before a call.
---@class hygge.PreToolEvent: hygge.HookEvent
---@field tool_name string
---@field tool_input table
---@field call_id string

---After a call.
---@class hygge.PostToolEvent: hygge.HookEvent
---@field tool_name string
---@field tool_input table The arguments of the call.
---@field tool_result {content: hygge.Block[], is_error: boolean, metadata: table}
---@field call_id string

---@class hygge.MessageEvent: hygge.HookEvent
---@field message any

---@class hygge.HookAnswer
---@field decision? "allow" | "deny" | "modify" `allow` means no objection; it never replaces a permission.
---@field reason? string
---@field modified_tool_input? table With `modify` only. Checked against the schema again.
---@field modified_tool_result? string | table With `modify` only.
---@field modified_message? any With `modify` only; an empty text changes nothing.
---@field system_prompt_append? string

---@class hygge.HookOptions
---@field name? string
---@field mode? "sync" | "async" An asynchronous hook never delays the call, and its answer is ignored. One before a call or a message never runs.
---@field timeout? hygge.Duration 10 seconds when absent.
---@field tools? string | string[] Names or globs of tools; all when absent.
---@field priority? number Lower runs first; 0 when absent.
---@field fail? "open" | "closed" Whether the call goes on (`open`, the default) or is refused (`closed`) if the hook fails.

---@class hygge.ExecOptions
---@field timeout? hygge.Duration The rest of the call's time when absent. A text without a unit, such as "30", counts as 30 seconds.
---@field dir? string The folder to run in; the call's `cwd` when absent.
---@field env? table<string, string> Added to the environment of the program. Each variable needs permission, as `NAME=value` in front of the command does.
---@field stdin? string Any bytes.
---@field on_output? fun(stream: "stdout" | "stderr", text: string) Called with output while the program runs.

---@class hygge.ExecResult
---@field stdout string The bytes that the program wrote; of more than 8 MiB, the text without its middle.
---@field stderr string
---@field code integer 1 if permission was refused: then `stderr` says why. -1 if a signal or the time limit ended the program.
---@field exit_code integer The same as `code`.
---@field timed_out? true

---@class hygge.CallResult
---@field content string The text blocks, joined by newlines.
---@field blocks hygge.Block[]
---@field is_error boolean
---@field metadata table
---@field structured? any
---@field duration_ms integer

---@class hygge
---@field config table The `[plugins.<name>]` table of the daemon's configuration; empty when there is none.
hygge = {}

---Registers a tool. Only while the plugin loads. Raises when a field is wrong or the name is taken.
---Raises: a field is wrong, or another source has the name.
---
---```lua
---hygge.register_tool {
---  name = "greet",
---  description = "Greets somebody.",
---  input_schema = { properties = { name = { type = "string", default = "you" } } },
---  execute = function(ctx, input)
---    return "Hello, " .. input.name
---  end,
---}
---```
---@param spec hygge.ToolSpec
function hygge.register_tool(spec) end

hygge.tools = {}

---The same as `hygge.register_tool`, but `handler` is accepted instead of `execute`.
---Raises: as `hygge.register_tool`.
---
---```lua
---hygge.tools.register { name = "now", handler = function() return os.date("%H:%M") end }
---```
---@param spec hygge.ToolSpec | {handler: function}
function hygge.tools.register(spec) end

---Registers a hook, which sees the calls of all frontends and can refuse or change them. Only while the plugin loads.
---Raises: an unknown event; an option that is wrong.
---
---```lua
---hygge.register_hook("pre_tool", { tools = "write" }, function(event)
---  if event.tool_input.path:match("%.env$") then
---    return { decision = "deny", reason = "secrets are not written by tools" }
---  end
---end)
---```
---@param event string
---@param options hygge.HookOptions
---@param handler fun(event: hygge.HookEvent): hygge.HookAnswer?
---@overload fun(event: "pre_tool", options: hygge.HookOptions, handler: fun(event: hygge.PreToolEvent): hygge.HookAnswer?)
---@overload fun(event: "post_tool", options: hygge.HookOptions, handler: fun(event: hygge.PostToolEvent): hygge.HookAnswer?)
---@overload fun(event: "pre_message" | "post_message", options: hygge.HookOptions, handler: fun(event: hygge.MessageEvent): hygge.HookAnswer?)
---@overload fun(event: "pre_tool", handler: fun(event: hygge.PreToolEvent): hygge.HookAnswer?)
---@overload fun(event: "post_tool", handler: fun(event: hygge.PostToolEvent): hygge.HookAnswer?)
---@overload fun(event: "pre_message" | "post_message", handler: fun(event: hygge.MessageEvent): hygge.HookAnswer?)
function hygge.register_hook(event, options, handler) end

---Registers a slash command. Only while the plugin loads.
---Raises: a name that is no word.
---
---```lua
---hygge.register_command {
---  name = "hello",
---  description = "Says hello.",
---  execute = function(ctx, input) return { message = "hello " .. input } end,
---}
---```
---@param spec {name: string, description?: string, execute: fun(ctx: table, input: string): string | {message: string} | nil}
function hygge.register_command(spec) end

---Registers a sub-agent. Only while the plugin loads.
---Raises: a text is missing.
---
---```lua
---hygge.register_subagent {
---  name = "reviewer",
---  description = "Reviews a change.",
---  system_prompt = "You review changes. Be short.",
---  tools = { "read", "grep" },
---}
---```
---@param spec {name: string, description: string, system_prompt: string, tools?: string[], model?: string}
function hygge.register_subagent(spec) end

---The content of a resource: one of `text`, `blob` and `bytes`.
---@class hygge.Contents
---@field text? string
---@field blob? string Base64.
---@field bytes? string Raw bytes; the client gets them as Base64.
---@field mime_type? string The one in the registration when absent.
---@field uri? string The requested one when absent.

---@class hygge.ResourceSpec
---@field uri? string Such as `notes://today`. This or `uri_template`.
---@field uri_template? string Such as `notes://{day}`: `{name}` is one segment, `{+name}` any length, `{?a,b}` a query at the end.
---@field name string
---@field title? string For people.
---@field description? string
---@field mime_type? string
---@field read fun(ctx: hygge.Context, uri: string, variables: table<string, string>): string | hygge.Contents | hygge.Contents[] | nil nil means that there is no such resource.
---@field complete? table<string, string[]> | fun(ctx: hygge.Context, argument: string, value: string, given: table<string, string>): string[] | {values: string[], total?: integer, has_more?: boolean} Suggestions for a variable; lists are filtered by what is typed.

---Registers a resource for clients that show resources (MCP). Only while the plugin loads.
---Raises: neither or both of `uri` and `uri_template`; no `read`.
---
---```lua
---hygge.register_resource {
---  uri = "notes://today",
---  name = "Today",
---  read = function() return "nothing to do" end,
---}
---```
---@param spec hygge.ResourceSpec
function hygge.register_resource(spec) end

---@class hygge.PromptSpec
---@field name string
---@field title? string For people.
---@field description? string
---@field arguments? (string | {name: string, title?: string, description?: string, required?: boolean})[]
---@field render fun(ctx: hygge.Context, arguments: table<string, string>): string | (string | hygge.Message)[] | {description?: string, messages: (string | hygge.Message)[]}
---@field complete? table<string, string[]> | fun(ctx: hygge.Context, argument: string, value: string, given: table<string, string>): string[] | {values: string[], total?: integer, has_more?: boolean} Suggestions for an argument.

---Registers a prompt for clients that show prompts (MCP). Only while the plugin loads.
---Raises: no `name` or `render`.
---
---```lua
---hygge.register_prompt {
---  name = "explain",
---  arguments = { { name = "what", required = true } },
---  render = function(ctx, arguments) return "Explain " .. arguments.what end,
---}
---```
---@param spec hygge.PromptSpec
function hygge.register_prompt(spec) end

---Runs a program without a shell: the arguments are passed as they are. Returns `code = 1` if permission is refused;
---raises if the program cannot be started.
---Raises: a program that cannot be started; a capability that is not declared.
---
---```lua
---local result = hygge.exec("echo", { "a", nil, true })
---return result.stdout .. result.code --> a true\n0
---```
---@param command string
---@param args? (string | number | boolean)[] Absent elements are skipped.
---@param options? hygge.ExecOptions
---@return hygge.ExecResult
function hygge.exec(command, args, options) end

---Calls any tool, with its permission checks, this call's session and the remaining time.
---Raises: there is no such tool; the arguments do not fit its schema.
---
---```lua
---local ok, message = pcall(hygge.call_tool, "no_such_tool", {})
---return ok --> false
---```
---@param name string
---@param args? table
---@return hygge.CallResult
function hygge.call_tool(name, args) end

---Shows a notice to the user, in every frontend of the session.
---
---```lua
---hygge.notify("done", "info")
---return "done" --> done
---```
---@param message string
---@param level? hygge.Level
function hygge.notify(message, level) end

---Writes to the plugin's log. `print` does so with level `info`. Within a call, the first hundred lines are also
---events of the caller's session.
---
---```lua
---hygge.log("info", "asked", { city = "Oslo" })
---return "done" --> done
---```
---@param level hygge.Level
---@param message string
---@param fields? table
function hygge.log(level, message, fields) end

---Sends a message to a session; its frontends get it as an event. While the plugin loads, a message to a session that
---does not exist is only logged; later it is an error.
---Raises: there is no such session.
---
---```lua
---local ok = pcall(hygge.send_message, "nobody", "user", "hello")
---return ok --> false
---```
---@param session_id string
---@param role string
---@param content string
function hygge.send_message(session_id, role, content) end

---@class hygge.Timer
---@field stop fun(self: hygge.Timer) No run begins any more; one that is running goes on.

---Calls a function again and again while this version of the plugin is in service: there is no session then, and nobody
---is asked. Only while the plugin loads.
---Raises: an interval below a second; called from a handler.
---
---```lua
---local timer = hygge.every("1h", function() hygge.log("info", "an hour is over") end)
---timer:stop()
---```
---@param interval hygge.Duration At least one second, from the start of one run to the start of the next. A run may take as long, at most 60 seconds. Doubles with each failure in a row, up to an hour.
---@param f fun()
---@param opts? {name?: string, immediately?: boolean} `immediately`: the first run is at once, and not after one interval.
---@return hygge.Timer
function hygge.every(interval, f, opts) end

---A table whose content the next version of the plugin takes over when it is called first, instead of its initial
---content. Fields that the old content lacks keep their initial value. Holds data only, at most 1 MiB in all tables of
---the plugin; lost when the plugin is removed or the daemon restarts. Only while the plugin loads, where it has its
---initial content. A plugin with such a table has one Lua state.
---Raises: content that is no data; called from a handler.
---
---```lua
---local counts = hygge.state { calls = 0 }
---hygge.register_tool { name = "count", execute = function() counts.calls = counts.calls + 1 return counts.calls end }
---```
---@generic T: table
---@param initial? T Becomes the table itself.
---@return T
---@overload fun(name: string, initial?: T): T
function hygge.state(initial) end

---Marks a table as a list, as `hygge.json.array`. Where a schema wants a list, an empty table is one anyway.
---Raises: a value that is no table.
---
---```lua
---return hygge.json.encode { tags = hygge.list {} } --> {"tags":[]}
---```
---@param list? table
---@return table
function hygge.list(list) end

---Bytes in Base64, for `data` of a content block and `blob` of a resource.
---
---```lua
---return hygge.bytes("abc") --> YWJj
---```
---@param bytes string
---@return string
function hygge.bytes(bytes) end

---The value of a secret of the daemon. `secrets = ["NAME"]` in `plugin.toml` declares it, and a person grants it once. It is
---removed from logs, errors and results of the plugin. Only where permissions are known: in a call, or while the plugin loads.
---Raises: the manifest does not declare it; it is not granted, or not set.
---
---```lua
---local ok, message = pcall(hygge.secret, "TOKEN")
---return ok --> false
---```
---@param name string
---@return string
function hygge.secret(name) end

---Waits. Other calls run meanwhile.
---Raises: a duration that is none.
---
---```lua
---hygge.sleep("1ms")
---return "awake" --> awake
---```
---@param duration hygge.Duration
function hygge.sleep(duration) end

---Unix time in seconds, with a fraction.
---
---```lua
---return hygge.now() > 1700000000 --> true
---```
---@return number
function hygge.now() end

---Runs functions concurrently: while one waits, the others go on. The first error ends them all.
---Raises: the first error of a function.
---
---```lua
---local results = hygge.all { function() return 1 end, function() return 2 end }
---return results[1] + results[2] --> 3
---```
---@param functions (fun(): any)[]
---@return any[] results In the order of the functions; `n` is how many.
function hygge.all(functions) end

---This plugin.
hygge.plugin = {
  ---@type string
  name = nil,
  ---@type string Its folder; for a single-file plugin, the folder that contains it.
  dir = nil,
  ---@type string Its script: the entrypoint, or the single file.
  path = nil,
  ---@type string? From `plugin.toml`.
  version = nil,
}

hygge.profile = {
  ---@type string The folder of the daemon's configuration.
  dir = nil,
}

---The session of the call that a handler runs for; while the plugin loads, `id` is empty and the other fields are nil.
---@type hygge.SessionInfo
hygge.session = nil

hygge.json = {}

---JSON's null, to distinguish it from an absent field.
---@type lightuserdata
hygge.json.null = nil

---The JSON of a value; the names of members are sorted.
---Raises: a function, a number that is not finite, a table that contains itself.
---
---```lua
---return hygge.json.encode { b = 1, a = { true } } --> {"a":[true],"b":1}
---```
---@param value any
---@param options? {pretty?: boolean}
---@return string
function hygge.json.encode(value, options) end

---The value of a JSON text; null is `hygge.json.null`.
---Raises: a text that is no JSON; one whose values take more than 256 MiB, or than the memory limit of the plugin if that is more.
---
---```lua
---return hygge.json.decode('{"a":[1,2]}').a[2] --> 2
---```
---@param text string
---@return any
function hygge.json.decode(text) end

---Marks a table, so that it is a JSON array even when it is empty.
---Raises: a value that is no table.
---
---```lua
---return hygge.json.encode(hygge.json.array {}) --> []
---```
---@param list? table
---@return table
function hygge.json.array(list) end

---The members of a table in the order of the JSON text that it was decoded from, for texts of up to 1 MiB; members that
---were added later follow, by name. `pairs` has an order of its own.
---Raises: a value that is no table.
---
---```lua
---local names = {}
---for name in hygge.json.pairs(hygge.json.decode('{"z":1,"a":2}')) do names[#names + 1] = name end
---return table.concat(names, " ") --> z a
---```
---@param value table
---@return fun(): any, any
function hygge.json.pairs(value) end

---Base64, with padding.
hygge.base64 = {}

---Base64 of bytes.
---
---```lua
---return hygge.base64.encode("abc") --> YWJj
---```
---@param bytes string
---@return string
function hygge.base64.encode(bytes) end

---The bytes of a text in Base64.
---Raises: a text that is not Base64.
---
---```lua
---return hygge.base64.decode("YWJj") --> abc
---```
---@param text string White space is ignored.
---@return string bytes
function hygge.base64.decode(text) end

---Digests of bytes.
hygge.hash = {}

---The SHA-256 digest.
---
---```lua
---return hygge.hash.sha256("abc"):sub(1, 16) --> ba7816bf8f01cfea
---```
---@param bytes string
---@return string hex
function hygge.hash.sha256(bytes) end

---The BLAKE3 digest.
---
---```lua
---return #hygge.hash.blake3("abc") --> 64
---```
---@param bytes string
---@return string hex
function hygge.hash.blake3(bytes) end

---The CRC-32 checksum of gzip and PNG.
---
---```lua
---return hygge.hash.crc32("123456789") --> 3421780262
---```
---@param bytes string
---@return integer
function hygge.hash.crc32(bytes) end

---Regular expressions of the Rust crate `regex`: linear time, no look-around, no back-references. Patterns take up to 4 MiB when
---compiled, and texts have up to 16 MiB.
hygge.regex = {}

---@class hygge.RegexMatch
---@field [integer] string The whole match at 0, groups from 1; groups that did not take part are absent. Named groups are fields too.
---@field text string
---@field first integer Its place in the text, from 1.
---@field last integer

---Whether the pattern matches somewhere.
---Raises: a pattern that is wrong or too large.
---
---```lua
---return hygge.regex.is_match("^v\\d+", "v12") --> true
---```
---@param pattern string
---@param text string
---@return boolean
function hygge.regex.is_match(pattern, text) end

---The first match.
---Raises: as `hygge.regex.is_match`.
---
---```lua
---local found = hygge.regex.find("(?P<key>\\w+)=(\\d+)", "a=1 b=22", 4)
---return found.key .. found[2] .. found.first --> b225
---```
---@param pattern string
---@param text string
---@param from? integer A place in the text, from 1.
---@return hygge.RegexMatch?
function hygge.regex.find(pattern, text, from) end

---All matches, one after another.
---Raises: as `hygge.regex.is_match`.
---
---```lua
---return #hygge.regex.find_all("\\d+", "1 22 333") --> 3
---```
---@param pattern string
---@param text string
---@return hygge.RegexMatch[] matches At most 100,000.
function hygge.regex.find_all(pattern, text) end

---The text with all matches replaced.
---Raises: as `hygge.regex.is_match`.
---
---```lua
---return hygge.regex.replace("(\\w+)@(\\w+)", "ada@home", "$2 of $1") --> home of ada
---```
---@param pattern string
---@param text string
---@param replacement string `$1` and `${name}` are groups; `$$` is a dollar.
---@return string
function hygge.regex.replace(pattern, text, replacement) end

---The parts of the text between matches.
---Raises: as `hygge.regex.is_match`.
---
---```lua
---return table.concat(hygge.regex.split(",\\s*", "a, b,c"), "|") --> a|b|c
---```
---@param pattern string
---@param text string
---@return string[]
function hygge.regex.split(pattern, text) end

---Files. Relative paths are relative to the call's `cwd`; permission is checked after links are resolved.
---A plugin may always read its own folder.
hygge.fs = {}

---The bytes of a file.
---Raises: it is not there, not allowed, or larger.
---
---```lua
---hygge.fs.write("a.txt", "one")
---return hygge.fs.read("a.txt") --> one
---```
---@param path string At most 16 MiB.
---@return string
function hygge.fs.read(path) end

---A part of a file of any size.
---Raises: it is not there or not allowed; a length of more than 16 MiB.
---
---```lua
---hygge.fs.write("a.txt", "0123456789")
---return hygge.fs.read_at("a.txt", 3, 4) --> 3456
---```
---@param path string
---@param offset? integer From 0.
---@param length? integer 256 KiB when absent, 16 MiB at most.
---@return string bytes Fewer, or none, at the end of the file.
function hygge.fs.read_at(path, offset, length) end

---@class hygge.FilePieces
---@field read fun(self: hygge.FilePieces, count?: integer): string? The next bytes, 256 KiB when absent; nil at the end.
---@field line fun(self: hygge.FilePieces): string? The next line, without its end.
---@field lines fun(self: hygge.FilePieces): fun(): string?
---@field seek fun(self: hygge.FilePieces, offset?: integer): integer Goes on at this byte, from 0.

---A file of any size, to read it in pieces.
---Raises: it is not there or not allowed.
---
---```lua
---hygge.fs.write("a.txt", "one\ntwo\n")
---local file = hygge.fs.open("a.txt")
---return file:line() .. file:read(2) --> onetw
---```
---@param path string
---@return hygge.FilePieces
function hygge.fs.open(path) end

---The lines of a file of any size, without their ends.
---Raises: it is not there or not allowed.
---
---```lua
---hygge.fs.write("a.txt", "one\ntwo\n")
---local count = 0
---for line in hygge.fs.lines("a.txt") do count = count + #line end
---return count --> 6
---```
---@param path string
---@return fun(): string?
function hygge.fs.lines(path) end

---Writes a file as a whole; its folder must exist.
---Raises: it is not allowed, or cannot be written.
---
---```lua
---hygge.fs.write("a.bin", "\0\255")
---return #hygge.fs.read("a.bin") --> 2
---```
---@param path string
---@param text string
function hygge.fs.write(path, text) end

---Writes at the end of a file, which is made if it is not there.
---Raises: as `hygge.fs.write`.
---
---```lua
---hygge.fs.append("log.txt", "a")
---hygge.fs.append("log.txt", "b")
---return hygge.fs.read("log.txt") --> ab
---```
---@param path string
---@param text string
function hygge.fs.append(path, text) end

---The entries of a folder.
---Raises: it is no folder, or not allowed.
---
---```lua
---hygge.fs.write("a.txt", "")
---return hygge.fs.list(".")[1].name --> a.txt
---```
---@param path string
---@return {name: string, type: "file" | "directory" | "link" | "other"}[] entries Those that the call may read, sorted by name; at most 10,000.
function hygge.fs.list(path) end

---The type, size and time of a file or folder.
---Raises: it is not allowed.
---
---```lua
---hygge.fs.write("a.txt", "one")
---return hygge.fs.stat("a.txt").size --> 3
---```
---@param path string
---@return {type: "file" | "directory" | "link" | "other", size: integer, mtime: number}? facts nil if nothing is there. The size of a folder is 0.
function hygge.fs.stat(path) end

---Whether something is at a path.
---Raises: it is not allowed.
---
---```lua
---return hygge.fs.exists("nothing.txt") --> false
---```
---@param path string
---@return boolean
function hygge.fs.exists(path) end

---Files below the call's `cwd` that the call may read.
---Raises: a pattern that is wrong.
---
---```lua
---hygge.fs.mkdir("src/deep")
---hygge.fs.write("src/deep/a.lua", "")
---return hygge.fs.glob("src/**/*.lua")[1] --> src/deep/a.lua
---```
---@param pattern string Such as `src/**/*.lua`; `*` stays within one folder.
---@return string[] paths Sorted, relative to `cwd`; at most 10,000.
function hygge.fs.glob(pattern) end

---Makes a folder and those above it.
---Raises: it is not allowed, or a file is in the way.
---
---```lua
---hygge.fs.mkdir("a/b")
---return hygge.fs.stat("a/b").type --> directory
---```
---@param path string
function hygge.fs.mkdir(path) end

---Removes a file or an empty folder.
---Raises: it is not there, not allowed, or a folder that is not empty.
---
---```lua
---hygge.fs.write("a.txt", "")
---hygge.fs.remove("a.txt")
---return hygge.fs.exists("a.txt") --> false
---```
---@param path string
function hygge.fs.remove(path) end

---HTTP requests. Each host and port needs permission (category `network`), also those that redirects lead to;
---addresses that are not public are refused unless the daemon's configuration names them. Every status returns a
---response; an incomplete response raises. A `cacheable` tool may cache responses to `GET`.
hygge.http = {}

---@class hygge.HttpOptions
---@field method? string
---@field headers? table<string, string | string[]>
---@field body? string
---@field json? any Sent as the body, with its content type.
---@field timeout? hygge.Duration 30 seconds when absent; the rest of the call's time at most.
---@field max_bytes? integer Of the body: 5 MiB when absent, 16 MiB at most. A longer one is cut.
---@field redirects? integer How many are followed: 10 when absent.
---@field auth? {secret: string, header?: string, scheme?: string, user?: string} Sends a secret that the plugin does not see: `Authorization: Bearer SECRET`, or with another `scheme` or `header`, or with `user` as `Basic`. The manifest declares the secret, and a person names the host for it. A redirect to another host goes without it.

---@class hygge.HttpRequest: hygge.HttpOptions
---@field url string `http` or `https`.

---@class hygge.HttpResponse
---@field status integer
---@field ok boolean Whether the status is 200 to 299.
---@field headers table<string, string> Names in lower case; values of one name are joined by commas.
---@field body string Without compression.
---@field url string Where it came from, after redirects.
---@field truncated? true The body is longer than `max_bytes`.

---A `GET` request.
---Raises: a host that is not allowed; no complete answer in time.
---
---```lua
---hygge.register_tool {
---  name = "weather",
---  execute = function() return hygge.http.get("https://wttr.in/Oslo?format=3").body end,
---}
---```
---@param url string
---@param options? hygge.HttpOptions
---@return hygge.HttpResponse
function hygge.http.get(url, options) end

---A `POST` request.
---Raises: as `hygge.http.get`.
---
---```lua
---hygge.register_tool {
---  name = "tell",
---  execute = function(ctx, input)
---    local options = { auth = { secret = "TOKEN" } }
---    return hygge.http.post("https://example.org/messages", { text = input.text }, options).status
---  end,
---}
---```
---@param url string
---@param body? string | table A table is sent as JSON.
---@param options? hygge.HttpOptions
---@return hygge.HttpResponse
function hygge.http.post(url, body, options) end

---A request with any method.
---Raises: as `hygge.http.get`.
---
---```lua
---hygge.register_tool {
---  name = "gone",
---  execute = function() return hygge.http.request { method = "DELETE", url = "https://example.org/a" }.ok end,
---}
---```
---@param request hygge.HttpRequest
---@return hygge.HttpResponse
function hygge.http.request(request) end

---Data that lasts between calls and across restarts of the daemon. Keep state here that parallel calls must share.
hygge.store = {}

---The value of a key.
---Raises: a key that is empty or too long.
---
---```lua
---hygge.store.set("a", { n = 1 })
---return hygge.store.get("a").n --> 1
---```
---@param key string At most 256 bytes.
---@return any value nil when there is none.
function hygge.store.get(key) end

---Sets the value of a key: JSON, and texts of any bytes.
---Raises: a value that is no data, or too large.
---
---```lua
---hygge.store.set("raw", "\0\255")
---return hygge.store.get("raw") == "\0\255" --> true
---```
---@param key string
---@param value any At most 1 MiB of JSON; nil deletes.
function hygge.store.set(key, value) end

---Computes a new value from the old one, in one step for all calls, Lua states and daemons that share the store. If
---another call changes the value meanwhile, `change` is called again with the newer one, so it should do nothing but
---compute. Raises when that happens 100 times in a row.
---
---```lua
---hygge.store.set("n", 1)
---return hygge.store.update("n", function(old) return old + 1 end) --> 2
---```
---@param key string
---@param change fun(old: any): any Gets nil when there is no value; returning nil deletes.
---@return any new
function hygge.store.update(key, change) end

---Sets the value if it still is what was expected: the same JSON. `hygge.store.update` is made of it.
---
---```lua
---return hygge.store.compare_and_set("new", nil, 1) --> true
---```
---@param key string
---@param expected any nil when there must be no value.
---@param new any nil deletes.
---@return boolean is_set False when the value is something else; then nothing changes.
function hygge.store.compare_and_set(key, expected, new) end

---Deletes a key.
---
---```lua
---return hygge.store.delete("nothing") --> false
---```
---@param key string
---@return boolean was_there
function hygge.store.delete(key) end

---The keys that begin with a text.
---
---```lua
---hygge.store.set("list/a", 1)
---hygge.store.set("list/b", 2)
---return #hygge.store.keys("list/") --> 2
---```
---@param prefix? string
---@return string[] keys Sorted.
function hygge.store.keys(prefix) end

-- Additional functions for `*_test.lua` files, which `toolctl plugins test` runs.

---Names a group of cases.
---@param name string
---@param body fun()
function describe(name, body) end

---A case: it fails when its function raises.
---@param name string
---@param body fun()
function it(name, body) end

---Runs before each case of the `describe` that it stands in, or of the file, after the fakes of the previous case are removed.
---@param body fun()
function before(body) end

---@class hygge.Checks
---@field to_be fun(wanted: any) The same value.
---@field to_equal fun(wanted: any) Compares tables by content.
---@field to_be_nil fun()
---@field to_be_truthy fun()
---@field to_match fun(pattern: string)
---@field to_contain fun(part: any) A substring of a text, or a value in a table.
---@field to_raise fun(words?: string) For a function.

---@class hygge.Expectation: hygge.Checks
---@field never hygge.Checks

---@param got any
---@return hygge.Expectation
function expect(got) end

---Calls a tool of the plugin, or one of `fake.tool`. Raises if there is none, or the arguments do not fit its schema.
---@param name string
---@param input? table
---@return {content: string, is_error: boolean, metadata?: table, structured?: any}
function call(name, input) end

---Runs a slash command of the plugin.
---@param name string
---@param input? string What follows the command.
---@return {content: string, is_error: boolean}
function command(name, input) end

---Renders a prompt of the plugin. Raises if an argument is missing or unknown.
---@param name string
---@param arguments? table<string, string>
---@return {role: "user" | "assistant", content: hygge.Block}[] messages
function render(name, arguments) end

---Reads a resource of the plugin. Raises if there is none.
---@param uri string
---@return {uri: string, mime_type?: string, text?: string, blob?: string}[]
function read(uri) end

---Finds out which permissions a call of a tool needs before it runs: those of its `permission`, commands taken apart.
---@param name string
---@param input? table
---@return {category: hygge.Category, target: string, reason?: string}[]
function needs(name, input) end

---Replacements for programs, HTTP and other tools in this case. Without them, running a program or making a request
---raises, and only the plugin's own tools exist. `hygge.store` is empty at the start of each case, and `hygge.config` is a
---table that a case may fill.
fake = {}

---@param run fun(command: string, args: string[], options: table): string | {stdout?: string, stderr?: string, code?: integer}
function fake.exec(run) end

---@param run fun(request: {method: string, url: string, headers: table<string, string>, body?: string}): string | {status?: integer, headers?: table<string, string>, body?: string}
function fake.http(run) end

---Stands in for a tool of the daemon, such as `write`: for `hygge.call_tool`, and for `call`, to see what the plugin's
---hooks do to it.
---@param name string
---@param run fun(input: table): string | number | boolean | hygge.Result | table | nil
function fake.tool(name, run) end

---Puts a file into the session's folder until the case ends, also if the plugin may not write files.
---@param path string Relative, within the folder; its folders are made.
---@param text string
function fake.file(path, text) end
