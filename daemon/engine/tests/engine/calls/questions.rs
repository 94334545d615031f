//! Tools that ask people questions.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toold_engine::call::{Call, CallError};
use toold_engine::questions::{QuestionAnswer, QuestionReplyError, QuestionRequest, QuestionSubscription, reply};
use toold_engine::tool::ToolOutput;
use toold_proto::permission::Answerer;
use toold_proto::question::{Question, QuestionEnd, QuestionEvent, QuestionOption, QuestionResolved, ReplyQuestion};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{TestEngine, settle};

/// `question {multiple, allow_other}` asks which of a, b and c.
fn fixture() -> TestEngine {
    let option = |id: &str| QuestionOption { id: id.into(), label: id.to_uppercase(), description: None };
    TestEngine::new(vec![SampleTool::new("question").run(move |input, cx| {
        async move {
            let flag = |name: &str| input[name].as_bool().unwrap_or_default();
            let asking = QuestionRequest {
                question: "which?".into(),
                options: ["a", "b", "c"].map(option).into(),
                multiple: flag("multiple"),
                allow_other: flag("allow_other"),
            };
            Ok(match cx.question(asking).await? {
                QuestionAnswer::Answer { answer_ids, answer } => ToolOutput::text(format!("{answer_ids:?} {answer:?}")),
                QuestionAnswer::Cancelled => ToolOutput::text("declined"),
            })
        }
        .boxed()
    })])
}

async fn next_question(frontend: &mut QuestionSubscription) -> Question {
    match frontend.next().await {
        QuestionEvent::Asked { request } => *request,
        QuestionEvent::Resolved(end) => panic!("expected a question, not {end:?}"),
    }
}

async fn next_end(frontend: &mut QuestionSubscription) -> QuestionResolved {
    match frontend.next().await {
        QuestionEvent::Resolved(end) => end,
        QuestionEvent::Asked { request } => panic!("expected an end, not {request:?}"),
    }
}

fn say(fixture: &TestEngine, question: &Question, said: Value) -> Result<(), QuestionReplyError> {
    let mut wanted: ReplyQuestion = serde_json::from_value(json!({"request_id": question.request_id})).unwrap();
    wanted.answer_ids = serde_json::from_value(said["answer_ids"].clone()).unwrap();
    wanted.answer = said["answer"].as_str().map(str::to_owned);
    wanted.cancelled = said["cancelled"] == true;
    reply(&fixture.engine, &wanted, Answerer { client: Some("tester".into()), connection: 1 }, None)
}

/// What the tool answers when a person says this; the errors of what is refused before.
async fn check(asks: Value, said: Value, expected: Result<&str, &str>) {
    let fixture = fixture();
    let mut frontend = fixture.engine.questions.subscribe(None);
    let call = fixture.start(fixture.prepare("question", asks));
    let question = next_question(&mut frontend).await;
    match (say(&fixture, &question, said), expected) {
        (Ok(()), Ok(text)) => assert_eq!(call.await.unwrap().unwrap().text(), text),
        (Err(QuestionReplyError::NoAnswer(words)), Err(expected)) => {
            assert!(words.contains(expected), "{words}");
            assert_eq!(fixture.engine.questions.pending().len(), 1, "a refused reply answers nothing");
        }
        (said, expected) => panic!("{said:?}, expected {expected:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn answers_fit_their_question() {
    let one = || json!({});
    check(one(), json!({"answer_ids": ["b"]}), Ok("[\"b\"] None")).await;
    check(one(), json!({"answer_ids": ["b", "a"]}), Err("one answer")).await;
    check(one(), json!({"answer_ids": ["x"]}), Err("expected one of a, b, c")).await;
    check(one(), json!({"answer": "mine"}), Err("one of its options")).await;
    check(one(), json!({}), Err("expected answer_ids")).await;
    check(one(), json!({"answer": " "}), Err("expected answer_ids")).await;
    check(one(), json!({"cancelled": true}), Ok("declined")).await;
    check(one(), json!({"cancelled": true, "answer_ids": ["a"]}), Err("both answer and decline")).await;
    check(json!({"multiple": true}), json!({"answer_ids": ["c", "a"]}), Ok("[\"a\", \"c\"] None")).await;
    check(json!({"allow_other": true}), json!({"answer": "mine"}), Ok("[] Some(\"mine\")")).await;
    let all = json!({"multiple": true, "allow_other": true});
    check(all, json!({"answer": "mine", "answer_ids": ["a"]}), Ok("[\"a\"] Some(\"mine\")")).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_can_answer_is_bad_news_at_once() {
    let fixture = fixture();
    let result = fixture.call("question", json!({})).await.unwrap();
    assert!(result.is_error && result.text().contains("no connected client"), "{}", result.text());
    assert_eq!(fixture.kinds(), ["call.started", "call.finished"]);
}

#[tokio::test(start_paused = true)]
async fn first_reply_counts_and_all_are_notified() {
    let fixture = fixture();
    let mut frontends = [fixture.engine.questions.subscribe(None), fixture.engine.questions.subscribe(None)];
    let call = fixture.start(Call { timeout: Some(Duration::from_secs(1)), ..fixture.prepare("question", json!({})) });
    let question = next_question(&mut frontends[0]).await;
    assert_eq!(next_question(&mut frontends[1]).await, question);
    sleep(Duration::from_secs(60)).await;
    say(&fixture, &question, json!({"answer_ids": ["a"]})).unwrap();
    let late = say(&fixture, &question, json!({"answer_ids": ["b"]})).unwrap_err();
    assert!(late.to_string().ends_with(" is already answered: answered by tester"), "{late}");
    for frontend in &mut frontends {
        let end = next_end(frontend).await;
        assert_eq!((end.action, end.by.unwrap().connection), (QuestionEnd::Answered, 1));
    }
    assert_eq!(call.await.unwrap().unwrap().text(), "[\"a\"] None");
    assert_eq!(fixture.kinds(), ["call.started", "question.asked", "question.answered", "call.finished"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_call_and_with_its_time() {
    let fixture = fixture();
    let mut frontend = fixture.engine.questions.subscribe(None);
    let call = fixture.prepare("question", json!({}));
    let cancel = call.cancel.clone();
    let call = fixture.start(call);
    next_question(&mut frontend).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap(), Err(CallError::Cancelled));
    assert_eq!(next_end(&mut frontend).await.action, QuestionEnd::Cancelled);
    let start = Instant::now();
    let result = fixture.call("question", json!({})).await.unwrap();
    assert!(result.is_error && result.text().contains("600 s"), "{}", result.text());
    assert_eq!(start.elapsed(), Duration::from_secs(600));
    let call = fixture.start(fixture.prepare("question", json!({})));
    settle().await;
    drop(frontend);
    assert!(call.await.unwrap().unwrap().text().contains("no connected client"));
    assert_eq!(start.elapsed(), Duration::from_secs(610));
    fixture.engine.questions.expect_frontends();
    let call = fixture.start(fixture.prepare("question", json!({})));
    sleep(Duration::from_secs(9)).await;
    let mut frontend = fixture.engine.questions.subscribe(None);
    let question = next_question(&mut frontend).await;
    say(&fixture, &question, json!({"answer_ids": ["a"]})).unwrap();
    assert_eq!(call.await.unwrap().unwrap().text(), "[\"a\"] None");
    fixture.records_are_closed();
}
