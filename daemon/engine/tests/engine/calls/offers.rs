//! Resources and prompts, forms that people fill in, and answers of models.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use toold_engine::call::Call;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::offers::linked::link;
use toold_engine::offers::template::Template;
use toold_engine::offers::{
    Completing, OfferError, PromptTemplate, Resource, ResourceAddress, SourceOffer, complete, read, render,
};
use toold_engine::questions::{FormOutcome, FormRequest, QuestionReplyError, reply};
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::sampling::{Sampler, SamplingRequest, SamplingResponse};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput};
use toold_proto::offer::{PromptArgument, PromptMessage, Speaker};
use toold_proto::permission::Answerer;
use toold_proto::question::{QuestionEvent, ReplyQuestion};
use toold_proto::tool::{Block, SourceKind};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::TestEngine;

/// A tool whose structured result is made of its input.
fn giving(name: &str, give: impl Fn(Value) -> Value + Send + Sync + 'static) -> Arc<dyn Callable> {
    Arc::new(SampleTool::new(name).run(move |input, _| {
        let structured = Some(give(input));
        async move { Ok(ToolOutput { structured, ..ToolOutput::default() }) }.boxed()
    }))
}

fn resource(address: ResourceAddress, reader: Arc<dyn Callable>) -> Arc<Resource> {
    let source = reader.spec().source.clone();
    let name = address.as_str().to_owned();
    let completer = Some(giving("complete", |input| {
        let values: Vec<String> = (0..150).map(|n| format!("{}{n}", input["value"].as_str().unwrap())).collect();
        json!({"values": values})
    }));
    Arc::new(Resource {
        address,
        name,
        title: None,
        description: None,
        mime_type: None,
        source,
        reader,
        completer,
        watcher: None,
        more: Map::new(),
    })
}

fn prompt(name: &str, text: &'static str) -> Arc<PromptTemplate> {
    let argument =
        |name: &str, required| PromptArgument { name: name.into(), title: None, description: None, required };
    let renderer = giving("render", move |input| {
        let content = json!({"type": "text", "text": format!("{text} {}", input["who"].as_str().unwrap())});
        json!({"messages": [{"role": "user", "content": content}]})
    });
    let source = renderer.spec().source.clone();
    Arc::new(PromptTemplate {
        name: name.into(),
        title: None,
        description: Some("Greets".into()),
        arguments: vec![argument("who", true), argument("how", false)],
        source,
        renderer,
        completer: None,
        more: Map::new(),
    })
}

fn key(name: &str, scope: SourceScope) -> SourceKey {
    SourceKey { kind: SourceKind::Plugin, name: name.into(), scope }
}

fn object(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

#[tokio::test]
async fn offers_are_read_rendered_and_completed_as_calls() {
    let fixture = TestEngine::new(Vec::new());
    let echo =
        |name: &str| giving(name, |input| json!([{"uri": input["uri"], "text": input["variables"].to_string()}]));
    let template = ResourceAddress::Template(Template::parse("note://{id}").unwrap());
    let offer = SourceOffer {
        resources: vec![
            resource(ResourceAddress::Uri("note://all".into()), echo("one")),
            resource(template, echo("many")),
        ],
        prompts: vec![prompt("greet", "hello")],
    };
    fixture.engine.offers.commit(vec![(key("notes", SourceScope::Global), Origin::UserPlugin, offer)]);
    let call = || fixture.prepare("", json!({}));
    let contents = read(&fixture.engine, "note://all", call()).await.unwrap();
    assert_eq!((contents[0].uri.as_str(), contents[0].text.as_deref()), ("note://all", Some("{}")));
    let contents = read(&fixture.engine, "note://7", call()).await.unwrap();
    assert_eq!(contents[0].text.as_deref(), Some(r#"{"id":"7"}"#));
    assert_eq!(read(&fixture.engine, "x://", call()).await, Err(OfferError::NoResource("x://".into())));

    let rendered = render(&fixture.engine, "greet", object(json!({"who": "you"})), call()).await.unwrap();
    assert_eq!(
        (rendered.description.as_deref(), &rendered.messages[0].content),
        (Some("Greets"), &Block::text("hello you"))
    );
    for (arguments, words) in [
        (json!({}), "argument who is missing"),
        (json!({"who": "a", "x": "b"}), "argument x is unknown"),
        (json!({"who": 1}), "argument who must be a string"),
    ] {
        let error = render(&fixture.engine, "greet", object(arguments), call()).await.unwrap_err();
        assert_eq!(error, OfferError::Arguments(format!("prompt greet: {words}")));
    }
    let of = Completing::Prompt("greet".into());
    let nothing = complete(&fixture.engine, &of, "who", "a", Map::new(), call()).await.unwrap();
    assert_eq!(nothing.values, Vec::<String>::new());
    let of = Completing::Resource("note://{id}".into());
    let values = complete(&fixture.engine, &of, "id", "a", Map::new(), call()).await.unwrap();
    assert_eq!((values.values.len(), values.total, values.has_more), (100, Some(150), true));
    let unknown = complete(&fixture.engine, &of, "no", "a", Map::new(), call()).await;
    assert_eq!(unknown, Err(OfferError::Arguments("note://{id} has no argument no".into())));
    fixture.records_are_closed();
}

#[tokio::test]
async fn the_first_source_keeps_a_name_and_a_project_sees_its_own() {
    let fixture = TestEngine::new(Vec::new());
    let offers = &fixture.engine.offers;
    let of = |text| SourceOffer { resources: Vec::new(), prompts: vec![prompt("greet", text)] };
    let project = SourceScope::Project("/p".into());
    offers.commit(vec![(key("b", project.clone()), Origin::ProjectPlugin, of("project"))]);
    assert!(offers.prompts(Path::new("/q")).is_empty());
    let said = async || {
        let call = fixture.prepare("", json!({}));
        let rendered = render(&fixture.engine, "greet", object(json!({"who": ""})), call).await.unwrap();
        rendered.messages[0].content.as_text().unwrap().trim().to_owned()
    };
    assert_eq!(said().await, "project");
    offers.commit(vec![(key("a", SourceScope::Global), Origin::UserPlugin, of("user"))]);
    assert_eq!(said().await, "user");
    offers.commit(vec![(key("a", SourceScope::Global), Origin::UserPlugin, SourceOffer::default())]);
    assert_eq!(said().await, "project");
    offers.commit(vec![(key("a", SourceScope::Global), Origin::UserPlugin, SourceOffer::default())]);
    let changes = fixture.kinds().iter().filter(|kind| **kind == "prompts.changed").count();
    assert_eq!(changes, 3);
    assert!(!fixture.kinds().contains(&"resources.changed"));
}

#[tokio::test]
async fn a_uri_belongs_to_the_first_source_with_it_a_link_or_a_template() {
    let fixture = TestEngine::new(Vec::new());
    let of = |text: &'static str| giving(text, move |input| json!([{"uri": input["uri"], "text": text}]));
    let template = |text: &str| ResourceAddress::Template(Template::parse(text).unwrap());
    let offer = |address, text| SourceOffer { resources: vec![resource(address, of(text))], prompts: Vec::new() };
    let server = |name: &str| SourceKey { kind: SourceKind::Mcp, name: name.into(), scope: SourceScope::Global };
    let offers = &fixture.engine.offers;
    // Earlier in the order of the texts, later in that of the sources.
    offers.commit(vec![
        (server("a"), Origin::Mcp, offer(template("x://{+a}"), "server")),
        (server("b"), Origin::Mcp, offer(ResourceAddress::Uri("x://listed".into()), "listed")),
        (key("p", SourceScope::Global), Origin::UserPlugin, offer(template("x://{b}"), "plugin")),
    ]);
    let read = async |uri: &str| {
        let contents = read(&fixture.engine, uri, fixture.prepare("", json!({}))).await.unwrap();
        contents[0].text.clone().unwrap()
    };
    assert_eq!((read("x://1").await.as_str(), read("x://1/2").await.as_str()), ("plugin", "server"));
    let session = fixture.prepare("", json!({})).session;
    for uri in ["x://1", "x://listed"] {
        link(&session, resource(ResourceAddress::Uri(uri.into()), of("linked")));
    }
    assert_eq!((read("x://1").await.as_str(), read("x://listed").await.as_str()), ("linked", "listed"));
}

/// `form` has a form filled in.
fn fixture() -> TestEngine {
    TestEngine::new(vec![SampleTool::new("form").run(|_, cx| {
        async move {
            let schema = json!({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}},
                "required": ["age"]});
            let form = FormRequest { key: None, message: "who?".into(), schema: Schema::compile(schema).unwrap() };
            Ok(match cx.elicit(form).await? {
                FormOutcome::Accepted(content) => ToolOutput::text(Value::Object(content).to_string()),
                FormOutcome::Declined => ToolOutput::text("declined"),
                FormOutcome::Cancelled => ToolOutput::text("cancelled"),
            })
        }
        .boxed()
    })])
}

async fn check_form(said: Value, expected: Result<&str, &str>) {
    let fixture = fixture();
    let mut frontend = fixture.engine.questions.subscribe(None);
    let call = fixture.start(Call { timeout: Some(Duration::from_secs(1)), ..fixture.prepare("form", json!({})) });
    let QuestionEvent::Asked { request } = frontend.next().await else { panic!("expected a question") };
    assert_eq!(request.schema.as_ref().unwrap()["required"], json!(["age"]));
    sleep(Duration::from_secs(5)).await;
    let mut wanted = said;
    wanted["request_id"] = json!(request.request_id);
    let wanted: ReplyQuestion = serde_json::from_value(wanted).unwrap();
    match (reply(&fixture.engine, &wanted, Answerer { client: None, connection: 1 }, None), expected) {
        (Ok(()), Ok(text)) => assert_eq!(call.await.unwrap().unwrap().text(), text),
        (Err(QuestionReplyError::NoAnswer(words)), Err(expected)) => assert!(words.contains(expected), "{words}"),
        (said, expected) => panic!("{said:?}, expected {expected:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn form_accepts_values_that_fit_its_schema() {
    check_form(json!({"content": {"age": 3}}), Ok(r#"{"age":3}"#)).await;
    check_form(json!({"content": {"age": -3}}), Err("/age: expected at least 0, got -3")).await;
    check_form(json!({"content": {}}), Err("required")).await;
    check_form(json!({"answer": "4"}), Ok(r#"{"age":4}"#)).await;
    check_form(json!({"answer": "{\"age\": 5}"}), Ok(r#"{"age":5}"#)).await;
    check_form(json!({"answer": "four"}), Err("expected a number")).await;
    check_form(json!({"answer_ids": ["a"]}), Err("has no options")).await;
    check_form(json!({}), Err("expected content")).await;
    check_form(json!({"declined": true}), Ok("declined")).await;
    check_form(json!({"cancelled": true}), Ok("cancelled")).await;
    check_form(json!({"cancelled": true, "content": {"age": 3}}), Err("both answer and decline")).await;
}

/// Repeats the last message.
struct Parrot;

impl Sampler for Parrot {
    fn sample<'a>(&'a self, asked: SamplingRequest, _: &'a Cx) -> BoxFuture<'a, Result<SamplingResponse, ToolError>> {
        async move {
            sleep(Duration::from_secs(100)).await;
            let content = vec![asked.messages.last().unwrap().content.clone()];
            Ok(SamplingResponse { role: Speaker::Assistant, content, model: "parrot".into(), stop_reason: None })
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_by_the_client_that_called() {
    let fixture = TestEngine::new(vec![SampleTool::new("ask").run(|_, cx| {
        async move {
            let asked = SamplingRequest {
                messages: vec![PromptMessage { role: Speaker::User, content: Block::text("pretty") }],
                system_prompt: None,
                max_tokens: 10,
                temperature: None,
                stop_sequences: Vec::new(),
                model_preferences: None,
            };
            let sampled = cx.sample(asked).await?;
            Ok(ToolOutput { content: sampled.content, ..ToolOutput::default() })
        }
        .boxed()
    })]);
    let ask = async || {
        let call = Call { timeout: Some(Duration::from_secs(1)), ..fixture.prepare("ask", json!({})) };
        fixture.start(call).await.unwrap().unwrap()
    };
    assert!(ask().await.text().contains("offers no sampling"));
    let registration = fixture.engine.samplers.register(1, Arc::new(Parrot));
    let _other = fixture.engine.samplers.register(2, Arc::new(Parrot));
    assert_eq!(ask().await.text(), "pretty");
    drop(registration);
    assert!(ask().await.is_error);
}
