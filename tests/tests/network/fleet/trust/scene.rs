//! Daemons of a fleet, and somebody who sees and sends everything at their broker.

use std::fs;

use serde_json::{Value, json};
use toold_fleet::keys::{KeyOwner, SigningKey};
use toold_tests::{Bus, FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

use super::forgeries::{Forgery, forgeries};

pub(crate) const PLUGIN: &str = r#"
local text = {type = "object", properties = {id = {type = "string"}}, required = {"id"}}
hygge.register_tool{name = "mark", description = "Appends a line", parallelizable = true, permission = false,
  input_schema = text, execute = function(ctx, input)
    hygge.fs.append("marks", input.id .. "\n")
    return "marked " .. input.id
  end}
hygge.register_tool{name = "wait", description = "Waits for a file", parallelizable = true, permission = false,
  input_schema = text, execute = function(ctx, input)
    hygge.fs.append("marks", input.id .. "\n")
    ctx.progress("waiting")
    while not hygge.fs.exists("go") do hygge.sleep("20ms") end
    return "waited for " .. input.id
  end}
"#;

const RULES: &str = r#"
[[permission.rules]]
category = "mcp"
pattern = "fleet:*/*"
action = "allow"
[[permission.rules]]
category = "file.read"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "file.write"
pattern = "**"
action = "allow"
"#;

/// `laptop`, where anna sits, calls `build`. `ghost` and `guest` are members whose keys somebody has stolen; `build` lets
/// `guest` call nothing.
pub(crate) struct TrustScene {
    pub(crate) laptop: TestDaemon,
    pub(crate) build: TestDaemon,
    pub(crate) bus: Bus,
    _nats: NatsServer,
    pub(crate) plan: FleetPlan,
}

impl TrustScene {
    /// `None` when the server is not installed, which is reported.
    pub(crate) fn start() -> Option<Self> {
        let nats = NatsServer::start()?;
        let plan = FleetPlan::new(&["laptop", "build", "ghost", "guest"], &["anna"]);
        let bus = Bus::connect(&nats.url());
        let config = |name: &str, person: Option<&str>, more: &str| {
            let config = plan.config(name, &nats.url(), person, more);
            let config = config.replace("[fleet.daemons.guest]\n", "[fleet.daemons.guest]\nmay_call = false\n");
            format!("{config}\n[fleet.use_labels.gpu]\n{RULES}")
        };
        let build =
            Setup::new().config(&config("build", None, "labels = [\"gpu\"]")).plugin("mark.lua", PLUGIN).start();
        let laptop = Setup::new().config(&config("laptop", Some("anna"), "")).start();
        let scene = Self { laptop, build, bus, plan, _nats: nats };
        scene.wait_until_listed();
        Some(scene)
    }

    /// Waits until the laptop lists the tools of `build`, which is online.
    pub(crate) fn wait_until_listed(&self) {
        until("the laptop lists the tools of build", || {
            let status = status(&self.laptop);
            let build = status["daemons"].as_array()?.iter().find(|daemon| daemon["name"] == "build")?;
            let listed = build["tools"].as_array()?.iter().any(|tool| *tool == json!("build_wait"));
            (build["state"] == "online" && listed).then_some(())
        });
        let mut wire = self.laptop.connect();
        until("the tools can be called", || {
            let tools = wire.result("tools.list", json!({"names": ["build_mark", "gpu_mark"]}))["tools"].take();
            (tools.as_array()?.len() == 2).then_some(())
        });
    }

    pub(crate) fn key(&self, daemon: &str) -> SigningKey {
        SigningKey::load(&self.plan.daemon_key(daemon), KeyOwner::Daemon).unwrap()
    }

    pub(crate) fn person_key(&self, person: &str) -> SigningKey {
        SigningKey::load(&self.plan.person_key(person), KeyOwner::Person).unwrap()
    }

    /// The lines that the tools on `build` have appended.
    pub(crate) fn marks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.build.setup.path("home/marks")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Lets the tools that wait end.
    pub(crate) fn go(&self) {
        fs::write(self.build.setup.path("home/go"), "").unwrap();
    }

    /// A call of `build_wait` that has begun; its request's id.
    pub(crate) fn begin_waiting(&self, client: &mut Wire, id: &str) -> u64 {
        let params = json!({"name": "build_wait", "arguments": {"id": id}, "progress": true});
        let request = client.request("tools.execute", params);
        until("the tool runs", || self.marks().iter().any(|mark| mark == id).then_some(()));
        request
    }

    /// Calls `build_mark` from the laptop, again while the call is not accepted: the server disconnects a daemon that does
    /// not read a flood fast enough, and what it has not read is lost.
    pub(crate) fn mark(&self, id: &str) {
        until(&format!("{id} is marked"), || {
            let result = self.laptop.connect().tool("build_mark", json!({"id": id}));
            if result["is_error"] == true && text(&result).ends_with("; the call did not run") {
                return None;
            }
            assert_eq!(text(&result), format!("marked {id}"));
            Some(())
        });
    }

    /// Sends each forgery of a recorded message, and checks that `receiver` refuses it for its reason.
    #[track_caller]
    pub(crate) fn expect_refusals(
        &self,
        receiver: &TestDaemon,
        recorded: &[u8],
        sender: &SigningKey,
        send: impl Fn(&[u8]),
    ) {
        for Forgery { name, bytes, reason } in forgeries(recorded, sender) {
            expect_refusal(receiver, reason, name, || send(&bytes));
        }
    }
}

pub(crate) fn status(daemon: &TestDaemon) -> Value {
    daemon.connect().result("fleet.status", json!({}))
}

fn refused(daemon: &TestDaemon, reason: &str) -> u64 {
    status(daemon)["refused"][reason].as_u64().unwrap_or(0)
}

/// Checks that a daemon refuses what `send` sends, for this reason. It is sent again and again: an entry of a bucket may
/// be replaced before anybody has read it.
#[track_caller]
pub(crate) fn expect_refusal(receiver: &TestDaemon, reason: &str, what: &str, send: impl Fn()) {
    let before = refused(receiver, reason);
    let mut looks = 0;
    until(&format!("{reason}: {what}"), || {
        if looks % 50 == 0 {
            send();
        }
        looks += 1;
        (refused(receiver, reason) > before).then_some(())
    });
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}
