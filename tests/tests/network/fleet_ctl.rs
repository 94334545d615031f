//! `toolctl fleet` on three machines, from the first command to the first call, with the NATS server's configuration that
//! it prints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Bus, NatsServer, Setup, TestDaemon, toolctl, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) return "hello from the build box" end,
}
"#;

fn run(setup: &Setup, arguments: &[&str]) -> Output {
    setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", shown(&output.stdout), shown(&output.stderr));
    shown(&output.stdout)
}

#[track_caller]
fn error(output: &Output, status: i32) -> String {
    assert_eq!(output.status.code(), Some(status), "{}{}", shown(&output.stdout), shown(&output.stderr));
    shown(&output.stderr)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a line that another command has printed, such as `toolctl fleet trust NAME KEY`.
#[track_caller]
fn run_printed(daemon: &TestDaemon, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words.first(), Some(&"toolctl"), "{line}");
    text(&daemon.toolctl(&words[1..]));
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// The file that a machine logs in with, where `broker-config` made it.
fn login(on: &Setup, machine: &str) -> PathBuf {
    on.path(&format!("state/toold/fleet/logins/{machine}.key"))
}

/// The same, copied to that machine as with scp.
fn copied_login(from: &Setup, machine: &str, to: &Setup) -> PathBuf {
    let target = to.path("login.key");
    fs::copy(login(from, machine), &target).unwrap();
    target
}

fn status(daemon: &TestDaemon) -> Value {
    serde_json::from_str(&text(&daemon.toolctl(&["fleet", "list", "--json"]))).unwrap()
}

#[track_caller]
fn wait_online(daemon: &TestDaemon, other: &str) {
    until(&format!("{other} is online"), || {
        let status = status(daemon);
        let found = status["daemons"].as_array()?.iter().find(|daemon| daemon["name"] == other)?;
        (found["state"] == "online").then_some(())
    });
}

#[test]
fn three_machines_form_a_fleet() {
    let (build, laptop, desk) = (Setup::new().plugin("hello.lua", PLUGIN), Setup::new(), Setup::new());
    let store = build.path("nats");
    let print = |machines: &[&str]| {
        let print = ["fleet", "broker-config", "--listen", "127.0.0.1:-1", "--store", store.to_str().unwrap()];
        run(&build, &[&print[..], machines].concat())
    };
    assert!(error(&print(&["build", "build"]), 2).contains("named twice"));
    assert!(error(&print(&["Build"]), 2).contains("lower-case letters"));
    let document: Value = serde_json::from_str(&text(&print(&["--json", "build"]))).unwrap();
    assert_eq!(document["logins"][0]["machine"], "build");
    assert!(document["configuration"].as_str().unwrap().contains("jetstream {"), "{document}");
    let printed = print(&["build", "laptop=anna", "desk=anna"]);
    let Some(nats) = NatsServer::start_configured(&text(&printed)) else { return };
    let login = login(&build, "build");
    assert_eq!(mode(&login), 0o600);
    assert!(shown(&printed.stderr).contains(login.to_str().unwrap()));
    let before = "# mine\n[mcp] # servers\n";
    let build = build.config(before);

    // The first machine.
    let init =
        ["fleet", "init", "build", "--server", &nats.url(), "--credentials", login.to_str().unwrap(), "--label", "gpu"];
    let invitation = text(&run(&build, &init));
    let config = fs::read_to_string(build.path("config/toold/config.toml")).unwrap();
    assert!(config.starts_with(before) && config.contains("[fleet]\nname = \"build\""), "{config}");
    assert_eq!(mode(&build.path("state/toold/fleet/daemon.key")), 0o600);
    assert!(error(&run(&build, &init), 2).contains("in a fleet already, as build"));
    let build = build.start();

    // The second one, which trusts what it is invited to, and is not trusted yet.
    let secret = copied_login(&build.setup, "laptop", &laptop);
    let join = |invitation: &str, name: &str, more: &[&str]| {
        let line = ["fleet", "join", invitation, name, "--credentials", secret.to_str().unwrap(), "--yes"];
        [&line[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let laptop_runs = |line: &[String]| run(&laptop, &line.iter().map(String::as_str).collect::<Vec<_>>());
    let cut = &invitation.trim()[..invitation.len() - 9];
    assert!(error(&laptop_runs(&join(cut, "laptop", &[])), 2).contains("not whole"));
    assert!(error(&laptop_runs(&join(&invitation, "build", &[])), 2).contains("has a daemon build already"));
    let printed = text(&laptop_runs(&join(&invitation, "laptop", &["--person", "anna"])));
    let laptop = laptop.start();
    let trust: Vec<&str> = printed.lines().filter(|line| line.starts_with("toolctl fleet trust")).collect();
    assert!(trust.len() == 2 && trust[1].ends_with("--person"), "{printed}");
    // The laptop sees that it is not trusted, and shows the command that `join` has printed.
    let distrust = "build does not trust this machine";
    let doctor = until("the laptop sees that it is not trusted", || {
        Some(shown(&laptop.toolctl(&["fleet", "doctor"]).stdout)).filter(|doctor| doctor.contains(distrust))
    });
    assert!(doctor.contains(&format!("run there: `{}`", trust[0])), "{doctor}");
    assert!(text(&laptop.toolctl(&["fleet"])).contains(distrust));
    text(&laptop.toolctl(&["permissions", "grant", "mcp", "fleet:build/**"]));
    until("the tools of the build box are listed", || {
        text(&laptop.toolctl(&["list"])).contains("build_hello").then_some(())
    });
    let refused = shown(&laptop.toolctl(&["call", "build_hello"]).stdout);
    assert!(refused.contains("build does not trust laptop: `toolctl fleet doctor` says"), "{refused}");
    for line in &trust {
        run_printed(&build, line);
        run_printed(&build, line);
    }
    wait_online(&build, "laptop");
    wait_online(&laptop, "build");

    // The third one, with the invitation of a machine that knows everybody; its person has a key already.
    let invitation: Value = serde_json::from_str(&text(&build.toolctl(&["fleet", "invite", "--json"]))).unwrap();
    let invitation = invitation["invitation"].as_str().unwrap().to_owned();
    let secret = copied_login(&build.setup, "desk", &desk);
    let join = [
        "fleet",
        "join",
        invitation.trim(),
        "desk",
        "--person",
        "anna",
        "--credentials",
        secret.to_str().unwrap(),
        "--yes",
    ];
    assert!(error(&run(&desk, &join), 2).contains("scp "));
    let key = desk.path("state/toold/fleet/person.key");
    fs::copy(build.setup.path("state/toold/fleet/daemon.key"), &key).unwrap();
    assert!(error(&run(&desk, &join), 3).contains("does not contain the private key of a person"));
    fs::copy(laptop.setup.path("state/toold/fleet/person.key"), &key).unwrap();
    let printed = text(&run(&desk, &join));
    let trust = printed.lines().find(|line| line.starts_with("toolctl fleet trust desk")).unwrap().to_owned();
    let desk = desk.start();
    run_printed(&build, &trust);
    run_printed(&laptop, &format!("{trust} --no-calls"));
    for (daemon, other) in [(&desk, "build"), (&desk, "laptop"), (&laptop, "desk"), (&build, "desk")] {
        wait_online(daemon, other);
    }

    let list = text(&laptop.toolctl(&["fleet"]));
    assert!(
        list.starts_with("laptop connected to nats://127.0.0.1") && list.contains(" build   online  gpu"),
        "{list}"
    );
    let labels = text(&laptop.toolctl(&["fleet", "labels"]));
    assert!(labels.contains(" gpu    build") && labels.contains("[fleet.use_labels.gpu]"), "{labels}");
    let doctor = text(&laptop.toolctl(&["fleet", "doctor"]));
    for found in ["of anna", "nats-server 2.", "logged in", "build is online", "desk is online"] {
        assert!(doctor.contains(found), "{found}\n{doctor}");
    }
    assert!(!doctor.contains("bad  "), "{doctor}");
    assert!(text(&laptop.toolctl(&["doctor"])).contains("2 of 2 other daemons online"));

    // A call on one machine is in the list of calls of another.
    text(&build.toolctl(&["call", "hello"]));
    until("the laptop shows the call on the build box", || {
        let list = text(&laptop.toolctl(&["audit", "--fleet", "--on", "build"]));
        list.lines().any(|line| line.contains(" build   hello  ok")).then_some(())
    });

    // The same name with another key is somebody else.
    let other = trust.split_whitespace().nth(4).unwrap();
    assert!(error(&laptop.toolctl(&["fleet", "trust", "build", other]), 2).contains("another key"));
    text(&build.toolctl(&["fleet", "forget", "laptop"]));
    assert!(error(&build.toolctl(&["fleet", "forget", "laptop"]), 5).contains("no daemon laptop"));
    let daemons = status(&build)["daemons"].clone();
    assert!(daemons.as_array().unwrap().iter().all(|daemon| daemon["name"] != "laptop"), "{daemons}");
    let config = fs::read_to_string(build.setup.path("config/toold/config.toml")).unwrap();
    assert!(config.starts_with(before) && config.contains("[fleet.daemons.desk]"), "{config}");
}

/// With the permissions that `broker-config` prints: everything that a fleet does works, and nobody reads what is for others.
#[test]
fn a_login_reaches_only_what_its_machine_needs() {
    let plugin = r#"
hygge.register_tool{
  name = "long", description = "Says much", permission = false,
  execute = function(ctx, input) return { content = ("x"):rep(#input.text), structured = { text = input.text } } end,
}
"#;
    let (build, laptop) = (Setup::new().plugin("long.lua", plugin), Setup::new());
    let store = build.path("nats");
    let print = ["fleet", "broker-config", "--listen", "127.0.0.1:-1", "--store", store.to_str().unwrap()];
    let printed = text(&run(&build, &[&print[..], &["build", "laptop=anna"]].concat()));
    let Some(nats) = NatsServer::start_configured(&printed) else { return };
    let login = login(&build, "build");
    let seed = |file: &Path| fs::read_to_string(file).unwrap().trim().to_owned();
    let (of_build, of_laptop) = (seed(&login), seed(&copied_login(&build, "laptop", &laptop)));
    let init = ["fleet", "init", "build", "--server", &nats.url(), "--credentials", login.to_str().unwrap()];
    let invitation = text(&run(&build, &init));
    let build = build.start();
    let secret = laptop.path("login.key");
    let join = ["fleet", "join", invitation.trim(), "laptop", "--person", "anna", "--credentials"];
    let joined = text(&run(&laptop, &[&join[..], &[secret.to_str().unwrap(), "--yes"]].concat()));
    for line in joined.lines().filter(|line| line.starts_with("toolctl fleet trust")) {
        run_printed(&build, line);
    }
    let laptop = laptop.start();
    text(&laptop.toolctl(&["permissions", "grant", "mcp", "fleet:build/**"]));
    wait_online(&laptop, "build");
    wait_online(&build, "laptop");

    // A call whose arguments and result exceed a message, and so are in the object store.
    let mut agent = laptop.connect();
    until("the tools of the build box are listed", || {
        let listed = agent.result("tools.list", json!({}));
        listed["tools"].as_array()?.iter().any(|tool| tool["name"] == "build_long").then_some(())
    });
    let much = "y".repeat(2 << 20);
    let result = agent.result("tools.execute", json!({"name": "build_long", "arguments": {"text": much}}));
    let arrived = result["structured"]["left_out_bytes"].as_u64();
    assert!(result["is_error"] == false && arrived.is_some_and(|bytes| bytes > 2 << 20), "{}", result["metadata"]);

    // An ask, which the person answers at the laptop; a grant of theirs; and the rows of both machines.
    let mut person = laptop.connect();
    person.result("permissions.subscribe", json!({}));
    let waiting =
        agent.request("tools.execute", json!({"name": "build_bash", "arguments": {"command": "touch made-1"}}));
    let ask = loop {
        let mut event = person.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            break event["request"].take();
        }
    };
    assert_eq!(ask["target"], "touch made-1", "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow", "scope": "once"}));
    assert_eq!(agent.answer(waiting)["result"]["is_error"], false);
    text(&laptop.toolctl(&["fleet", "grant", "shell", "touch *", "--on", "build"]));
    until("the grant is valid on the build box", || {
        let params = json!({"category": "shell", "target": "touch made-2"});
        (build.connect().result("permissions.check", params)["verdict"] == "allow").then_some(())
    });
    until("the laptop shows the call on the build box", || {
        let list = text(&laptop.toolctl(&["audit", "--fleet", "--on", "build"]));
        list.lines().any(|line| line.contains(" bash  ")).then_some(())
    });
    assert!(!text(&laptop.toolctl(&["fleet", "doctor"])).contains("iolation"));
    assert!(!shown(&build.toolctl(&["fleet", "doctor"]).stdout).contains("iolation"));

    let refused = |seed: &str, publish: &[&str], subscribe: &[&str]| {
        Bus::refused(&nats.url(), async_nats::ConnectOptions::new().nkey(seed.to_owned()), publish, subscribe)
    };
    // What the other machine receives, what everybody sends, and calls for a label outside of its group.
    for (seed, other) in [(&of_laptop, "build"), (&of_build, "laptop")] {
        let inbox = format!("_INBOX.{other}.>");
        let calls = format!("toold.{other}.>");
        let read =
            [">", "toold.>", &calls, &inbox, "_INBOX.>", "toold.any.*.call", "toold.answer.*.*", "$JS.>", "$KV.>"];
        // Subscriptions come first.
        let write = [
            &format!("$KV.toold_daemons.{other}"),
            &format!("$KV.toold_tools.{other}.bash"),
            &format!("toold.audit.{other}"),
            &format!("toold.ask.anna.{other}.1"),
            &format!("$JS.API.DIRECT.GET.TOOLD_AUDIT.toold.audit.{other}"),
            "$KV.toold_grants.bob.x",
            "$JS.API.STREAM.MSG.GET.TOOLD_AUDIT",
            "$JS.API.STREAM.MSG.GET.TOOLD_ASKS",
            "$JS.API.CONSUMER.CREATE.TOOLD_AUDIT",
            "$JS.API.CONSUMER.CREATE.TOOLD_ASKS",
            "$JS.API.CONSUMER.CREATE.TOOLD_ASKS.x.toold.ask.bob.>",
            "$JS.API.STREAM.CREATE.SPY",
            "$JS.API.STREAM.DELETE.TOOLD_AUDIT",
            "$JS.API.STREAM.PURGE.KV_toold_grants",
        ];
        assert_eq!(refused(seed, &write, &read), [&read[..], &write].concat());
    }
    // Without a person, no asks and no rows of others; and only the first machine sets up the streams.
    let of_persons = [
        "$KV.toold_grants.anna.x",
        "toold.answer.laptop.1",
        "$JS.API.CONSUMER.CREATE.TOOLD_ASKS.x.toold.ask.anna.>",
        "$JS.API.CONSUMER.CREATE.TOOLD_AUDIT.x.toold.audit.>",
    ];
    assert_eq!(refused(&of_build, &of_persons, &[]), of_persons);
    assert_eq!(refused(&of_laptop, &of_persons, &[]), [""; 0]);
    let set_up = ["$JS.API.STREAM.UPDATE.TOOLD_ASKS", "$JS.API.STREAM.CREATE.TOOLD_AUDIT"];
    assert_eq!(refused(&of_laptop, &set_up, &[]), set_up);
}

#[test]
fn a_machine_in_no_fleet_says_how_to_start_one() {
    let daemon = TestDaemon::start();
    let listed = daemon.toolctl(&["fleet"]);
    assert!(text(&listed).is_empty() && shown(&listed.stderr).contains("toolctl fleet init"));
    assert_eq!(status(&daemon)["configured"], false);
    assert!(shown(&daemon.toolctl(&["fleet", "doctor"]).stdout).contains("toolctl fleet init"));
    error(&daemon.toolctl(&["fleet", "doctor"]), 3);
    error(&daemon.toolctl(&["fleet", "invite"]), 5);
    let config = daemon.setup.path("config/toold/config.toml");
    let remote = ["fleet", "init", "desk", "--server", "nats://broker.example:4222"];
    let refused = error(&daemon.toolctl(&remote), 3);
    assert!(refused.contains("in_the_clear") && !config.exists(), "{refused}");
}
