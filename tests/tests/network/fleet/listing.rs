//! The tools of the fleet in every list.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use toold_tests::{FleetPlan, NatsServer, Proxy, Setup, TestDaemon, Wire, until};

use crate::fleet::status::status;

/// A plugin with one tool, as NAME.
fn plugin(name: &str, description: &str) -> String {
    format!(
        "hygge.register_tool{{name = {name:?}, label = \"Label\", description = {description:?}, permission = false, \
         annotations = {{read_only = true}}, input_schema = {{type = \"object\", properties = {{n = {{type = \
         \"number\"}}}}}}, output_schema = {{type = \"object\"}}, execute = function() return {{structured = {{}}}} end}}"
    )
}

/// Daemons that know each other, none of them running.
struct ListedFleet {
    nats: NatsServer,
    plan: FleetPlan,
}

impl ListedFleet {
    /// `None` without a NATS server, which is reported.
    fn new(daemons: &[&str]) -> Option<Self> {
        Some(Self { nats: NatsServer::start()?, plan: FleetPlan::new(daemons, &[]) })
    }

    fn setup(&self, name: &str, more: &str) -> Setup {
        Setup::new().config(&self.plan.config(name, &self.nats.url(), None, more))
    }
}

/// The tools whose names begin so, and their descriptions.
fn listed(daemon: &TestDaemon, prefix: &str) -> BTreeMap<String, String> {
    let list = Wire::connect(&daemon.socket()).result("tools.list", json!({"mode": "all"}))["tools"].take();
    let text = |tool: &Value, member: &str| tool[member].as_str().unwrap().to_owned();
    let of = |tool: &Value| (text(tool, "name"), text(tool, "description"));
    list.as_array().unwrap().iter().map(of).filter(|(name, _)| name.starts_with(prefix)).collect()
}

/// Waits until a tool is listed with a description that fits, and returns that.
#[track_caller]
fn until_listed(daemon: &TestDaemon, tool: &str, fits: impl Fn(&str) -> bool) -> String {
    until(&format!("{tool} is listed as expected"), || listed(daemon, tool).remove(tool).filter(|text| fits(text)))
}

/// Waits until all tools that a daemon offers are listed under this prefix, among them this one. They arrive one by one.
#[track_caller]
pub(crate) fn until_all_listed(daemon: &TestDaemon, of: &TestDaemon, prefix: &str, tool: &str) {
    until(&format!("all tools {prefix}* are listed"), || {
        let names = listed(daemon, prefix);
        let offered = status(&mut of.connect())["offered"].as_u64()?;
        (names.len() as u64 == offered && names.contains_key(&format!("{prefix}{tool}"))).then_some(())
    });
}

#[track_caller]
fn until_gone(daemon: &TestDaemon, tool: &str) {
    until(&format!("{tool} is no longer listed"), || listed(daemon, tool).is_empty().then_some(()));
}

fn is_there(description: &str) -> bool {
    !description.contains("calls fail")
}

fn is_away(description: &str) -> bool {
    description.ends_with("calls fail until it is back.")
}

#[test]
fn tools_of_daemons_and_labels_are_in_every_list() {
    let Some(fleet) = ListedFleet::new(&["laptop", "build", "farm"]) else { return };
    let more = "[fleet.use_labels.gpu]\n[fleet.use_labels.cpu]\n";
    let laptop = fleet.setup("laptop", more).plugin("own.lua", &plugin("own", "Stays here")).start();
    let gpu = "labels = [\"gpu\"]";
    let build = fleet.setup("build", gpu).plugin("train.lua", &plugin("train", "Trains")).start();
    let farm = fleet.setup("farm", gpu).plugin("render.lua", &plugin("render", "Renders")).start();

    let train = until_listed(&laptop, "build_train", is_there);
    assert_eq!(train, "Trains\n\nRuns on build, another machine: files and commands are those there.");
    until_listed(&laptop, "farm_render", is_there);
    let render = until_listed(&laptop, "gpu_render", is_there);
    assert_eq!(render, "Renders\n\nRuns on any machine with the label gpu: files and commands are those there.");
    until_listed(&laptop, "gpu_train", is_there);
    assert_eq!(listed(&laptop, "cpu_").len(), 0);

    let mut wire = laptop.connect();
    let tool = wire.result("tools.schema", json!({"name": "build_train"}));
    assert_eq!(tool["label"], "Label");
    assert_eq!(tool["input_schema"]["properties"]["n"]["type"], "number", "{tool}");
    assert_eq!(tool["output_schema"]["type"], "object");
    assert_eq!(tool["annotations"]["read_only"], true);
    assert_eq!(tool["source"], json!({"kind": "fleet", "name": "build"}));
    assert_eq!(tool["permissions"], json!(["mcp"]));

    let mut client = Wire::connect(&laptop.socket());
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"},
        "_meta": {"toold/default-cwd": laptop.work()},
    });
    client.result("initialize", params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let list = client.result("tools/list", json!({}));
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(
        ["build_train", "farm_render", "gpu_train", "gpu_read"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );

    // No tool goes around: neither back to its daemon nor through a second one.
    until_listed(&build, "laptop_own", is_there);
    until_listed(&build, "farm_render", is_there);
    for daemon in [&laptop, &build, &farm] {
        let names = listed(daemon, "");
        let doubled = |name: &&String| {
            let parts = ["laptop_", "build_", "farm_", "gpu_"].iter().filter(|part| name.contains(**part));
            parts.count() > 1
        };
        assert_eq!(names.keys().find(doubled), None);
    }
}

#[test]
fn changes_of_tools_arrive_and_withheld_tools_do_not() {
    let Some(fleet) = ListedFleet::new(&["laptop", "build"]) else { return };
    let laptop = fleet.setup("laptop", "").start();
    let offer = "offer = { deny = [\"secret*\", \"write\"] }";
    let setup = fleet.setup("build", offer).plugin("secret.lua", &plugin("secret_tool", "Hidden"));
    let build = setup.plugin("one.lua", &plugin("one", "First")).start();
    until_all_listed(&laptop, &build, "build_", "one");

    let mut events = laptop.connect();
    events.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    fs::write(build.plugins().join("two.lua"), plugin("two", "Second")).unwrap();
    let added = loop {
        let event = events.notification("events.event")["result"].take();
        if event["added"].as_array().is_some_and(|added| !added.is_empty()) {
            break event;
        }
    };
    assert_eq!((&added["added"], &added["removed"]), (&json!(["build_two"]), &json!([])), "{added}");
    fs::write(build.plugins().join("one.lua"), plugin("one", "Changed")).unwrap();
    until_listed(&laptop, "build_one", |text| text.starts_with("Changed\n"));
    fs::remove_file(build.plugins().join("two.lua")).unwrap();
    until_gone(&laptop, "build_two");

    let names = listed(&laptop, "build_");
    assert!(names.contains_key("build_read"), "{names:?}");
    assert!(!names.contains_key("build_secret_tool") && !names.contains_key("build_write"), "{names:?}");
    let error = laptop.connect().error("tools.execute", json!({"name": "build_secret_tool"}));
    assert_eq!(error["data"]["kind"], "unknown_tool", "{error}");
}

#[test]
fn a_daemon_that_went_is_marked_and_not_removed() {
    let Some(fleet) = ListedFleet::new(&["laptop", "build"]) else { return };
    let mut laptop = fleet.setup("laptop", "[fleet.use_labels.gpu]\n").start();
    let mut build = fleet.setup("build", "labels = [\"gpu\"]").plugin("one.lua", &plugin("one", "First")).start();
    until_listed(&laptop, "build_one", is_there);
    until_listed(&laptop, "gpu_one", is_there);
    let permissions = json!({"category": "mcp", "pattern": "fleet:build/*", "scope": "always"});
    laptop.connect().result("permissions.grant", permissions);

    // An orderly stop is known at once: a record that only expired would be there for a while yet.
    build.signal("TERM");
    build.wait();
    let description = until_listed(&laptop, "build_one", is_away);
    assert!(description.contains("\n\nbuild is away since 2"), "{description}");
    let label = until_listed(&laptop, "gpu_one", |text| !is_there(text));
    assert!(label.contains("\n\nNo machine with the label gpu is there since 2"), "{label}");
    let failed = laptop.connect().tool("build_one", json!({}));
    let text = failed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("build is away: last heard of ") && failed["is_error"] == true, "{failed}");

    // The tools are known after a restart, and so is the time.
    laptop.restart("TERM");
    let again = until_listed(&laptop, "build_one", is_away);
    assert_eq!(again, description);

    build.start_again();
    until_listed(&laptop, "build_one", is_there);
    until_listed(&laptop, "gpu_one", is_there);
    let grants = laptop.connect().result("permissions.list", json!({}));
    assert!(grants["grants"].to_string().contains("fleet:build/*"), "the mark revokes no grant: {grants}");

    // Nobody says that a killed daemon is gone.
    build.signal("KILL");
    build.wait();
    until_listed(&laptop, "build_one", is_away);
    build.start_again();
    until_listed(&laptop, "build_one", is_there);
}

#[test]
fn tools_stay_as_they_are_while_the_broker_restarts() {
    let Some(mut fleet) = ListedFleet::new(&["laptop", "build"]) else { return };
    let laptop = fleet.setup("laptop", "").start();
    let build = fleet.setup("build", "").plugin("one.lua", &plugin("one", "First")).start();
    until_all_listed(&laptop, &build, "build_", "one");
    let revision = |wire: &mut Wire| wire.result("tools.list", json!({"mode": "all"}))["revision"].as_u64().unwrap();
    let mut wire = laptop.connect();
    let before = revision(&mut wire);
    fleet.nats.kill();
    fleet.nats.start_again();
    // A change that arrives shows that the daemons are connected again.
    fs::write(build.plugins().join("two.lua"), plugin("two", "Second")).unwrap();
    until_listed(&laptop, "build_two", is_there);
    assert_eq!(revision(&mut wire), before + 1);
}

/// The record of another daemon counts until it expires, although its daemon does not renew it.
#[test]
fn a_daemon_that_restarts_sees_at_once_who_is_there() {
    let Some(fleet) = ListedFleet::new(&["laptop", "build"]) else { return };
    let mut laptop = fleet.setup("laptop", "").start();
    let build = fleet.setup("build", "").plugin("one.lua", &plugin("one", "First")).start();
    until_listed(&laptop, "build_one", is_there);
    build.signal("STOP");
    laptop.restart("TERM");
    until_listed(&laptop, "build_one", is_there);
    build.signal("CONT");
}

/// Reading the list takes far longer than the five seconds after which a quiet bucket counts as read.
#[test]
fn a_slow_network_loses_no_tools() {
    let Some(fleet) = ListedFleet::new(&["laptop", "build"]) else { return };
    let proxy = Proxy::start(fleet.nats.port());
    let laptop = Setup::new().config(&fleet.plan.config("laptop", &proxy.url(), None, "")).start();
    let many = r#"
        for n = 1, 200 do
          hygge.register_tool{name = "many" .. n, description = string.rep("many words ", 300), permission = false,
            execute = function() return "" end}
        end"#;
    let build = fleet.setup("build", "").plugin("many.lua", many).start();
    until("all are listed", || (listed(&laptop, "build_many").len() == 200).then_some(()));
    let mut wire = laptop.connect();
    let before = status(&mut wire)["since"].take();
    proxy.delay(Duration::from_millis(150));
    proxy.close();
    until("it is connected again", || {
        let status = status(&mut wire);
        (status["connected"] == true && status["since"] != before).then_some(())
    });
    // A change arrives after all that was there before.
    fs::write(build.plugins().join("last.lua"), plugin("last", "The last one")).unwrap();
    until_listed(&laptop, "build_last", is_there);
    assert_eq!(listed(&laptop, "build_many").len(), 200);
    assert_eq!(status(&mut wire)["refused"]["replayed"], 0);
}
