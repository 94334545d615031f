//! A fleet with many daemons and tools, of which one daemon is real: how long it takes until all tools are listed, how much
//! memory they take, and when a change is seen.
//!
//! `FLEET_DAEMONS` and `FLEET_TOOLS` set the numbers: `FLEET_DAEMONS=50 FLEET_TOOLS=400 cargo test --release -p toold-tests
//! --test network fleet_scale:: -- --nocapture` is the large one.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::kv::Store;
use futures_util::StreamExt;
use serde_json::json;
use toold_fleet::keys::{KeyOwner, SigningKey};
use toold_fleet::messages::{MemberRecord, ToolRecord};
use toold_fleet::names::FleetName;
use toold_fleet::signed::{SignedKind, sign};
use toold_fleet::subjects;
use toold_proto::tool::Annotations;
use toold_tests::{FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

/// How often a simulated daemon renews its record.
const RENEWAL: Duration = Duration::from_secs(10);

fn number(variable: &str, or: usize) -> usize {
    std::env::var(variable).map_or(or, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number")))
}

/// The announcements of a daemon that does not exist.
struct SimulatedDaemon {
    name: FleetName,
    key: SigningKey,
}

impl SimulatedDaemon {
    async fn announce(&self, daemons: &Store, tools: u64) {
        let record = MemberRecord {
            instance: "simulated".to_owned(),
            labels: Vec::new(),
            revision: 0,
            version: "0".to_owned(),
            tools,
            running: 0,
            max_calls: 1,
            people: Vec::new(),
            audit_waiting: 0,
            trusts: BTreeMap::new(),
        };
        let message = sign(&self.key, SignedKind::Daemon, &self.name, self.name.as_str(), record);
        daemons.put(self.name.as_str(), message.into()).await.unwrap();
    }

    async fn put_tool(&self, tools: &Store, n: usize, description: &str) {
        let property =
            |name: &str| json!({"type": "string", "description": format!("The {name} that the tool works on.")});
        let key = subjects::tool_key(&self.name, &format!("tool_{n}"));
        let record = ToolRecord {
            label: format!("Tool {n}"),
            description: format!("{description} It does the thing of number {n}, as often as it is asked to."),
            schema: json!({
                "type": "object",
                "properties": {"path": property("file"), "pattern": property("pattern"), "folder": property("folder")},
                "required": ["path"],
            }),
            output_schema: None,
            fingerprint: format!("{description}{n}"),
            annotations: Annotations::default(),
            parallelizable: true,
            timeout_ms: None,
            version: None,
            grammar: None,
        };
        tools.put(&key, sign(&self.key, SignedKind::Tool, &self.name, &key, record).into()).await.unwrap();
    }
}

/// How many tools of daemons that are there are listed.
fn listed(wire: &mut Wire) -> usize {
    let daemons = wire.result("fleet.status", json!({}))["daemons"].take();
    let online = daemons.as_array().unwrap().iter().filter(|daemon| daemon["state"] == "online");
    online.map(|daemon| daemon["tools"].as_array().unwrap().len()).sum()
}

fn memory_mib(daemon: &TestDaemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_fleet_is_listed_and_its_changes_are_seen() {
    let (daemons, tools) = (number("FLEET_DAEMONS", 5), number("FLEET_TOOLS", 100));
    let Some(nats) = NatsServer::start() else { return };
    let names: Vec<String> = (0..daemons).map(|n| format!("d{n}")).collect();
    let mut members: Vec<&str> = names.iter().map(String::as_str).collect();
    members.push("laptop");
    let plan = FleetPlan::new(&members, &[]);
    let setup = Setup::new().config(&plan.config("laptop", &nats.url(), None, "offer = { allow = [] }"));
    // It makes the buckets.
    let mut daemon = tokio::task::block_in_place(|| setup.start());
    let memory_before = memory_mib(&daemon);
    let jetstream = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
    let bucket = async |name| {
        loop {
            match jetstream.get_key_value(name).await {
                Ok(store) => break store,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let (records, entries) = (bucket(subjects::DAEMONS).await, bucket(subjects::TOOLS).await);
    let simulated: Vec<SimulatedDaemon> = names
        .iter()
        .map(|name| SimulatedDaemon {
            name: FleetName::parse(name).unwrap(),
            key: SigningKey::load(&plan.daemon_key(name), KeyOwner::Daemon).unwrap(),
        })
        .collect();
    tokio::task::block_in_place(|| {
        daemon.signal("TERM");
        daemon.wait();
    });

    let began = Instant::now();
    for one in &simulated {
        futures_util::stream::iter(0..tools).for_each_concurrent(32, |n| one.put_tool(&entries, n, "First.")).await;
        one.announce(&records, tools as u64).await;
    }
    println!("{daemons} daemons announced {} tools in {:?}", daemons * tools, began.elapsed());
    let simulated = Arc::new(simulated);
    // A task of its own: the test blocks while it waits for the daemon.
    let renewing = tokio::spawn({
        let simulated = simulated.clone();
        async move {
            let mut tick = tokio::time::interval(RENEWAL);
            loop {
                tick.tick().await;
                for one in &*simulated {
                    one.announce(&records, tools as u64).await;
                }
            }
        }
    });
    for start in ["without a cache", "with a cache"] {
        let began = Instant::now();
        tokio::task::block_in_place(|| {
            daemon.start_again();
            let all = daemons * tools;
            let mut wire = daemon.connect();
            until("all tools are listed", || (listed(&mut wire) == all).then_some(()));
        });
        let (took, memory) = (began.elapsed(), memory_mib(&daemon));
        println!("start {start}: complete after {took:?}, {memory} MiB ({memory_before} MiB without a fleet)");
        if start == "without a cache" {
            tokio::task::block_in_place(|| {
                daemon.signal("TERM");
                daemon.wait();
            });
        }
    }
    let name = format!("{}_tool_0", names[daemons / 2]);
    // The first one arrives after all that the daemon reads again, which it knew from its cache.
    for change in ["while the list is read again", "then"] {
        let began = Instant::now();
        simulated[daemons / 2].put_tool(&entries, 0, change).await;
        tokio::task::block_in_place(|| {
            let mut wire = daemon.connect();
            until("the change is seen", || {
                let tool = wire.result("tools.schema", json!({"name": name}));
                tool["description"].as_str().unwrap().starts_with(change).then_some(())
            });
        });
        println!("a changed tool is seen, {change}: after {:?}, {} MiB", began.elapsed(), memory_mib(&daemon));
    }
    renewing.abort();
    tokio::task::block_in_place(|| drop(daemon));
}
