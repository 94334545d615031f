//! Notifications about requests that wait: by a real command, a real server, and a real desktop bus.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok};
use toold_tests::{Browser, PATIENCE, Setup, TestDaemon, Wire, lasting_port, skip_uninstalled, toold, until};

/// A command that appends the title, the text and the link to a file.
fn command(setup: &Setup) -> String {
    let script = format!("printf '%s|%s|%s\\n' \"$@\" >> {}", setup.path("sent").display());
    format!("command = {}\n", json!(["sh", "-c", script, "sh", "{title}", "{text}", "{link}"]))
}

/// A daemon with this section, and the command.
fn telling(section: &str) -> TestDaemon {
    let setup = Setup::new();
    let config = format!("[permission]\nread_only_commands = \"ask\"\n[notify]\n{section}\n{}", command(&setup));
    setup.config(&config).start()
}

fn sent(daemon: &TestDaemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.setup.path("sent")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn subscribed(daemon: &TestDaemon) -> Wire {
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    person
}

/// A connection with a call of `bash` that asks, and the ask.
fn asking(daemon: &TestDaemon, person: &mut Wire, line: &str) -> (Wire, Value) {
    let mut caller = daemon.connect();
    caller.request("tools.execute", json!({"name": "bash", "arguments": {"command": line}}));
    let asked = loop {
        let event = person.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            break event["request"].clone();
        }
    };
    assert_eq!(asked["target"], line);
    (caller, asked)
}

fn deny(person: &mut Wire, ask: &Value) {
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
}

#[test]
fn command_reports_a_request_once_with_a_link_to_it() {
    let daemon = telling("after = \"20ms\"\nlink = \"https://desk.example:8443\"");
    let mut person = subscribed(&daemon);
    let (_caller, ask) = asking(&daemon, &mut person, "echo one");
    let first = until("the command has run", || sent(&daemon).first().cloned());
    let [title, text, link] = first.split('|').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(title, "toold: approval needed");
    assert!(text.starts_with("bash") && text.ends_with("needs approval (shell): echo one"), "{text}");
    assert_eq!(link, format!("https://desk.example:8443/page/#/decide/{}", ask["request_id"].as_str().unwrap()));
    // The next request is reported alone.
    let (_other, _) = asking(&daemon, &mut person, "echo two");
    let both = until("the next is reported", || Some(sent(&daemon)).filter(|sent| sent.len() > 1));
    assert!(both.len() == 2 && both[1].contains("(shell): echo two|"), "{both:?}");
}

#[test]
fn requests_that_still_wait_are_reported_together() {
    let daemon = telling("after = \"5s\"\ndetails = false");
    let mut person = subscribed(&daemon);
    let (_one, answered) = asking(&daemon, &mut person, "echo answered");
    deny(&mut person, &answered);
    let _waiting = [asking(&daemon, &mut person, "echo two"), asking(&daemon, &mut person, "echo three")];
    let first = until("the command has run", || sent(&daemon).first().cloned());
    assert!(first.starts_with("toold: 2 approvals needed|bash"), "{first}");
    assert!(!first.contains("echo") && first.ends_with('|'), "no details and no link: {first}");
}

#[test]
fn question_is_reported_and_failure_is_shown_until_the_next_success() {
    let setup = Setup::new();
    let program = setup.path("tell");
    let config = format!("[notify]\nafter = \"20ms\"\ncommand = [\"{}\", \"{{text}}\"]\n", program.display());
    let daemon = setup.config(&config).start();
    let mut person = daemon.connect();
    person.result("questions.subscribe", json!({}));
    let mut caller = daemon.connect();
    let question = json!({"question": "Which one?", "options": [{"label": "a"}, {"label": "b"}]});
    caller.request("tools.execute", json!({"name": "question", "arguments": question}));
    let problem = until("the failure is shown", || {
        let status = person.result("daemon.status", json!({}));
        let mut problems = status["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
        problems.find(|problem| problem.contains("notify")).map(str::to_owned)
    });
    assert!(problem.starts_with("notify.command: there is no program"), "{problem}");
    let failed = daemon.toolctl(&["notify", "test"]);
    assert_eq!(failed.status.code(), Some(3));
    let words = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(words.starts_with("command: not sent: there is no program"), "{words}");

    fs::write(&program, format!("#!/bin/sh\necho \"$1\" > {}\n", daemon.setup.path("sent").display())).unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let tried = daemon.toolctl(&["notify", "test"]);
    assert_eq!((tried.status.code(), String::from_utf8_lossy(&tried.stdout).as_ref()), (Some(0), "command: sent\n"));
    assert_eq!(sent(&daemon), ["This is a test of the section [notify]."]);
    assert!(person.result("daemon.status", json!({}))["problems"].is_null());
}

#[test]
fn request_waits_without_a_client_if_the_configuration_says_so() {
    let daemon = telling("after = \"20ms\"\nwait = true");
    let mut caller = daemon.connect();
    let call = caller.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo hi"}}));
    until("the command has run", || sent(&daemon).first().cloned());
    let mut person = daemon.connect();
    let ask = person.result("permissions.pending", json!({}))["asks"][0].take();
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(caller.answer(call)["result"]["content"][0]["text"], "hi\n");
}

#[test]
fn nothing_is_tried_without_a_configuration_and_errors_name_their_key() {
    let daemon = TestDaemon::start();
    let none = daemon.toolctl(&["notify", "test"]);
    assert_eq!(none.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no notifications are configured"));
    let wrong = "[notify]\nafter = \"soon\"\n";
    let checked = Setup::new().config(wrong).command(toold()).args(["config", "check"]).output().unwrap();
    let words = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(!checked.status.success() && words.contains("config.toml:2:9: notify.after: "), "{words}");
}

/// The first request to a server.
fn request(server: &ScriptedServer) -> String {
    until("a request", || server.requests().first().cloned())
}

#[test]
fn post_has_the_form_of_ntfy_and_no_details_by_default() {
    for (details, said) in [("", false), ("details = true\n", true)] {
        let ntfy = ScriptedServer::thread_of(ok("application/json", "{}"));
        let section = format!(
            "after = \"20ms\"\npost = \"{}\"\ntoken = \"tk_1\"\nlink = \"http://desk:1/page/\"\n{details}",
            ntfy.url("/topic")
        );
        let daemon = telling(&section);
        let mut person = subscribed(&daemon);
        let (_caller, ask) = asking(&daemon, &mut person, "echo one");
        let request = request(&ntfy);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let head: Vec<&str> = head.lines().collect();
        assert_eq!(head[0], "POST /topic HTTP/1.1");
        let click = format!("click: http://desk:1/page/#/decide/{}", ask["request_id"].as_str().unwrap());
        for header in ["title: toold: approval needed", "priority: high", "authorization: Bearer tk_1", &click] {
            assert!(head.contains(&header), "{header} in {head:?}");
        }
        assert!(body.contains("needs approval (shell)"), "{body}");
        assert_eq!(body.ends_with(": echo one"), said, "{body}");
        // The command stays on this machine.
        let local = until("the command has run", || sent(&daemon).first().cloned());
        assert!(local.contains(": echo one|"), "{local}");
    }
}

/// A server of ntfy that shows its topic to those with a token, or to everybody.
fn ntfy(shows_to_all: bool) -> ScriptedServer {
    ScriptedServer::start_thread(move |request| {
        let is_refused = request.starts_with("GET /topic/auth ") && !shows_to_all;
        let status = if is_refused { "403 Forbidden" } else { "200 OK" };
        vec![ServerStep::Send(answer(status, &[("Connection", "close")], "{}"))]
    })
}

/// A daemon whose page the phone can reach, which posts to this server, and asks about all commands.
fn pushing(ntfy: &ScriptedServer, section: &str) -> (TestDaemon, Browser) {
    let address = format!("127.0.0.1:{}", lasting_port());
    let config = format!(
        "[permission]\nread_only_commands = \"ask\"\n[page]\nlisten = \"{address}\"\n[notify]\nafter = \"20ms\"\n\
         post = \"{}\"\ntoken = \"tk_1\"\nlink = \"http://{address}\"\n{section}",
        ntfy.url("/topic")
    );
    (Setup::new().config(&config).start(), Browser { address, cookie: None })
}

/// The buttons of a notification.
struct Push(Vec<Value>);

impl Push {
    /// The next that was posted after `seen` others.
    fn next(ntfy: &ScriptedServer, seen: &mut usize) -> (Self, String) {
        let push = until("a notification", || {
            let mut posted = ntfy.requests().into_iter().filter(|request| request.starts_with("POST "));
            posted.nth(*seen)
        });
        *seen += 1;
        let (head, body) = push.split_once("\r\n\r\n").unwrap();
        let buttons = head.lines().find_map(|line| line.strip_prefix("actions: "));
        (Self(buttons.map_or_else(Vec::new, |buttons| serde_json::from_str(buttons).unwrap())), body.to_owned())
    }

    fn labels(&self) -> Vec<&str> {
        self.0.iter().map(|button| button["label"].as_str().unwrap()).collect()
    }

    /// As the app on a phone does it.
    fn press(&self, browser: &Browser, label: &str) -> (u16, String) {
        let button = self.0.iter().find(|button| button["label"] == label).unwrap();
        assert_eq!(button["url"], format!("http://{}/page/push", browser.address));
        let headers = [("Origin", "https://ntfy.sh"), ("Content-Type", "text/plain")];
        let answer =
            browser.send(button["method"].as_str().unwrap(), "/page/push", &headers, button["body"].as_str().unwrap());
        (answer.status, answer.text().trim().to_owned())
    }
}

/// The answer to the call that asked.
fn answered(caller: &mut Wire) -> Value {
    loop {
        let message = caller.next_message().unwrap();
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// The decision of the newest row of the audit log.
fn decision(person: &mut Wire) -> Value {
    person.result("audit.query", json!({"limit": 1}))["entries"][0]["decisions"][0].take()
}

#[test]
fn a_push_denies_and_opens_the_page() {
    let server = ntfy(true);
    let (daemon, phone) = pushing(&server, "");
    let mut person = subscribed(&daemon);
    let mut seen = 0;
    let (mut caller, ask) = asking(&daemon, &mut person, "echo one");
    let (push, _) = Push::next(&server, &mut seen);
    assert_eq!(push.labels(), ["Deny", "Open page"]);
    let link = format!("http://{}/page/#/decide/{}", phone.address, ask["request_id"].as_str().unwrap());
    assert_eq!((&push.0[1]["action"], &push.0[1]["url"]), (&json!("view"), &json!(link)));
    // A preview of the link presses nothing, and neither does a guess.
    assert_eq!(phone.get("/page/push").status, 405);
    assert_eq!(phone.post("/page/push", &[], "0123456789abcdef0123456789abcdef").status, 403);
    assert_eq!(push.press(&phone, "Deny"), (200, "denied".to_owned()));
    let refused = answered(&mut caller);
    assert!(refused.to_string().contains("the user said no"), "{refused}");
    let (status, words) = push.press(&phone, "Deny");
    assert_eq!(status, 409);
    assert!(words.contains("already answered: denied by push (once)"), "{words}");
    assert_eq!(decision(&mut person)["rule"], "answer of push (once)");
    assert!(
        String::from_utf8_lossy(&daemon.toolctl(&["audit", "--decisions"]).stdout).contains("push (once)"),
        "a person sees it"
    );
}

#[test]
fn requests_of_one_push_are_denied_together() {
    let server = ntfy(true);
    let (daemon, phone) = pushing(&server, "");
    let mut person = subscribed(&daemon);
    let waiting = [asking(&daemon, &mut person, "echo two"), asking(&daemon, &mut person, "echo three")];
    let mut seen = 0;
    let mut denied = 0;
    // Two that become due together are one notification; on a busy machine they may be two.
    while denied < waiting.len() {
        let (push, _) = Push::next(&server, &mut seen);
        let label = push.labels()[0].to_owned();
        assert_eq!(push.press(&phone, &label).0, 200, "{label}");
        denied += if label == "Deny all 2" { 2 } else { 1 };
    }
    for (mut caller, _) in waiting {
        assert!(answered(&mut caller).to_string().contains("the user said no"));
    }
}

#[test]
fn a_push_allows_once_where_only_the_person_reads_the_topic() {
    let server = ntfy(false);
    let (daemon, phone) = pushing(&server, "details = true\nallow = true\n");
    let mut person = subscribed(&daemon);
    let mut seen = 0;
    let (mut caller, _) = asking(&daemon, &mut person, "echo hi");
    let (push, body) = Push::next(&server, &mut seen);
    assert!(body.contains(" in /") && body.ends_with("(shell): echo hi"), "what is allowed is seen: {body}");
    assert_eq!(push.labels(), ["Allow once", "Deny", "Open page"]);
    assert_eq!(push.press(&phone, "Allow once"), (200, "allowed once".to_owned()));
    assert_eq!(answered(&mut caller)["result"]["content"][0]["text"], "hi\n");
    assert_eq!(decision(&mut person)["rule"], "answer of push (once)");
    assert!(push.press(&phone, "Deny").1.contains("already answered: allowed by push (once)"));
    // It was allowed once.
    let (_caller, _) = asking(&daemon, &mut person, "echo hi");
}

/// What a rule has to name is never allowed from a phone, nor what does not say what it does.
#[test]
fn a_push_allows_nothing_grave_and_nothing_unknown() {
    let server = ntfy(false);
    let (daemon, _) = pushing(&server, "details = true\nallow = true\n");
    let mut person = subscribed(&daemon);
    let mut seen = 0;
    let mut effects = BTreeSet::new();
    for line in [
        "git push",
        "rm -rf /var/tmp/x",
        "sudo ls",
        "systemctl stop cron",
        "gh auth token",
        "no-such-program x",
        "python3 -c 'print(1)'",
        "eval \"$x\"",
    ] {
        let (_caller, ask) = asking(&daemon, &mut person, line);
        effects
            .extend(ask["effects"].as_array().into_iter().flatten().map(|effect| effect.as_str().unwrap().to_owned()));
        let (push, _) = Push::next(&server, &mut seen);
        assert_eq!(push.labels(), ["Deny", "Open page"], "{ask}");
        deny(&mut person, &ask);
    }
    for effect in ["publish", "destroy", "privilege", "system", "secret"] {
        assert!(effects.contains(effect), "{effect} was not tried: {effects:?}");
    }
}

#[test]
fn a_topic_that_everybody_reads_has_no_button_that_allows() {
    let server = ntfy(true);
    let (daemon, _) = pushing(&server, "details = true\nallow = true\n");
    let mut person = subscribed(&daemon);
    let mut seen = 0;
    let (_caller, _) = asking(&daemon, &mut person, "echo hi");
    assert_eq!(Push::next(&server, &mut seen).0.labels(), ["Deny", "Open page"]);
    let problems = person.result("daemon.status", json!({}))["problems"].to_string();
    assert!(problems.contains("notify.allow: everybody can read the topic"), "{problems}");
    assert_eq!(daemon.toolctl(&["notify", "test"]).status.code(), Some(0));
    let (test, body) = Push::next(&server, &mut seen);
    assert_eq!(test.labels(), ["Open page"]);
    assert!(body.contains("no button that allows them: everybody can read the topic"), "{body}");
}

#[test]
fn refusal_of_a_server_and_a_redirect_are_failures() {
    let elsewhere = ScriptedServer::thread_of(ok("text/plain", ""));
    let location = elsewhere.url("/");
    let redirects = answer("307 Temporary Redirect", &[("Location", &location), ("Connection", "close")], "");
    for (bytes, words) in
        [(answer("403 Forbidden", &[("Connection", "close")], "no"), "answers 403: no"), (redirects, "redirects")]
    {
        let ntfy = ScriptedServer::thread_of(bytes);
        let daemon = telling(&format!("post = \"{}\"", ntfy.url("/topic")));
        let report = daemon.connect().result("notify.test", json!({}));
        assert_eq!(report["results"][0], json!({"way": "command"}));
        assert!(report["results"][1]["error"].as_str().is_some_and(|error| error.contains(words)), "{report}");
    }
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

/// A session bus of a test's own.
struct SessionBus(Child);

impl SessionBus {
    fn start(setup: &Setup) -> Option<(Self, String)> {
        let address = format!("unix:path={}", setup.path("bus").display());
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--nopidfile", "--address", &address]).stderr(Stdio::null());
        let bus = Self(bus.spawn().ok()?);
        until("the bus listens", || setup.path("bus").exists().then_some(()));
        Some((bus, address))
    }
}

impl Drop for SessionBus {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The part of a desktop that shows notifications.
struct DesktopShell(Sender<(String, String)>);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl DesktopShell {
    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".to_owned(), "body-markup".to_owned()]
    }

    #[expect(clippy::too_many_arguments, reason = "the interface has them")]
    fn notify(
        &self,
        _application: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, zbus::zvariant::OwnedValue>,
        _expires: i32,
    ) -> u32 {
        let _ = self.0.send((summary, body));
        1
    }
}

#[test]
fn desktop_shows_a_notification_in_which_nothing_is_markup() {
    let setup = Setup::new();
    let Some((_bus, address)) = SessionBus::start(&setup) else { return skip_uninstalled("dbus-daemon") };
    let (shown, seen): (_, Receiver<(String, String)>) = channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = "[permission]\nread_only_commands = \"ask\"\n[notify]\nafter = \"20ms\"\ndesktop = true\n";
    let daemon = setup.config(config).start_by(|setup| {
        let mut command = setup.command(toold());
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        command
    });
    let report = daemon.connect().result("notify.test", json!({}));
    assert!(
        report["results"][0]["error"].as_str().is_some_and(|error| error.contains("a desktop notification")),
        "{report}"
    );

    let desktop = runtime.block_on(async {
        let bus = zbus::connection::Builder::address(address.as_str()).unwrap();
        let bus = bus.serve_at("/org/freedesktop/Notifications", DesktopShell(shown)).unwrap();
        bus.name("org.freedesktop.Notifications").unwrap().build().await.unwrap()
    });
    let mut person = subscribed(&daemon);
    let (_caller, _) = asking(&daemon, &mut person, "echo '<b>x</b>'");
    let (summary, body) = seen.recv_timeout(PATIENCE).unwrap();
    assert_eq!(summary, "toold: approval needed");
    assert!(body.ends_with("needs approval (shell): echo '&lt;b&gt;x&lt;/b&gt;'"), "{body}");
    drop(desktop);
}
