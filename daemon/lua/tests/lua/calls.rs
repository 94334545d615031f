//! Calls of Lua tools, and their results.

use std::sync::Arc;

use serde_json::{Value, json};
use toold_engine::call::CallError;
use toold_proto::call::{Progress, Stream};
use toold_proto::permission::Answerer;
use toold_proto::question::{QuestionEvent, ReplyQuestion};
use toold_proto::tool::Block;
use toold_test_kit::ProgressRecord;

use crate::world::{TestPlugins, soon};

fn tool(body: &str) -> String {
    format!("hygge.register_tool{{name = 't', execute = function(ctx, input) {body} end}}")
}

#[track_caller]
fn is_text(result: &toold_proto::tool::ToolResult, text: &str) {
    assert_eq!((result.text().as_str(), result.is_error), (text, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_gets_its_input_and_answers() {
    let world = TestPlugins::of(&tool("return 'hello ' .. input.name .. ' ' .. tostring(ctx.input == input)")).await;
    is_text(&world.call("t", json!({"name": "you"})).await, "hello you true");
}

#[tokio::test(flavor = "multi_thread")]
async fn scalars_are_texts() {
    for (value, text) in [("12 / 4", "3"), ("2.5", "2.5"), ("true", "true"), ("nil", ""), ("'x'", "x")] {
        let world = TestPlugins::of(&tool(&format!("return {value}"))).await;
        is_text(&world.call("t", json!({})).await, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_a_whole_result() {
    let world = TestPlugins::of(&tool(
        "return {content = {{type = 'text', text = 'a'}, 'b', {type = 'image', data = 'AA==', mime_type = 'image/png'}},
                 is_error = true, metadata = {n = 1, list = hygge.json.array{}}}",
    ))
    .await;
    let result = world.call("t", json!({})).await;
    assert!(result.is_error);
    assert_eq!(result.content[1], Block::text("b"));
    assert_eq!(result.content.len(), 3);
    assert_eq!(Value::Object(result.metadata), json!({"n": 1, "list": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_result_is_reported() {
    for (body, words) in [
        ("return print", "expected a string"),
        ("return {content = {{type = 'vidoe'}}}", "content[1]"),
        ("return {content = 'x', is_error = 'yes'}", "is_error"),
        ("return {content = 'x', metadata = {f = print}}", "a function cannot be converted to JSON (at metadata.f)"),
        ("local t = {} t.t = t return {content = 'x', metadata = t}", "contains itself"),
    ] {
        let world = TestPlugins::of(&tool(body)).await;
        let result = world.call("t", json!({})).await;
        assert!(result.is_error && result.text().contains(words), "{body}: {}", result.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lua_error_is_a_result_with_its_place() {
    let world = TestPlugins::of(
        "local function deep()\n  error('boom')\nend\nhygge.register_tool{name = 't', execute = function() deep() end}",
    )
    .await;
    let result = world.call("t", json!({})).await;
    assert!(result.is_error);
    assert_eq!(result.text(), "p.lua:2: boom");
    assert_eq!(result.metadata["error"]["line"], 2);
    assert_eq!(result.metadata["error"]["source_line"], "  error('boom')");
    let traceback = result.metadata["traceback"].as_str().unwrap();
    assert!(traceback.contains("p.lua:2") && traceback.contains("p.lua:4"), "{traceback}");
    assert!(!traceback.contains("[C]") && !traceback.contains("toold"), "{traceback}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_host_functions_name_the_plugins_line() {
    let world = TestPlugins::of(&tool(
        "\n local ok, message = pcall(hygge.json.decode, '{') \n return type(message) .. ': ' .. message",
    ))
    .await;
    let text = world.text("t", json!({})).await;
    assert!(text.starts_with("string: ") && text.contains("hygge.json.decode: EOF"), "{text}");
    let world = TestPlugins::of(&tool("\n hygge.json.decode('{')")).await;
    let result = world.call("t", json!({})).await;
    assert!(result.text().starts_with("p.lua:2: hygge.json.decode"), "{}", result.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctx_describes_the_call() {
    let world = TestPlugins::of(&tool(
        "return table.concat({ctx.tool, ctx.session.id, ctx.session.cwd, ctx.cwd, ctx.model, type(ctx.call_id),
           tostring(ctx.cancelled()), tostring(ctx.remaining_ms() > 1000), hygge.session.id, hygge.plugin.name}, ' ')",
    ))
    .await;
    let cwd = world.session.cwd.display();
    let expected = format!("t s {cwd} {cwd} test-model string false true s p");
    is_text(&world.call("t", json!({})).await, &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_heard_in_order() {
    let world = TestPlugins::of(&tool(
        "ctx.progress('one') ctx.output('two') ctx.progress{progress = 1, total = 2, message = 'half', details = {a = 1}} return 'x'",
    ))
    .await;
    let heard = Arc::new(ProgressRecord::default());
    let mut call = world.call_of("t", json!({}));
    call.progress = vec![heard.clone()];
    world.execute(call).await.unwrap();
    let details = json!({"a": 1}).as_object().cloned();
    assert_eq!(
        heard.all(),
        [
            Progress::Message { text: "one".into() },
            Progress::Output { stream: Stream::Stdout, text: "two".into() },
            Progress::Update {
                progress: Some(1.0),
                total: Some(2.0),
                message: Some("half".into()),
                content: None,
                details
            },
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_a_number_that_json_has_a_form_for() {
    for (field, script) in [("progress", "progress = 0/0"), ("total", "progress = 1, total = 1/0")] {
        let world = TestPlugins::of(&tool(&format!("local done = 1\nctx.progress{{{script}}} return 'x'"))).await;
        let result = world.call("t", json!({})).await;
        let expected = format!("field '{field}': expected a finite number, got the number ");
        assert!(result.is_error && result.text().contains(&expected), "{}", result.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_arguments_are_absent() {
    let world = TestPlugins::of(&tool("return tostring(input.a) .. tostring(input.list[1] == hygge.json.null)")).await;
    is_text(&world.call("t", json!({"a": null, "list": [null]})).await, "niltrue");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_stops_a_loop() {
    let world =
        TestPlugins::of(&tool("ctx.progress('on') while true do pcall(function() while true do end end) end")).await;
    let call = world.call_of("t", json!({}));
    let cancel = call.cancel.clone();
    let (answer, ()) = tokio::join!(world.execute(call), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(answer, Err(CallError::Cancelled));
    // The work itself has stopped too, not only its answer.
    world.engine.tasks.close();
    soon(world.engine.tasks.wait()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_stops_a_wait() {
    let world = TestPlugins::of(&tool("hygge.sleep('1h') return 'x'")).await;
    let call = world.call_of("t", json!({}));
    let cancel = call.cancel.clone();
    let (answer, ()) = tokio::join!(world.execute(call), async { cancel.cancel() });
    assert_eq!(answer, Err(CallError::Cancelled));
    world.engine.tasks.close();
    soon(world.engine.tasks.wait()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_call_tools() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'inner', execute = function(ctx, input) return 'in ' .. input.x end}
         hygge.register_tool{name = 'outer', execute = function(ctx, input)
           local result = hygge.call_tool('inner', {x = 1})
           return result.content .. tostring(result.is_error)
         end}
         hygge.register_tool{name = 'deep', execute = function() return hygge.call_tool('deep').content end}
         hygge.register_tool{name = 'unknown', execute = function() return hygge.call_tool('nothing') end}",
    )
    .await;
    is_text(&world.call("outer", json!({})).await, "in 1false");
    let deep = world.call("deep", json!({})).await;
    assert!(deep.text().contains("nest deeper than 8"), "{}", deep.text());
    let unknown = world.call("unknown", json!({})).await;
    assert!(unknown.is_error && unknown.text().contains("no tool nothing"), "{}", unknown.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn parallelizable_calls_run_at_once() {
    // Each waits until the other has arrived, which works only if they run at the same time.
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', parallelizable = true, execute = function(ctx, input)
           hygge.send_message(ctx.session.id, 'assistant', 'here')
           while not hygge.call_tool('both').is_error do hygge.sleep(1) end
           return 'met'
         end}
         here = 0
         hygge.register_tool{name = 'both', parallelizable = true, execute = function() return {content = 'x', is_error = true} end}",
    )
    .await;
    world.engine.sessions.open(toold_engine::session::Session::new(toold_engine::session::NewSession {
        id: world.session.id.clone(),
        cwd: world.session.cwd.clone(),
        roots: Vec::new(),
        project: world.session.project().to_owned(),
        client: None,
        model: None,
        env: Default::default(),
        filter: Default::default(),
        workspace: None,
    }));
    let (a, b) = tokio::join!(world.call("t", json!({})), world.call("t", json!({})));
    is_text(&a, "met");
    is_text(&b, "met");
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_calls_run_one_at_a_time() {
    let world = TestPlugins::of(
        "local inside = 0
         hygge.register_tool{name = 't', execute = function()
           inside = inside + 1
           hygge.sleep(2)
           local seen = inside
           inside = inside - 1
           return seen
         end}",
    )
    .await;
    let calls = futures_util::future::join_all((0..5).map(|_| world.text("t", json!({}))));
    assert_eq!(calls.await, ["1"; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_work_everywhere() {
    let world = TestPlugins::of(
        "local function pause(x) hygge.sleep(1) return x end
         hygge.register_tool{name = 't', execute = function()
           local co = coroutine.create(function(a) local b = coroutine.yield(pause(a)) return pause(b) end)
           local _, first = coroutine.resume(co, 1)
           local _, second = coroutine.resume(co, 2)
           local sum = 0
           for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(pause(i)) end end) do sum = sum + v end
           local replaced = ('ab'):gsub('.', function(c) return pause(c:upper()) end)
           local list = {3, 1, 2}
           table.sort(list, function(a, b) return pause(a) < pause(b) end)
           local got = setmetatable({}, {__index = function(_, k) return pause(k) end}).field
           local ok, err = pcall(function() pause() error('x', 0) end)
           local all = hygge.all{function() return pause('p') end, function() return pause('q') end}
           local nested = ('a'):gsub('a', function() return coroutine.wrap(function() return pause('n') end)() end)
           return table.concat({first, second, sum, replaced, table.concat(list), got, err, all[1], all[2], nested}, ' ')
         end}",
    )
    .await;
    is_text(&world.call("t", json!({})).await, "1 2 6 AB 123 field x p q n");
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_function_returns_the_needs() {
    let world = TestPlugins::of(
        "local function t(name, permission) hygge.register_tool{name = name, permission = permission, execute = function() return 'ran' end} end
         t('net', function(input) return {category = 'network', target = input.host .. ':443', reason = 'to look'} end)
         t('none', false)
         t('nil_needs', function() end)
         t('loops', function() while true do end end)
         t('wrong', function() return {category = 'nettwork', target = 'x'} end)",
    )
    .await;
    let net = world.call("net", json!({"host": "example.org"})).await;
    assert!(net.is_error);
    assert_eq!(net.metadata["permission"]["target"], "example.org:443");
    is_text(&world.call("none", json!({})).await, "ran");
    is_text(&world.call("nil_needs", json!({})).await, "ran");
    let wrong = world.call("wrong", json!({})).await;
    assert!(wrong.text().contains("category") && wrong.text().contains("network, "), "{}", wrong.text());
    let loops = world.call("loops", json!({})).await;
    assert!(loops.text().contains("time limit"), "{}", loops.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_and_change_calls() {
    let world = TestPlugins::of(
        "hygge.register_hook('pre_tool', {name = 'h', tools = {'t*'}, priority = 5}, function(event)
           if event.tool_input.forbidden then return {decision = 'deny', reason = 'no ' .. event.tool_name} end
           return {decision = 'modify', modified_tool_input = {x = event.tool_input.x + 1}}
         end)
         hygge.register_hook('post_tool', function(event) return {decision = 'modify', modified_tool_result = {content = event.tool_result.content[1].text .. '!'}} end)
         hygge.register_tool{name = 't', execute = function(ctx, input) return input.x end}",
    )
    .await;
    is_text(&world.call("t", json!({"x": 1})).await, "2!");
    let denied = world.call("t", json!({"x": 1, "forbidden": true})).await;
    assert!(denied.is_error && denied.text().contains("no t"), "{}", denied.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_may_use_the_host() {
    let world = TestPlugins::of(
        "hygge.register_hook('post_tool', {tools = 't'}, function(event)
           local r = hygge.exec('echo', {'from', event.tool_name})
           local inner = hygge.call_tool('inner')
           return {decision = 'modify', modified_tool_result = {content = r.stdout .. inner.content .. hygge.session.id}}
         end)
         hygge.register_tool{name = 't', execute = function(ctx, input) return 'x' end}
         hygge.register_tool{name = 'inner', parallelizable = true, execute = function(ctx, input) return 'inner ' end}",
    )
    .await;
    let refused = world.call("t", json!({})).await;
    assert!(refused.text().contains("inner s"), "{}", refused.text());
    world.allow_all();
    is_text(&world.call("t", json!({})).await, "from t\ninner s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_runs_while_its_plugins_serial_tool_waits() {
    let world = TestPlugins::of(
        "hygge.register_hook('pre_tool', {tools = 'free'}, function() seen = true end)
         hygge.register_tool{name = 'free', parallelizable = true, execute = function() return 'free' end}
         hygge.register_tool{name = 'waits', execute = function()
           while not seen do hygge.sleep(1) end
           return 'saw it' end}",
    )
    .await;
    let waits = world.execute({
        let mut call = world.call_of("waits", json!({}));
        call.session = world.another_session();
        call
    });
    let (waited, free) = tokio::join!(waits, world.text("free", json!({})));
    assert_eq!((waited.unwrap().text().as_str(), free.as_str()), ("saw it", "free"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_hook_ends_at_its_limit_and_the_call_goes_on() {
    for body in ["while true do pcall(function() while true do end end) end", "hygge.sleep('1h')"] {
        let world = TestPlugins::of(&format!(
            "hygge.register_hook('pre_tool', {{timeout = '30ms'}}, function() {body} end)
             hygge.register_hook('post_tool', {{mode = 'async', timeout = '30ms'}}, function() {body} end)
             hygge.register_tool{{name = 't', execute = function() return 'ran' end}}"
        ))
        .await;
        is_text(&world.call("t", json!({})).await, "ran");
        world.engine.tasks.close();
        soon(world.engine.tasks.wait()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_like_tools() {
    let world = TestPlugins::of(
        "hygge.register_command{name = '/hello', description = 'Says hello', execute = function(ctx, input)
           ctx.progress('greeting')
           return {message = 'hello ' .. input .. ' in ' .. ctx.session.id} end}
         hygge.register_command{name = 'fails', execute = function() error('no') end}",
    )
    .await;
    let commands = world.host.commands();
    assert_eq!(
        commands.iter().map(|c| (c.name.as_str(), c.plugin.as_str())).collect::<Vec<_>>(),
        [("hello", "p"), ("fails", "p")]
    );
    let call = world.call_of("hello", json!({"input": "you"}));
    let result = toold_engine::execute::execute_tool(&world.engine, commands[0].tool.clone(), call).await.unwrap();
    is_text(&result, "hello you in s");
    let call = world.call_of("fails", json!({}));
    let failed = toold_engine::execute::execute_tool(&world.engine, commands[1].tool.clone(), call).await.unwrap();
    assert!(failed.is_error && failed.text().contains("no"));
    assert_eq!(world.tools(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_be_asked() {
    let world = TestPlugins::of(&tool(
        "local answer = ctx.question{question = 'Which?', options = {'red', {id = 'b', label = 'blue'}}}
         return answer and answer.id or 'none'",
    ))
    .await;
    let alone = world.call("t", json!({})).await;
    assert!(alone.is_error, "{}", alone.text());
    let mut questions = world.engine.questions.subscribe(None);
    for (reply, expected) in [(Some(vec!["b".to_owned()]), "b"), (None, "none")] {
        let answering = async {
            loop {
                if let QuestionEvent::Asked { request } = questions.next().await {
                    assert_eq!(request.options[0].label, "red");
                    let cancelled = reply.is_none();
                    let reply = ReplyQuestion {
                        request_id: request.request_id,
                        answer_ids: reply,
                        cancelled,
                        ..ReplyQuestion::default()
                    };
                    let by = Answerer { client: None, connection: 1 };
                    return toold_engine::questions::reply(&world.engine, &reply, by, None).unwrap();
                }
            }
        };
        let (result, ()) = tokio::join!(world.call("t", json!({})), answering);
        is_text(&result, expected);
    }
}

/// Each call holds its thread, in a callback that cannot yield, until the other is as far.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallelizable_calls_run_on_two_threads_at_once() {
    let world = Arc::new(
        TestPlugins::of(
            "hygge.register_tool{name = 't', parallelizable = true, timeout = '15s', execute = function(ctx, input)
               return (('x'):gsub('x', function()
                 hygge.fs.write(input.mine, '')
                 while not hygge.fs.exists(input.other) do hygge.sleep('1ms') end
                 return 'met'
               end))
             end}",
        )
        .await,
    );
    world.allow_all();
    let calls = [("a", "b"), ("b", "a")].map(|(mine, other)| {
        let world = world.clone();
        tokio::spawn(async move { world.text("t", json!({"mine": mine, "other": other})).await })
    });
    for call in calls {
        assert_eq!(call.await.unwrap(), "met");
    }
}

/// How far the others get while one loops for a while, as `body` says.
async fn check_slices(body: &str) {
    let script = format!(
        "local function spin() local n = 0 repeat n = n + 1 until hygge.plugin.done or n > 3e8 return n end
         hygge.register_tool{{name = 'spin', execute = function() {body} end}}
         hygge.register_hook('post_tool', {{tools = 'tick'}}, function() ticks = (ticks or 0) + 1 hygge.plugin.done = ticks >= 5 end)
         hygge.register_tool{{name = 'tick', parallelizable = true, execute = function() return 'tick' end}}"
    );
    let world = TestPlugins::of(&script).await;
    let spin = world.execute(world.call_of("spin", json!({})));
    let ticks = async {
        for _ in 0..5 {
            world.call("tick", json!({})).await;
        }
    };
    let (spun, ()) = tokio::join!(spin, ticks);
    let spun = spun.unwrap();
    assert!(!spun.is_error && spun.text().parse::<f64>().unwrap() < 3e8, "{body}: {}", spun.text());
}

/// On one thread, and in the only Lua state of the plugin: the loop ends only if hooks of the same plugin run meanwhile.
#[tokio::test]
async fn a_loop_lets_others_run_wherever_it_is() {
    for body in [
        "return spin()",
        "return coroutine.wrap(spin)()",
        "local co = coroutine.create(spin) local ok, n = coroutine.resume(co) return ok and n",
        "return coroutine.wrap(function() return coroutine.wrap(function() return (select(2, pcall(spin))) end)() end)()",
        "return hygge.all{spin, function() return 1 end}[1]",
        "return hygge.all{function() return coroutine.wrap(spin)() end}[1]",
        "for n in coroutine.wrap(function() coroutine.yield(spin()) end) do return n end",
    ] {
        check_slices(body).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_are_not_seen_by_scripts() {
    let world = TestPlugins::of(&tool(
        "local function busy(n) local s = 0 for i = 1, n do s = s + i % 3 end return s end
         local seen = {}
         local co = coroutine.create(function(a) for i = 1, 3 do busy(2e6) a = coroutine.yield(a) end coroutine.yield() return 'end' end)
         for i = 1, 5 do seen[#seen + 1] = table.concat({tostring(coroutine.resume(co, i)), tostring(select(2, coroutine.resume(coroutine.create(function() busy(1e6) return i end)))), coroutine.status(co)}, ' ') end
         local sorted = {3, 1, 2}
         table.sort(sorted, function(a, b) return coroutine.wrap(function() busy(1e6) return a < b end)() end)
         local text = ('ab'):gsub('.', function(c) return coroutine.wrap(function() busy(1e6) coroutine.yield(c .. c) end)() end)
         return table.concat(seen, ',') .. ';' .. table.concat(sorted) .. ';' .. text",
    ))
    .await;
    let expected = "true 1 suspended,true 2 suspended,true 3 suspended,true 4 suspended,true 5 dead;123;aabb";
    assert_eq!(world.text("t", json!({})).await, expected);
}
