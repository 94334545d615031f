//! The tasks extension of MCP: long calls, and clients that poll for their results.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const PLUGIN: &str = r#"
local function tool(name, task, execute)
  hygge.register_tool{
    name = name, description = "Waits", permission = false, parallelizable = true,
    annotations = {task = task}, execute = execute,
  }
end
-- Goes on when the file is there.
local function wait(ctx)
  ctx.progress("waiting for go")
  while not hygge.fs.exists("go") do hygge.sleep("10ms") end
  return "gone"
end
tool("job", "optional", wait)
tool("always", "required", function() return "at once" end)
tool("quiet", nil, wait)
tool("quick", nil, function() return "quick" end)
tool("ask", "required", function(ctx)
  local schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}}
  local answer = ctx.elicit{key = "who", message = "Who?", schema = schema}
  return answer.action == "accept" and "hello " .. answer.content.name or answer.action
end)
tool("roots", "required", function(ctx) return #ctx.roots() end)
"#;

/// A daemon with a folder that a person has opened.
fn daemon(config: &str) -> TestDaemon {
    let daemon = Setup::new().config(config).plugin("jobs.lua", PLUGIN).start();
    daemon.connect();
    daemon
}

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The params of a stateless request of a client that takes tasks and shows forms.
fn taking(daemon: &TestDaemon, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "trusted", "version": "1"},
        "toold/cwd": daemon.work(),
    });
    params
}

/// The same of one that does not.
fn plain(daemon: &TestDaemon, params: Value) -> Value {
    let mut params = taking(daemon, params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

struct TaskClient<'a> {
    daemon: &'a TestDaemon,
    wire: Wire,
}

impl<'a> TaskClient<'a> {
    fn of(daemon: &'a TestDaemon) -> Self {
        Self { daemon, wire: Wire::connect(&daemon.socket()) }
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        self.wire.result(method, taking(self.daemon, params))
    }

    /// Calls a tool, which must become a task; gives its id.
    #[track_caller]
    fn task(&mut self, name: &str, arguments: Value) -> String {
        let task = self.result("tools/call", call(name, arguments));
        assert_eq!(task["resultType"], "task", "{task}");
        assert!(task["ttlMs"].as_u64().unwrap() >= 600_000 && task["pollIntervalMs"].is_u64(), "{task}");
        assert!(task.get("result").is_none() && task.get("inputRequests").is_none(), "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    fn get(&mut self, task: &str) -> Value {
        self.result("tasks/get", json!({"taskId": task}))
    }

    #[track_caller]
    fn in_state(&mut self, task: &str, status: &str) -> Value {
        until(status, || Some(self.get(task)).filter(|task_state| task_state["status"] == status))
    }

    fn update(&mut self, task: &str, responses: Value) {
        let done = self.result("tasks/update", json!({"taskId": task, "inputResponses": responses}));
        assert_eq!(done, json!({"resultType": "complete"}));
    }

    fn cancel(&mut self, task: &str) {
        let done = self.result("tasks/cancel", json!({"taskId": task}));
        assert_eq!(done, json!({"resultType": "complete"}));
    }
}

fn go(daemon: &TestDaemon) {
    std::fs::write(daemon.work().join("go"), "").unwrap();
}

/// The only request of a task: its key and the request.
#[track_caller]
fn asked(task_state: &Value) -> (String, Value) {
    let requests = task_state["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{task_state}");
    let (key, request) = requests.iter().next().unwrap();
    (key.clone(), request.clone())
}

#[test]
fn a_call_that_takes_long_is_a_task_that_its_client_comes_back_for() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    let found = client.result("server/discover", json!({}));
    assert!(found["capabilities"]["extensions"][EXTENSION].is_object(), "{found}");
    let task = client.task("job", json!({}));
    let task_state = client.get(&task);
    assert_eq!(
        (&task_state["status"], &task_state["resultType"]),
        (&json!("working"), &json!("complete")),
        "{task_state}"
    );
    assert_eq!(
        until("its message", || client.get(&task)["statusMessage"].as_str().map(str::to_owned)),
        "waiting for go"
    );
    go(&daemon);
    let task_state = client.in_state(&task, "completed");
    assert_eq!(task_state["result"]["content"][0]["text"], "gone");
    // The state is final.
    client.cancel(&task);
    assert_eq!(client.get(&task)["status"], "completed");

    // It is a detached call of its session, like those of native frontends.
    let mut native = daemon.connect();
    let sessions = native.result("session.list", json!({}));
    let all = sessions["sessions"].as_array().unwrap();
    let own = &all.iter().find(|session| session["client"]["name"] == "trusted").unwrap()["session_id"];
    let calls = native.result("calls.list", json!({"session_id": own}));
    assert_eq!((&calls["calls"][0]["tool"], &calls["calls"][0]["state"]), (&json!("job"), &json!("finished")));
}

#[test]
fn short_call_is_no_task() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    let result = client.result("tools/call", call("quick", json!({})));
    assert_eq!((&result["resultType"], &result["content"][0]["text"]), (&json!("complete"), &json!("quick")));
}

#[test]
fn any_tool_is_a_task_once_it_takes_longer_than_is_usual() {
    let daemon = daemon("[mcp]\ntask_after_ms = 1\n");
    let mut client = TaskClient::of(&daemon);
    let task = client.task("quiet", json!({}));
    client.cancel(&task);
    let task_state = client.in_state(&task, "cancelled");
    assert!(task_state.get("result").is_none() && task_state.get("error").is_none(), "{task_state}");
    client.cancel(&task);
}

#[test]
fn client_without_tasks_waits_and_cannot_call_task_only_tools() {
    let daemon = daemon("[mcp]\ntask_after_ms = 1\n");
    let mut wire = Wire::connect(&daemon.socket());
    go(&daemon);
    let result = wire.result("tools/call", plain(&daemon, call("quiet", json!({}))));
    assert_eq!(result["content"][0]["text"], "gone");
    let refused = wire.error("tools/call", plain(&daemon, call("always", json!({}))));
    assert_eq!(refused["code"], -32021);
    assert!(refused["data"]["requiredCapabilities"]["extensions"][EXTENSION].is_object(), "{refused}");
    let refused = wire.error("tasks/get", plain(&daemon, json!({"taskId": "any"})));
    assert_eq!(refused["code"], -32021);

    // The older revisions have no extension that could be missing.
    let mut old = Wire::connect(&daemon.socket());
    let info = json!({"name": "old", "version": "1"});
    let answer = old.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {"extensions": {EXTENSION: {}}}, "clientInfo": info}),
    );
    assert!(answer["capabilities"].get("extensions").is_none(), "{answer}");
    old.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(old.result("tools/call", call("always", json!({})))["content"][0]["text"], "at once");
}

#[test]
fn a_task_asks_by_its_state_and_goes_on_with_the_answer() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    let task = client.task("ask", json!({}));
    let (key, request) = asked(&client.in_state(&task, "input_required"));
    assert_eq!((&request["method"], &request["params"]["message"]), (&json!("elicitation/create"), &json!("Who?")));
    client.update(&task, json!({"other": {"action": "accept"}}));
    assert_eq!(asked(&client.get(&task)).0, key);
    // An invalid answer prompts again with another key, because each key stands for one request.
    client.update(&task, json!({key.clone(): {"action": "accept", "content": {"name": 3}}}));
    let again = asked(&client.in_state(&task, "input_required")).0;
    assert_ne!(again, key);
    client.update(&task, json!({again: {"action": "accept", "content": {"name": "you"}}}));
    let task_state = client.in_state(&task, "completed");
    assert_eq!(task_state["result"]["content"][0]["text"], "hello you");
}

#[test]
fn permission_for_a_task_is_asked_of_all_and_the_first_answer_counts() {
    let allow =
        |pattern| format!("[[permission.rules]]\ncategory = \"shell\"\npattern = \"{pattern}\"\naction = \"allow\"\n");
    let mcp = "[mcp]\ntask_after_ms = 3000\n[mcp.clients.trusted]\napprove = true\n";
    let daemon = daemon(&[mcp, &allow("test *"), &allow("sleep *")].concat());
    let mut client = TaskClient::of(&daemon);
    let wanted = call("bash", json!({"command": "touch a; until test -e go; do sleep 0.05; done"}));
    // Before it is a task, it asks as it does without the extension. Nobody else can be asked yet.
    let asks = client.result("tools/call", wanted.clone());
    assert_eq!(asks["resultType"], "input_required", "{asks}");
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let request = person.result("permissions.pending", json!({}))["asks"][0]["request_id"].take();
    person.result("permissions.reply", json!({"request_id": request, "action": "allow"}));
    let mut again = wanted;
    again["requestState"] = asks["requestState"].clone();
    again["inputResponses"] = json!({});
    let result = client.result("tools/call", again);
    assert_eq!(result["resultType"], "task", "{result}");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    client.in_state(result["taskId"].as_str().unwrap(), "completed");
    assert!(daemon.work().join("a").exists());
}

#[test]
fn task_request_that_the_client_does_not_support_is_a_protocol_error() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    let task = client.task("roots", json!({}));
    let task_state = client.in_state(&task, "failed");
    assert_eq!(task_state["error"]["code"], -32021);
    assert!(task_state.get("result").is_none());
}

#[test]
fn an_unknown_task_is_reported_and_ids_are_not_guessed() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    let first = client.task("always", json!({}));
    let second = client.task("always", json!({}));
    assert!(first.len() == 32 && second.len() == 32 && first != second);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "nothing", "inputResponses": {}});
        assert_eq!(client.wire.error(method, taking(&daemon, params))["code"], -32602, "{method}");
    }
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.wire.error(method, taking(&daemon, json!({"taskId": first})))["code"], -32601, "{method}");
    }
}

#[test]
fn a_task_ends_with_the_stream_of_its_client() {
    let daemon = daemon("");
    let mut client = TaskClient::of(&daemon);
    client.task("job", json!({}));
    let mut native = daemon.connect();
    let mut running = || native.result("daemon.status", json!({}))["calls"]["in_flight"].as_u64();
    until("it runs", || running().filter(|count| *count == 1));
    drop(client);
    until("it ends", || running().filter(|count| *count == 0));
}
