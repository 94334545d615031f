//! Resources, prompts and completion of mounted MCP servers, as clients of both eras get them. The server of these tests is
//! `mcp/offering.py`.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"s/*\"\naction = \"allow\"\n";
/// The options for a server of each revision.
const SERVERS: [&[&str]; 2] = [&[], &["--modern"]];

fn server(name: &str, options: &[&str], more: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/offering.py").display().to_string();
    let args: Vec<String> = std::iter::once(program).chain(options.iter().map(|text| text.to_string())).collect();
    format!("[mcp.servers.{name}]\ncommand = \"python3\"\nargs = {}\n{more}\n", json!(args))
}

fn mounted_with(rules: &str, options: &[&str], more: &str) -> TestDaemon {
    let daemon = Setup::new().config(&(rules.to_owned() + &server("s", options, more))).start();
    let mut wire = daemon.connect();
    until("its tools are listed", || wire.call("tools.schema", json!({"name": "s_echo"})).get("result").map(|_| ()));
    daemon
}

fn mounted(options: &[&str]) -> TestDaemon {
    mounted_with(ALLOW, options, "")
}

/// A client of one of the two eras.
struct EraClient {
    wire: Wire,
    modern: bool,
    cwd: std::path::PathBuf,
}

impl EraClient {
    fn old(daemon: &TestDaemon) -> Self {
        let mut wire = Wire::connect(&daemon.socket());
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "old", "version": "1"}, "_meta": {"toold/default-cwd": daemon.work()},
        });
        wire.result("initialize", hello);
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        Self { wire, modern: false, cwd: daemon.work() }
    }

    fn modern(daemon: &TestDaemon) -> Self {
        Self { wire: Wire::connect(&daemon.socket()), modern: true, cwd: daemon.work() }
    }

    fn params(&self, mut params: Value) -> Value {
        if self.modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "new", "version": "1"});
            params["_meta"]["toold/cwd"] = json!(self.cwd);
        }
        params
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        let params = self.params(params);
        self.wire.request(method, params)
    }

    #[track_caller]
    fn result(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        self.wire.result(method, params)
    }

    #[track_caller]
    fn error(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        self.wire.error(method, params)
    }

    #[track_caller]
    fn read(&mut self, uri: &str) -> Value {
        self.result("resources/read", json!({"uri": uri}))["contents"][0].take()
    }

    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Begins to listen, and returns the request that does.
    fn listen(&mut self, notifications: Value) -> u64 {
        let id = self.request("subscriptions/listen", json!({"notifications": notifications}));
        self.wire.notification("notifications/subscriptions/acknowledged");
        id
    }

    /// The resource of the next notification that one has changed.
    #[track_caller]
    fn updated(&mut self) -> Value {
        self.wire.notification("notifications/resources/updated")["uri"].take()
    }
}

fn both(daemon: &TestDaemon) -> [EraClient; 2] {
    [EraClient::old(daemon), EraClient::modern(daemon)]
}

/// The entry of a list whose member has this value.
fn find<'l>(list: &'l Value, of: &str, member: &str, value: &str) -> &'l Value {
    let all = list[of].as_array().unwrap();
    all.iter().find(|entry| entry[member] == value).unwrap_or_else(|| panic!("{value} is not in {list}"))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The resources whose changes the server is asked to report.
fn watched(wire: &mut Wire) -> Vec<String> {
    serde_json::from_str(text(&wire.tool("s_watched", json!({})))).unwrap()
}

#[test]
fn resources_prompts_and_completions_of_servers_of_both_eras_reach_clients_of_both_eras() {
    for options in SERVERS {
        let daemon = mounted(options);
        for mut client in both(&daemon) {
            let resources = client.result("resources/list", json!({}));
            let all = find(&resources, "resources", "uri", "note://all");
            assert_eq!(
                (&all["name"], &all["title"], &all["description"], &all["mimeType"], &all["size"]),
                (&json!("all"), &json!("All notes"), &json!("Each note"), &json!("text/plain"), &json!(7))
            );
            assert_eq!(find(&resources, "resources", "uri", "bin://data")["annotations"], json!({"priority": 0.5}));
            let templates = client.result("resources/templates/list", json!({}));
            assert_eq!(find(&templates, "resourceTemplates", "uriTemplate", "note://{id}")["description"], "One note");
            find(&templates, "resourceTemplates", "uriTemplate", "db://{table}{/row*}");
            for uri in ["note://all", "note://7", "db://people/7/8"] {
                let read = json!({"uri": uri, "mimeType": "text/plain", "text": format!("{uri} as read")});
                assert_eq!(client.read(uri), read);
            }
            assert_eq!(client.read("bin://data")["blob"], "AAEC");
            let missing = client.error("resources/read", json!({"uri": "note://missing"}));
            assert_eq!(missing["code"], if client.modern { -32602 } else { -32002 }, "{missing}");
            let huge = client.error("resources/read", json!({"uri": "note://huge"}));
            assert!(huge["message"].as_str().unwrap().contains("bytes"), "{huge}");

            let prompts = client.result("prompts/list", json!({}));
            let greet = find(&prompts, "prompts", "name", "s_greet");
            assert_eq!((&greet["title"], &greet["arguments"][0]["required"]), (&json!("Greet"), &json!(true)));
            let arguments = json!({"name": "Ann", "style": "formal"});
            let prompt = client.result("prompts/get", json!({"name": "s_greet", "arguments": arguments}));
            assert_eq!(prompt["description"], "A greeting");
            assert_eq!(prompt["messages"][0]["content"]["text"], "hello Ann, formal");
            assert_eq!(prompt["messages"][1]["content"]["resource"]["_meta"]["ui"]["prefersBorder"], true, "{prompt}");
            assert_eq!(client.error("prompts/get", json!({"name": "s_greet"}))["code"], -32602);

            let of = json!({"type": "ref/prompt", "name": "s_greet"});
            let argument = json!({"name": "style", "value": "f"});
            let completed = client.result("completion/complete", json!({"ref": of, "argument": argument}));
            assert_eq!(completed["completion"]["values"], json!(["formal", "friendly"]), "{completed}");
            let of = json!({"type": "ref/resource", "uri": "note://{id}"});
            let (argument, given) = (json!({"name": "id", "value": "a"}), json!({"arguments": {"other": "x"}}));
            let params = json!({"ref": of, "argument": argument, "context": given});
            let completed = client.result("completion/complete", params);
            assert_eq!(completed["completion"]["values"], json!(["a1", "a2", "other"]), "{completed}");
        }
    }
}

#[test]
fn user_interfaces_of_tools_pass_unchanged() {
    let meta = json!({"ui": {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": true}});
    for options in SERVERS {
        let daemon = mounted(options);
        for mut client in both(&daemon) {
            let resources = client.result("resources/list", json!({}));
            let panel =
                json!({"uri": "ui://panel", "name": "panel", "mimeType": "text/html;profile=mcp-app", "_meta": meta});
            assert_eq!(*find(&resources, "resources", "uri", "ui://panel"), panel);
            let html = json!({"uri": "ui://panel", "mimeType": "text/html;profile=mcp-app", "text": "<b>x</b>", "_meta": meta});
            assert_eq!(client.read("ui://panel"), html);
            let tools = client.result("tools/list", json!({}));
            let show = find(&tools, "tools", "name", "s_show");
            assert_eq!(
                show["_meta"]["ui"],
                json!({"resourceUri": "ui://panel", "visibility": ["model", "app"]}),
                "{show}"
            );
            // Which tools a client loads is decided here.
            assert_eq!(show["_meta"].get("anthropic/alwaysLoad"), None);
            let shown = client.call("s_show", json!({}));
            assert_eq!(
                (&shown["structuredContent"], &shown["_meta"]["panel"]),
                (&json!({"n": 1}), &json!("a")),
                "{shown}"
            );
        }
    }
}

#[test]
fn a_resource_that_a_result_links_to_can_be_read() {
    let daemon = mounted(&[]);
    for mut client in both(&daemon) {
        let unknown = client.error("resources/read", json!({"uri": "doc://unlisted/1"}));
        assert!(unknown["message"].as_str().unwrap().contains("no resource"), "{unknown}");
        let linked = client.call("s_link", json!({}));
        let link = json!({
            "type": "resource_link", "uri": "doc://unlisted/1", "name": "Report", "description": "All of it",
            "mimeType": "text/plain",
        });
        assert_eq!(linked["content"][0], link);
        assert_eq!(client.read("doc://unlisted/1")["text"], "doc://unlisted/1 as read");
    }
    let of_tool = daemon.connect().tool("s_link", json!({}));
    let block = json!({
        "type": "resource", "uri": "doc://unlisted/1", "name": "Report", "description": "All of it", "mime_type": "text/plain",
    });
    assert_eq!(of_tool["content"][0], block);
}

#[test]
fn a_change_of_a_resource_reaches_those_that_subscribed_to_it_and_nobody_else() {
    for options in SERVERS {
        let daemon = mounted(options);
        let mut tools = daemon.connect();
        let touch =
            |tools: &mut Wire, uri: &str| assert_eq!(text(&tools.tool("s_touch", json!({"uri": uri}))), "touched");
        assert_eq!(watched(&mut tools), Vec::<String>::new());
        let (mut all, mut one) = (EraClient::old(&daemon), EraClient::old(&daemon));
        all.result("resources/subscribe", json!({"uri": "note://all"}));
        one.result("resources/subscribe", json!({"uri": "note://1"}));
        // Before the answer, the server has been asked.
        assert_eq!(watched(&mut tools), ["note://1", "note://all"]);
        let mut modern = EraClient::modern(&daemon);
        let listens = modern.listen(json!({"resourceSubscriptions": ["note://all", "note://2"]}));
        until("its resources are watched", || (watched(&mut tools).len() == 3).then_some(()));
        touch(&mut tools, "note://all");
        assert_eq!((all.updated(), modern.updated()), (json!("note://all"), json!("note://all")));
        for uri in ["note://other", "note://1", "note://2"] {
            touch(&mut tools, uri);
        }
        // The first notification of each client is of its own resource.
        assert_eq!((one.updated(), modern.updated()), (json!("note://1"), json!("note://2")));
        all.result("resources/unsubscribe", json!({"uri": "note://all"}));
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listens}});
        modern.wire.send(&cancel);
        until("only one is watched", || (watched(&mut tools) == ["note://1"]).then_some(()));
        touch(&mut tools, "note://all");
        all.result("resources/subscribe", json!({"uri": "note://3"}));
        touch(&mut tools, "note://3");
        assert_eq!(all.updated(), "note://3");
        drop((all, one));
        until("nothing is watched", || watched(&mut tools).is_empty().then_some(()));
    }
}

#[test]
fn a_watched_server_is_not_stopped_for_being_idle_and_is_watched_again_after_a_restart() {
    for options in SERVERS {
        let daemon = mounted_with(ALLOW, options, "idle_timeout_ms = 200");
        let mut tools = daemon.connect();
        let mut client = EraClient::old(&daemon);
        client.result("resources/subscribe", json!({"uri": "note://all"}));
        let process = text(&tools.tool("s_where", json!({}))).to_owned();
        let before = std::time::Instant::now();
        until("it could have been stopped", || (before.elapsed().as_millis() > 600).then_some(()));
        assert_eq!(text(&tools.tool("s_where", json!({}))), process);
        tools.result("mcp.restart", json!({"name": "s"}));
        // It may have changed meanwhile.
        assert_eq!(client.updated(), "note://all");
        until("it is watched again", || (watched(&mut tools) == ["note://all"]).then_some(()));
        assert_ne!(text(&tools.tool("s_where", json!({}))), process);
        tools.tool("s_touch", json!({"uri": "note://all"}));
        assert_eq!(client.updated(), "note://all");
        client.result("resources/unsubscribe", json!({"uri": "note://all"}));
        until("it is idle", || {
            let state = tools.result("mcp.servers", json!({}))["servers"][0]["state"].take();
            (state == "stopped").then_some(())
        });
    }
}

#[test]
fn with_a_process_for_each_session_a_change_reaches_the_session_of_the_process() {
    let daemon = mounted_with(ALLOW, &[], "scope = \"session\"");
    let (mut one, mut two) = (EraClient::old(&daemon), EraClient::old(&daemon));
    for client in [&mut one, &mut two] {
        client.result("resources/subscribe", json!({"uri": "note://all"}));
        client.result("resources/subscribe", json!({"uri": "note://last"}));
    }
    assert_ne!(text(&one.call("s_where", json!({}))), text(&two.call("s_where", json!({}))));
    one.call("s_touch", json!({"uri": "note://all"}));
    assert_eq!(one.updated(), "note://all");
    two.call("s_touch", json!({"uri": "note://last"}));
    assert_eq!(two.updated(), "note://last");
}

#[test]
fn clients_hear_that_the_list_of_resources_changed() {
    for options in SERVERS {
        let daemon = mounted(options);
        let [mut old, mut modern] = both(&daemon);
        old.result("resources/list", json!({}));
        modern.listen(json!({"resourcesListChanged": true}));
        // A server of the newer era reports to subscribers only, and the daemon subscribes once it is connected.
        let mut tools = daemon.connect();
        let mut n = 0;
        until("the change is seen", || {
            n += 1;
            tools.tool("s_add", json!({"uri": format!("late://{n}")}));
            let listed = old.result("resources/list", json!({}));
            listed.to_string().contains("late://").then_some(())
        });
        old.wire.notification("notifications/resources/list_changed");
        modern.wire.notification("notifications/resources/list_changed");
    }
}

#[test]
fn reading_and_rendering_need_permission_and_nobody_is_asked_while_somebody_types() {
    let rule = |pattern: &str, action: &str| {
        format!("[[permission.rules]]\ncategory = \"mcp\"\npattern = \"{pattern}\"\naction = \"{action}\"\n")
    };
    let denied = rule("s/resource/bin://*", "deny") + &rule("s/prompt/*", "deny");
    let rules = denied + &rule("s/resource/note://*", "allow") + &rule("s/watched", "allow");
    let daemon = mounted_with(&rules, &[], "");
    let mut tools = daemon.connect();
    tools.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    for mut client in both(&daemon) {
        // Lists need none.
        assert!(client.result("resources/list", json!({})).to_string().contains("bin://data"));
        assert_eq!(client.read("note://7")["text"], "note://7 as read");
        let event = tools.notification("events.event");
        assert_eq!(event["result"]["tool"], "resource_s_note", "{event}");
        let refused = client.error("resources/read", json!({"uri": "bin://data"}));
        assert!(refused["message"].as_str().unwrap().contains("mcp s/resource/bin://data"), "{refused}");
        tools.notification("events.event");
        let refused = client.error("prompts/get", json!({"name": "s_greet", "arguments": {"name": "x"}}));
        assert!(refused["message"].as_str().unwrap().contains("mcp s/prompt/greet"), "{refused}");
        tools.notification("events.event");
        for (of, argument, values) in [
            (json!({"type": "ref/prompt", "name": "s_greet"}), "style", json!([])),
            (json!({"type": "ref/resource", "uri": "note://{id}"}), "id", json!(["1", "2"])),
        ] {
            let params = json!({"ref": of, "argument": {"name": argument, "value": ""}});
            assert_eq!(client.result("completion/complete", params)["completion"]["values"], values, "{of}");
            tools.notification("events.event");
        }
    }
    let mut client = EraClient::old(&daemon);
    let refused = client.error("resources/subscribe", json!({"uri": "bin://data"}));
    assert!(refused["message"].as_str().unwrap().contains("not allowed"), "{refused}");
    let mut modern = EraClient::modern(&daemon);
    modern.listen(json!({"resourceSubscriptions": ["bin://data", "note://1"]}));
    until("the allowed one is watched", || (watched(&mut tools) == ["note://1"]).then_some(()));
}

#[test]
fn offers_are_listed_before_their_server_runs() {
    let mut daemon = mounted(&[]);
    assert_eq!(EraClient::old(&daemon).read("note://1")["text"], "note://1 as read");
    daemon.restart("TERM");
    let mut client = EraClient::modern(&daemon);
    let starts = |wire: &mut Wire| wire.result("mcp.servers", json!({}))["servers"][0]["starts"].take();
    find(&client.result("resources/list", json!({})), "resources", "uri", "note://all");
    find(&client.result("prompts/list", json!({})), "prompts", "name", "s_greet");
    assert_eq!(starts(&mut daemon.connect()), 0);
    assert_eq!(client.read("note://1")["text"], "note://1 as read");
    assert_eq!(starts(&mut daemon.connect()), 1);
}

#[test]
fn a_reader_that_hangs_dies_or_asks_is_treated_like_a_tool() {
    for options in SERVERS {
        let impatient = mounted_with(ALLOW, options, "timeout_ms = 500");
        let late = EraClient::old(&impatient).error("resources/read", json!({"uri": "note://hang"}));
        assert!(late["message"].as_str().unwrap().contains("time limit"), "{late}");
        let daemon = mounted(options);
        let mut client = EraClient::old(&daemon);
        let dead = client.error("resources/read", json!({"uri": "note://die"}));
        assert!(dead["message"].as_str().unwrap().contains("dying of a read"), "{dead}");
        assert_eq!(client.read("note://1")["text"], "note://1 as read");
        let asks = client.request("resources/read", json!({"uri": "note://ask"}));
        let asked = client.wire.next_message().unwrap();
        assert_eq!(asked["params"]["message"], "MCP server s asks: Which color?", "{asked}");
        let answer = json!({"action": "accept", "content": {"color": "red"}});
        client.wire.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        let read = client.wire.answer(asks);
        assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("red"), "{read}");
    }
}

#[test]
fn lists_that_misbehave_do_no_harm() {
    for (hostile, problems) in [
        ("endless", &["it lists more than 2000 resources"][..]),
        ("twice", &["note://all is listed twice", "the uri \"ab\"", "skill://greeting is not used"]),
        ("templates", &["x://{a is left out", "x://a is left out", "x://{|} is left out"]),
        ("mute", &["resources/list was not answered in time"]),
        ("errors", &["resources/list failed", "out of order"]),
    ] {
        for options in [&["--hostile", hostile][..], &["--hostile", hostile, "--modern"]] {
            let config = ALLOW.to_owned() + &server("s", options, "start_timeout_ms = 8000");
            let setup = Setup::new().config(&config);
            let skill = setup.path("config/toold/skills/greeting");
            std::fs::create_dir_all(&skill).unwrap();
            std::fs::write(skill.join("SKILL.md"), "---\nname: greeting\ndescription: Greets\n---\nSay hello.\n")
                .unwrap();
            let daemon = setup.start();
            let mut wire = daemon.connect();
            until("its tools are listed", || {
                wire.call("tools.schema", json!({"name": "s_echo"})).get("result").map(|_| ())
            });
            assert_eq!(text(&wire.tool("s_echo", json!({"text": "on"}))), "on");
            let shown = wire.result("mcp.servers", json!({}))["servers"][0]["problems"].to_string();
            for problem in problems.iter().chain(&["resource/note://all is left out", "prompt/greet is left out"]) {
                assert!(shown.contains(&problem.replace('"', "\\\"")), "{hostile}: {problem}: {shown}");
            }
            let mut client = EraClient::old(&daemon);
            let listed = client.result("resources/list", json!({}));
            assert!(listed["resources"].as_array().unwrap().len() <= 2_100, "{hostile}");
            assert!(listed.to_string().len() < 1 << 20, "{hostile}");
            find(&client.result("prompts/list", json!({})), "prompts", "name", "s_greet");
            if hostile == "twice" {
                assert_eq!(find(&listed, "resources", "uri", "note://all")["name"], "all");
                assert!(client.read("skill://greeting")["text"].as_str().unwrap().contains("Say hello"));
            }
        }
    }
}

#[test]
fn a_server_that_ends_while_it_lists_keeps_nobody_waiting() {
    let config = ALLOW.to_owned() + &server("gone", &["--hostile", "close"], "") + &server("s", &[], "");
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    until("the other server's tools are listed", || {
        wire.call("tools.schema", json!({"name": "s_echo"})).get("result").map(|_| ())
    });
    // They are listed after its tools.
    let mut client = EraClient::old(&daemon);
    until("the other server's templates are listed", || {
        let listed = client.result("resources/templates/list", json!({}));
        (listed["resourceTemplates"] != json!([])).then_some(())
    });
    // The one that ends may have listed the same template before.
    until("the other server's resource is read", || {
        let answer = client.wire.call("resources/read", json!({"uri": "note://1"}));
        (answer["result"]["contents"][0]["text"] == "note://1 as read").then_some(())
    });
    until("it has failed", || {
        let servers = wire.result("mcp.servers", json!({}));
        find(&servers, "servers", "name", "gone")["error"].as_str().map(|_| ())
    });
}
