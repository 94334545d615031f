//! Which state calls share, which calls wait for each other, and what a reload replaces.

use serde_json::{Map, Value, json};
use toold_engine::events::EventSelection;
use toold_engine::execute::execute_tool;
use toold_proto::permission::Answerer;
use toold_proto::question::{QuestionEvent, ReplyQuestion};

use crate::world::{TestPlugins, soon};

/// Counts in a global, wherever it is called from.
fn counter(version: &str) -> String {
    format!(
        "count = 0
         local function add(what) count = count + 1 return '{version} ' .. what .. ' ' .. count end
         hygge.register_tool{{name = 'serial', description = '{version}', execute = function() return add('tool') end}}
         hygge.register_tool{{name = 'other', parallelizable = true, execute = function() return 'other' end}}
         hygge.register_hook('post_tool', {{tools = 'other'}}, function(event)
           return {{decision = 'modify', modified_tool_result = {{content = add('hook')}}}} end)
         hygge.register_command{{name = 'command', execute = function() return add('command') end}}
         hygge.register_prompt{{name = 'prompt', render = function() return add('prompt') end}}"
    )
}

/// The results of the tool, the hook, the command and the prompt, one after another.
async fn counted(world: &TestPlugins) -> Vec<String> {
    let command = world.host.commands()[0].tool.clone();
    let commanded = soon(execute_tool(&world.engine, command, world.call_of("command", json!({})))).await.unwrap();
    let rendered = toold_engine::offers::render(&world.engine, "prompt", Map::new(), world.call_of("", json!({})));
    vec![
        world.text("serial", json!({})).await,
        world.text("other", json!({})).await,
        commanded.text(),
        soon(rendered).await.unwrap().messages[0].content.as_text().unwrap().to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_hooks_commands_and_prompts_share_the_plugins_state_and_a_reload_replaces_it_whole() {
    let world = TestPlugins::new(&[("p.lua", &counter("one"))]).await;
    assert_eq!(counted(&world).await, ["one tool 2", "one hook 3", "one command 1", "one prompt 4"]);
    assert_eq!(counted(&world).await, ["one tool 6", "one hook 7", "one command 5", "one prompt 8"]);
    // The event comes when all of the new version serves.
    let mut events = world.engine.events.subscribe(EventSelection::All, None).receiver;
    world.write("p.lua", &counter("two"));
    soon(async { while events.recv().await.unwrap().body.kind() != "plugin.loaded" {} }).await;
    assert_eq!(counted(&world).await, ["two tool 2", "two hook 3", "two command 1", "two prompt 4"]);
    // A version that does not load leaves the state alone.
    world.write("p.lua", &format!("{} error('late')", counter("three")));
    world.until_failed("p").await;
    assert_eq!(counted(&world).await[0], "two tool 6");
}

/// A load that ends only when the test allows it, and the version that serves meanwhile.
const WAITS: &str = "
    local serials = 0
    hygge.register_tool{name = 'prompts', execute = function(ctx)
      serials = serials + 1
      local answer = ctx.question{question = 'Go on?', options = {{id = 'yes', label = 'Yes'}}}
      return answer.id .. ' ' .. serials end}
    hygge.register_tool{name = 'beside', parallelizable = true, execute = function() return 'beside' end}
    hygge.register_hook('post_tool', {tools = {'beside', 'elsewhere'}}, function(event)
      return {decision = 'modify', modified_tool_result = {content = event.tool_result.content[1].text .. ', hooked'}} end)
    hygge.register_command{name = 'command', execute = function() return 'commanded' end}";

#[tokio::test(flavor = "multi_thread")]
async fn while_a_serial_tool_waits_for_a_person_hooks_commands_and_other_calls_run() {
    let elsewhere = "hygge.register_tool{name = 'elsewhere', execute = function() return 'elsewhere' end}";
    let world = TestPlugins::new(&[("p.lua", WAITS), ("q.lua", elsewhere)]).await;
    let mut questions = world.engine.questions.subscribe(None);
    let meanwhile = async {
        let request = loop {
            if let QuestionEvent::Asked { request } = questions.next().await {
                break request;
            }
        };
        // In a session of their own: within one, serial tools take turns.
        let call = |name: &str, input: Value| {
            let mut call = world.call_of(name, input);
            call.session = world.another_session();
            call
        };
        for name in ["beside", "elsewhere"] {
            let result = world.execute(call(name, json!({}))).await.unwrap();
            assert_eq!(result.text(), format!("{name}, hooked"));
        }
        let command = world.host.commands()[0].tool.clone();
        let commanded = soon(execute_tool(&world.engine, command, call("command", json!({})))).await.unwrap();
        assert_eq!(commanded.text(), "commanded");
        let reply = ReplyQuestion {
            request_id: request.request_id,
            answer_ids: Some(vec!["yes".to_owned()]),
            ..ReplyQuestion::default()
        };
        let by = Answerer { client: None, connection: 1 };
        toold_engine::questions::reply(&world.engine, &reply, by, None).unwrap();
    };
    let (result, ()) = tokio::join!(world.text("prompts", json!({})), meanwhile);
    assert_eq!(result, "yes 1");
}
