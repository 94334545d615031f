//! Resources, prompts, forms, models, and results that are more than text.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toold_engine::cx::Cx;
use toold_engine::events::EventSelection;
use toold_engine::offers::{Completing, OfferError, complete, read, render};
use toold_engine::sampling::{Sampler, SamplingRequest, SamplingResponse};
use toold_engine::tool::ToolError;
use toold_proto::event::EventBody;
use toold_proto::offer::Speaker;
use toold_proto::permission::Answerer;
use toold_proto::plugin::PluginStatus;
use toold_proto::question::{QuestionEvent, ReplyQuestion};
use toold_proto::tool::Block;

use crate::world::{TestPlugins, soon};

const NOTES: &str = r#"
local notes = {a = "first", b = "second"}
hygge.register_resource{
  uri = "notes://all", name = "notes", title = "All notes", description = "Names of notes", mime_type = "text/markdown",
  read = function(ctx, uri) return "a b in " .. ctx.session.id .. " " .. uri end,
}
hygge.register_resource{
  uri_template = "notes://one/{id}", name = "note",
  read = function(ctx, uri, variables)
    if variables.id == "raw" then return "\255\0" end
    if variables.id == "both" then return {{text = "x", uri = "notes://x"}, {blob = "AAE=", mime_type = "image/png"}} end
    if variables.id == "bytes" then return {bytes = "\0\1", mime_type = "image/png"} end
    if variables.id == "bad" then return {nothing = 1} end
    if variables.id == "secret" then return hygge.fs.read("/etc/hostname") end
    if variables.id == "boom" then error("boom") end
    return notes[variables.id]
  end,
  complete = function(ctx, argument, value, given)
    local found = {}
    for name in pairs(notes) do if name:sub(1, #value) == value then found[#found + 1] = argument .. name end end
    table.sort(found)
    return found
  end,
}
hygge.register_prompt{
  name = "review", title = "Review", description = "Reviews code",
  arguments = {{name = "file", description = "Which", required = true}, "style"},
  render = function(ctx, arguments)
    if arguments.style == "short" then return "Review " .. arguments.file end
    return {description = "Long", messages = {
      {role = "user", content = {"Review this:", {type = "resource", uri = "file:///x", text = "code"}}},
      {role = "assistant", content = {type = "image", data = "AAE=", mime_type = "image/png"}},
      "Go on.",
    }}
  end,
  complete = {style = {"short", "Long"}},
}
"#;

async fn text_of(world: &TestPlugins, uri: &str) -> Result<Vec<Value>, OfferError> {
    let contents = soon(read(&world.engine, uri, world.call_of("", json!({})))).await?;
    Ok(contents.iter().map(|content| serde_json::to_value(content).unwrap()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_read_and_their_variables_completed() {
    let world = TestPlugins::of(NOTES).await;
    let listed = world.engine.offers.resources(Path::new("/"));
    let addresses: Vec<&str> = listed.iter().map(|resource| resource.address.as_str()).collect();
    assert_eq!(addresses, ["notes://all", "notes://one/{id}"]);
    assert_eq!((listed[0].title.as_deref(), listed[0].source.name.as_str()), (Some("All notes"), "p"));
    let whole = json!({"uri": "notes://all", "mime_type": "text/markdown", "text": "a b in s notes://all"});
    assert_eq!(text_of(&world, "notes://all").await.unwrap(), [whole]);
    let of = |id: &str| format!("notes://one/{id}");
    for (id, expected) in [
        ("a", json!([{"uri": of("a"), "mime_type": "text/plain", "text": "first"}])),
        ("raw", json!([{"uri": of("raw"), "mime_type": "application/octet-stream", "blob": "/wA="}])),
        ("bytes", json!([{"uri": of("bytes"), "mime_type": "image/png", "blob": "AAE="}])),
        (
            "both",
            json!([{"uri": "notes://x", "text": "x"}, {"uri": of("both"), "mime_type": "image/png", "blob": "AAE="}]),
        ),
    ] {
        assert_eq!(json!(text_of(&world, &of(id)).await.unwrap()), expected);
    }
    assert_eq!(text_of(&world, &of("z")).await, Err(OfferError::NoResource(of("z"))));
    assert_eq!(text_of(&world, "notes://one/a/b").await, Err(OfferError::NoResource(of("a/b"))));
    for (id, words) in [("bad", "one of text, blob"), ("boom", "boom"), ("secret", "not allowed")] {
        let error = text_of(&world, &of(id)).await.unwrap_err();
        assert!(matches!(&error, OfferError::Failed(text) if text.contains(words)), "{error:?}");
    }
    let template = Completing::Resource(of("{id}"));
    let call = world.call_of("", json!({}));
    let completion = soon(complete(&world.engine, &template, "id", "b", Map::new(), call)).await.unwrap();
    assert_eq!(completion.values, ["idb"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_rendered_and_their_arguments_completed() {
    let world = TestPlugins::of(NOTES).await;
    let listed = world.engine.offers.prompts(Path::new("/"));
    assert_eq!(
        json!(listed[0].arguments),
        json!([{"name": "file", "description": "Which", "required": true}, {"name": "style", "required": false}])
    );
    let rendered = async |arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        json!(soon(render(&world.engine, "review", arguments, world.call_of("", json!({})))).await.unwrap())
    };
    assert_eq!(
        rendered(json!({"file": "x", "style": "short"})).await,
        json!({"description": "Reviews code",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Review x"}}]})
    );
    assert_eq!(
        rendered(json!({"file": "x"})).await,
        json!({"description": "Long", "messages": [
            {"role": "user", "content": {"type": "text", "text": "Review this:"}},
            {"role": "user", "content": {"type": "resource", "uri": "file:///x", "text": "code"}},
            {"role": "assistant", "content": {"type": "image", "data": "AAE=", "mime_type": "image/png"}},
            {"role": "user", "content": {"type": "text", "text": "Go on."}}]})
    );
    let of = Completing::Prompt("review".into());
    let call = world.call_of("", json!({}));
    let completion = soon(complete(&world.engine, &of, "style", "l", Map::new(), call)).await.unwrap();
    assert_eq!(completion.values, ["Long"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_follow_the_file() {
    let world = TestPlugins::of(NOTES).await;
    let kinds = |world: &TestPlugins| -> Vec<&'static str> {
        let events = world.engine.events.subscribe_from_start(EventSelection::All).replay;
        events.iter().map(|event| event.body.kind()).filter(|kind| kind.contains("s.changed")).collect()
    };
    assert_eq!(kinds(&world), ["resources.changed", "prompts.changed"]);
    world.write("p.lua", "hygge.register_prompt{name = 'other', render = function() return 'x' end}");
    world.until(|world| world.engine.offers.prompts(Path::new("/")).iter().any(|prompt| prompt.name == "other")).await;
    assert!(world.engine.offers.resources(Path::new("/")).is_empty());
    std::fs::remove_file(world.plugins.join("p.lua")).unwrap();
    world.until(|world| world.engine.offers.prompts(Path::new("/")).is_empty()).await;
    assert_eq!(kinds(&world)[2..], ["resources.changed", "prompts.changed", "prompts.changed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_of_offers_name_the_field() {
    for (script, words) in [
        ("hygge.register_resource{name = 'x', read = print}", "expected uri or uri_template, got neither"),
        ("hygge.register_resource{uri = 'x', name = 'x', read = print}", "field 'uri': expected a URI"),
        ("hygge.register_resource{uri = 'x:y', name = 'x'}", "field 'read': expected a function, got nothing"),
        ("hygge.register_resource{uri = 'x:y', read = print}", "field 'name': expected a string"),
        ("hygge.register_resource{uri_template = 'x:{', name = 'x', read = print}", "a brace is not closed"),
        ("hygge.register_resource{uri_template = 'x:y', name = 'x', read = print}", "it has no variable"),
        ("hygge.register_resource{uri = 'x:y', name = 'x', read = print, complete = {}}", "only a uri_template"),
        ("hygge.register_prompt{name = 'x'}", "field 'render': expected a function"),
        ("hygge.register_prompt{name = 'x', render = print, arguments = {{}}}", "field 'name': expected a string"),
        ("hygge.register_prompt{name = 'x', render = print, arguments = {'a', 'a'}}", "the argument a is there twice"),
        (
            "for i = 1, 2 do hygge.register_prompt{name = 'x', render = print} end",
            "this plugin has registered the prompt x already",
        ),
    ] {
        let world = TestPlugins::new(&[("p.lua", script)]).await;
        let plugin = world.plugin("p");
        assert_eq!(plugin.status, PluginStatus::Failed, "{script}");
        let message = plugin.error.unwrap().message;
        assert!(message.contains(words), "{script}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_carry_pictures_sound_and_structure() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 'media', execute = function() return {content = {
           'look', {type = 'image', data = 'AAE=', mime_type = 'image/png'},
           {type = 'audio', data = 'AAE=', mime_type = 'audio/wav'},
           {type = 'resource', uri = 'x:y', text = 'inside', mime_type = 'text/plain'}}} end}
         hygge.register_tool{name = 'wrong', execute = function() return {content = {{type = 'image'}}} end}
         hygge.register_tool{name = 'sum', output_schema = {type = 'object', properties = {sum = {type = 'number'}},
           required = {'sum'}}, execute = function(ctx, input) return {structured = {sum = input.sum}} end}
         hygge.register_tool{name = 'bare', output_schema = {type = 'object'}, execute = function() return {a = 1} end}",
    )
    .await;
    let media = world.call("media", json!({})).await;
    assert_eq!(
        json!(media.content),
        json!([{"type": "text", "text": "look"}, {"type": "image", "data": "AAE=", "mime_type": "image/png"},
            {"type": "audio", "data": "AAE=", "mime_type": "audio/wav"},
            {"type": "resource", "uri": "x:y", "text": "inside", "mime_type": "text/plain"}])
    );
    let wrong = world.call("wrong", json!({})).await;
    assert!(wrong.is_error && wrong.text().contains("field 'content[1]': missing field `data`"), "{}", wrong.text());
    let sum = world.call("sum", json!({"sum": 3})).await;
    assert_eq!((sum.structured, sum.content), (Some(json!({"sum": 3})), vec![Block::text(r#"{"sum":3}"#)]));
    let no_sum = world.call("sum", json!({"sum": "three"})).await;
    assert!(no_sum.is_error && no_sum.text().contains("does not match its output schema"), "{}", no_sum.text());
    assert_eq!(world.call("bare", json!({})).await.structured, Some(json!({"a": 1})));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_of_a_call_are_events_of_its_session() {
    let world = TestPlugins::of(
        "hygge.log('info', 'loading')
         hygge.register_tool{name = 't', execute = function()
           hygge.log('warning', 'careful', {n = 1}) print('a', 1)
           for i = 1, 500 do hygge.log('debug', 'flood') end end}",
    )
    .await;
    world.call("t", json!({})).await;
    let events = world.engine.events.subscribe_from_start(EventSelection::All).replay;
    let logged: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Log { level, message, fields, .. } => Some((level.as_str(), message.as_str(), fields.clone())),
            _ => None,
        })
        .collect();
    let first = [("info", "loading", None), ("warn", "careful", Some(json!({"n": 1}))), ("info", "a\t1", None)];
    assert_eq!(logged[..3], first);
    assert_eq!((logged.len(), logged.last().unwrap().1), (102, "further lines are only in the daemon's log"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_fills_in_a_form() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', execute = function(ctx)
           local answer = ctx.elicit{message = 'Who?', schema = {properties = {name = {type = 'string'}}, required = {'name'}}}
           return answer.action .. ' ' .. (answer.content and answer.content.name or '-') end}
         hygge.register_tool{name = 'bad', execute = function(ctx) ctx.elicit{message = 'x', schema = {type = 'array'}} end}",
    )
    .await;
    let alone = world.call("t", json!({})).await;
    assert!(alone.is_error && alone.text().contains("no connected client can answer"), "{}", alone.text());
    let bad = world.call("bad", json!({})).await;
    assert!(bad.text().contains("ctx.elicit: field 'schema'"), "{}", bad.text());
    let mut questions = world.engine.questions.subscribe(None);
    for (said, expected) in [
        (json!({"content": {"name": "Ada"}}), "accept Ada"),
        (json!({"answer": "Bo"}), "accept Bo"),
        (json!({"declined": true}), "decline -"),
        (json!({"cancelled": true}), "cancel -"),
    ] {
        let answering = async {
            loop {
                let QuestionEvent::Asked { request } = questions.next().await else { continue };
                assert_eq!(request.schema.as_ref().unwrap()["type"], "object");
                let mut reply = said.clone();
                reply["request_id"] = json!(request.request_id);
                let reply: ReplyQuestion = serde_json::from_value(reply).unwrap();
                let by = Answerer { client: None, connection: 1 };
                return toold_engine::questions::reply(&world.engine, &reply, by, None).unwrap();
            }
        };
        let (text, ()) = tokio::join!(world.text("t", json!({})), answering);
        assert_eq!(text, expected);
    }
}

/// Says what it was asked.
struct Echo;

impl Sampler for Echo {
    fn sample<'a>(&'a self, asked: SamplingRequest, _: &'a Cx) -> BoxFuture<'a, Result<SamplingResponse, ToolError>> {
        async move {
            let words: Vec<&str> = asked.messages.iter().filter_map(|message| message.content.as_text()).collect();
            let text = format!("{} {} {:?}", words.join("+"), asked.max_tokens, asked.system_prompt);
            let content = vec![Block::text(text)];
            Ok(SamplingResponse {
                role: Speaker::Assistant,
                content,
                model: "echo".into(),
                stop_reason: Some("endTurn".into()),
            })
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_where_the_client_has_one() {
    let world = TestPlugins::of(
        "hygge.register_tool{name = 't', execute = function(ctx, input)
           local answer = ctx.sample(input.ask)
           return answer.content .. ' ' .. answer.model .. ' ' .. answer.role .. ' ' .. answer.stop_reason end}",
    )
    .await;
    let alone = world.call("t", json!({"ask": "x"})).await;
    assert!(alone.is_error && alone.text().contains("offers no sampling"), "{}", alone.text());
    let _lent = world.engine.samplers.register(1, Arc::new(Echo));
    let tail = "echo assistant endTurn";
    assert_eq!(world.text("t", json!({"ask": "x"})).await, format!("x 1024 None {tail}"));
    let ask = json!({"messages": ["a", {"role": "assistant", "content": "b"}], "max_tokens": 5, "system_prompt": "s"});
    assert_eq!(world.text("t", json!({"ask": ask})).await, format!("a+b 5 Some(\"s\") {tail}"));
    let empty = world.call("t", json!({"ask": {"messages": []}})).await;
    assert!(empty.text().contains("at least one message"), "{}", empty.text());
}
