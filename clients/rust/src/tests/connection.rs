//! The client against a peer that sends exactly what each test needs.

use crate::{Client, ClientError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use toold_proto::call::{Execute, Progress};
use toold_proto::daemon::NoParams;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{DaemonPing, EventsSubscribe, ToolsSchema};
use toold_proto::tool::CallId;

struct TestPeer {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

fn pair() -> (Client, TestPeer) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::over(reader, writer).unwrap();
    let (reader, writer) = tokio::io::split(theirs);
    (client, TestPeer { reader: BufReader::new(reader), writer })
}

impl TestPeer {
    async fn request(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.reader.read_line(&mut line).await.unwrap(), 0, "the client has closed the stream");
        serde_json::from_str(&line).unwrap()
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }
}

fn progress(call_id: &Value, seq: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "tools.progress",
        "params": {"call_id": call_id, "seq": seq, "kind": "message", "text": format!("step {seq}")}})
}

fn result(call_id: &Value) -> Value {
    json!({"call_id": call_id, "content": [{"type": "text", "text": "done"}], "is_error": false,
        "metadata": {}, "duration_ms": 1, "cached": false})
}

#[tokio::test]
async fn answers_come_in_the_order_they_finish() {
    let (client, mut peer) = pair();
    let schema = |name: &str| toold_proto::call::ToolSchema { name: name.into(), session_id: None };
    let first = tokio::spawn({
        let client = client.clone();
        async move { client.call::<ToolsSchema>(schema("a")).await }
    });
    let one = peer.request().await;
    let second = tokio::spawn(async move { client.call::<DaemonPing>(NoParams {}).await });
    let two = peer.request().await;
    assert_eq!((&one["method"], &one["params"]), (&json!("tools.schema"), &json!({"name": "a"})));
    assert_eq!(two["params"], json!({}));
    peer.answer(&two, json!({})).await;
    second.await.unwrap().unwrap();
    let error = json!({"code": -32001, "message": "no tool a", "data": {"kind": "unknown_tool", "suggestions": ["b"]}});
    peer.send(json!({"jsonrpc": "2.0", "id": one["id"], "error": error})).await;
    let Err(ClientError::Rpc(error)) = first.await.unwrap() else { panic!("expected an error") };
    assert_eq!((error.code, error.kind(), error.to_string()), (-32001, "unknown_tool", "no tool a".into()));
    assert_eq!(error.data.unwrap().suggestions, ["b"]);
}

#[tokio::test]
async fn all_progress_is_there_though_nobody_took_it_in_time() {
    let (client, mut peer) = pair();
    let mut call = client.execute(Execute { name: "t".into(), progress: true, ..Execute::default() }).unwrap();
    let request = peer.request().await;
    let call_id = &request["params"]["call_id"];
    assert_eq!(call_id, call.id().as_str());
    for seq in 0..5000 {
        peer.send(progress(call_id, seq)).await;
    }
    peer.answer(&request, result(call_id)).await;
    for seq in 0..5000 {
        let item = call.progress().await.unwrap();
        assert_eq!((item.seq, item.progress), (seq, Progress::Message { text: format!("step {seq}") }));
    }
    assert_eq!(call.progress().await, None);
    assert_eq!(call.answer().await.unwrap().text(), "done");
}

#[tokio::test]
async fn progress_goes_to_its_own_call() {
    let (client, mut peer) = pair();
    let execute = || Execute { name: "t".into(), progress: true, ..Execute::default() };
    let mut a = client.execute(execute()).unwrap();
    let request_a = peer.request().await;
    let mut b = client.execute(execute()).unwrap();
    let request_b = peer.request().await;
    peer.send(progress(&request_b["params"]["call_id"], 0)).await;
    peer.send(progress(&json!("unknown"), 0)).await;
    peer.answer(&request_a, result(&request_a["params"]["call_id"])).await;
    peer.answer(&request_b, result(&request_b["params"]["call_id"])).await;
    assert_eq!(a.progress().await, None);
    assert_eq!(b.progress().await.unwrap().seq, 0);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (client, mut peer) = pair();
    let call = client.execute(Execute { name: "t".into(), ..Execute::default() }).unwrap();
    let request = peer.request().await;
    drop(call);
    let cancel = peer.request().await;
    assert_eq!(cancel["method"], "tools.cancel");
    assert_eq!(cancel["params"]["call_id"], request["params"]["call_id"]);
}

#[tokio::test]
async fn a_call_id_in_flight_is_refused() {
    let (client, mut peer) = pair();
    let execute = || Execute { name: "t".into(), call_id: CallId::parse("mine").ok(), ..Execute::default() };
    let call = client.execute(execute()).unwrap();
    assert!(matches!(client.execute(execute()), Err(ClientError::CallIdInUse(id)) if id == "mine"));
    let request = peer.request().await;
    peer.answer(&request, result(&json!("mine"))).await;
    call.answer().await.unwrap();
    client.execute(execute()).unwrap();
}

#[tokio::test]
async fn items_right_behind_the_answer_are_not_lost() {
    let (client, mut peer) = pair();
    let kept = client.clone();
    let items = tokio::spawn(async move { client.subscribe::<EventsSubscribe>(SubscribeEvents::default()).await });
    let request = peer.request().await;
    peer.answer(&request, json!("s-1")).await;
    let event = |seq| json!({"seq": seq, "epoch": "e", "at": "2026-01-01T00:00:00Z", "kind": "plugin.unloaded", "plugin": "p", "path": "/p"});
    for seq in 0..3 {
        let params = json!({"subscription": "s-1", "result": event(seq)});
        peer.send(json!({"jsonrpc": "2.0", "method": "events.event", "params": params})).await;
    }
    let params = json!({"subscription": "s-1", "result": {"kind": "of the future"}});
    peer.send(json!({"jsonrpc": "2.0", "method": "events.event", "params": params})).await;
    let mut items = items.await.unwrap().unwrap();
    for seq in 0..3 {
        assert_eq!(items.next().await.unwrap().unwrap().seq, seq);
    }
    assert!(matches!(items.next().await, Some(Err(ClientError::BadAnswer(_)))));
    drop(items);
    let end = peer.request().await;
    assert_eq!((&end["method"], &end["params"]), (&json!("events.unsubscribe"), &json!({"subscription": "s-1"})));
    drop(kept);
}

#[tokio::test]
async fn lost_connection_ends_calls_in_flight() {
    let (client, mut peer) = pair();
    let mut call = client.execute(Execute { name: "t".into(), ..Execute::default() }).unwrap();
    peer.request().await;
    drop(peer);
    assert_eq!(call.progress().await, None);
    let error = call.answer().await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(client.closed().await.is_unreachable());
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let (client, mut peer) = pair();
    let execute = Execute { name: "t".into(), arguments: json!({"x": "y".repeat(17 << 20)}), ..Execute::default() };
    let error = client.execute(execute).unwrap().answer().await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { .. }), "{error}");
    let ping = tokio::spawn(async move { client.call::<DaemonPing>(NoParams {}).await });
    let request = peer.request().await;
    peer.answer(&request, json!({})).await;
    ping.await.unwrap().unwrap();
}
