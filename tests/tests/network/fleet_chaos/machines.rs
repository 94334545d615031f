//! The machines of the fleet: each a daemon with folders, a network and a clock of its own.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toold_tests::{FleetPlan, NatsServer, Proxy, Setup, TestDaemon, faketime_library, until};

use crate::fleet_chaos::clients::Connection;

/// Their names and clocks. Those of the second and the third differ by more than a command may be old.
const MACHINES: [(&str, &str); 5] = [("ant", "+0"), ("bee", "+45s"), ("cat", "-45s"), ("dog", "-10s"), ("elk", "+10s")];
/// All but the first two have this label.
pub(crate) const LABEL: &str = "pool";
/// The person at the first machine.
const PERSON: &str = "anna";

pub(crate) const PLUGIN: &str = r#"
local text = {type = "object", properties = {id = {type = "string"}}, required = {"id"}}
hygge.register_tool{name = "look", description = "Reads", parallelizable = true, permission = false, input_schema = text,
  annotations = {read_only = true}, execute = function(ctx, input) return input.id end}
hygge.register_tool{name = "large", description = "Reads much", parallelizable = true, permission = false, input_schema = text,
  annotations = {read_only = true}, execute = function(ctx, input) return input.id .. string.rep("x", 1500000) end}
hygge.register_tool{name = "note", description = "Appends a line to the ledger", parallelizable = true, permission = false,
  input_schema = text, execute = function(ctx, input)
    hygge.fs.append("ledger", input.id .. "\n")
    return input.id
  end}
hygge.register_tool{name = "slow", description = "Appends a line to the ledger and waits", parallelizable = true,
  permission = false, input_schema = text, execute = function(ctx, input)
    hygge.fs.append("ledger", input.id .. "\n")
    for i = 1, 100 do ctx.progress("waiting " .. i) hygge.sleep("100ms") end
    return input.id
  end}
"#;

const RULES: &str = r#"
[permission]
read_only_commands = "ask"
[[permission.rules]]
category = "mcp"
pattern = "fleet:*/*"
action = "allow"
[[permission.rules]]
category = "file.write"
pattern = "**"
action = "allow"
"#;

pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) daemon: Mutex<TestDaemon>,
    pub(crate) proxy: Proxy,
    pub(crate) socket: PathBuf,
    /// The file to which its tools append.
    pub(crate) ledger: PathBuf,
}

impl Machine {
    /// The answer to a request; `None` while the daemon is away.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let answer = Connection::open(&self.socket)?.request(method, params, None)?;
        answer.get("result").cloned()
    }

    /// When the daemon is there.
    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        let answer = Connection::open(&self.socket).and_then(|mut link| link.request(method, params, None));
        let answer = answer.unwrap_or_else(|| panic!("{} does not answer {method}", self.name));
        assert!(answer.get("error").is_none(), "{method} on {}: {answer}", self.name);
        answer["result"].clone()
    }

    pub(crate) fn status(&self) -> Value {
        self.result("fleet.status", json!({}))
    }
}

/// The last state that was seen, which a failure shows.
#[derive(Default)]
struct ShownOnPanic(RefCell<Value>);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{:#}", self.0.borrow());
        }
    }
}

/// Dropped in this order.
pub(crate) struct Machines {
    pub(crate) all: Vec<Machine>,
    pub(crate) nats: Mutex<NatsServer>,
    _plan: FleetPlan,
}

impl Machines {
    /// `None` when something is not installed, which is reported.
    pub(crate) fn start() -> Option<Self> {
        let nats = NatsServer::start()?;
        let library = faketime_library()?;
        let names: Vec<&str> = Self::names().collect();
        let plan = FleetPlan::new(&names, &[PERSON]);
        let all = MACHINES.iter().enumerate().map(|(number, (name, clock))| {
            let proxy = Proxy::start(nats.port());
            let labels = if number > 1 { format!("labels = [{LABEL:?}]") } else { String::new() };
            let person = (number == 0).then_some(PERSON);
            let config = plan.config(name, &proxy.url(), person, &format!("max_calls = 8\n{labels}"));
            let setup = Setup::new()
                .config(&format!("{config}\n[fleet.use_labels.{LABEL}]\n{RULES}"))
                .plugin("chaos.lua", PLUGIN)
                .clock(&library, &format!("FAKETIME={clock}"));
            let ledger = setup.path("home/ledger");
            let daemon = setup.start();
            Machine { name, socket: daemon.socket(), daemon: Mutex::new(daemon), proxy, ledger }
        });
        let machines = Self { all: all.collect(), nats: Mutex::new(nats), _plan: plan };
        machines.wait_until_complete();
        Some(machines)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        MACHINES.into_iter().map(|(name, _)| name)
    }

    /// Waits until each daemon lists the tools of all others as those of daemons that are online.
    #[track_caller]
    pub(crate) fn wait_until_complete(&self) {
        for machine in &self.all {
            let last = ShownOnPanic::default();
            until(&format!("{} knows all others", machine.name), || {
                let status = machine.status();
                last.0.replace(status.clone());
                let others = status["daemons"].as_array()?;
                let complete = |other: &Value| {
                    let tools = other["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
                    let name = format!("{}_note", other["name"].as_str().unwrap_or_default());
                    other["state"] == "online" && tools.iter().any(|tool| *tool == json!(name))
                };
                (status["connected"] == true && others.len() == 4 && others.iter().all(complete)).then_some(())
            });
        }
    }

    /// How long a partition lasts that ends calls.
    pub(crate) fn long_partition() -> Duration {
        toold_fleet::silence::SILENCE + Duration::from_secs(3)
    }
}
