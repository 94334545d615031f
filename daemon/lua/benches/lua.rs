//! What Lua costs: `cargo bench -p toold-lua`. Ratios of one run count, not the times.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::cx::Cx;
use toold_engine::execute::{Call, Caller, Principal, execute};
use toold_engine::need::Need;
use toold_engine::registry::{Scope, SourceKey};
use toold_engine::schema::Schema;
use toold_engine::session::{Filter, NewSession, Session};
use toold_engine::tool::{Origin, Tool, ToolError, ToolOutput, ToolSpec};
use toold_lua::host::{DirKind, PluginDir, PluginHost, PluginHostOptions};
use toold_lua::registrations::KeptRegistrations;
use toold_proto::tool::{Annotations, Category, SessionId, Source, SourceKind, ToolName};

const PLUGIN: &str = r#"
local function tool(name, execute) hygge.register_tool { name = name, parallelizable = true, timeout = "5m", execute = execute } end
tool("noop", function(ctx, input) return "x" end)
tool("fail", function(ctx, input) error("x") end)
tool("echo", function(ctx, input) return { structured = input, content = "x" } end)
tool("map", function(ctx, input)
  local out = {}
  for i, v in ipairs(input.list) do out[i] = { id = v.id, name = v.name, ok = not v.ok } end
  return { structured = out, content = "x" }
end)
tool("burn", function(ctx, input) local s = 0 for i = 1, 3e6 do s = s + i % 7 end return s end)
tool("forever", function() while true do end end)
"#;

struct Native(ToolSpec);

impl Tool for Native {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        std::future::ready(Ok(vec![Need::new(Category::Plugin, "native")])).boxed()
    }

    fn call<'a>(&'a self, input: Value, _: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        std::future::ready(Ok(ToolOutput { structured: Some(input), ..ToolOutput::text("x") })).boxed()
    }
}

#[derive(Clone)]
struct Bench {
    engine: Arc<Engine>,
    session: Arc<Session>,
}

impl Bench {
    async fn call(&self, name: &str, arguments: Value) -> Duration {
        let call = self.call_of(name, arguments);
        let start = Instant::now();
        let result = execute(&self.engine, call).await.unwrap();
        std::hint::black_box(result);
        start.elapsed()
    }

    fn call_of(&self, name: &str, arguments: Value) -> Call {
        let caller = Caller { connection: 1, principal: Principal::Person, in_flight: Arc::new(AtomicUsize::new(0)) };
        Call {
            name: name.to_owned(),
            arguments,
            call_id: None,
            session: self.session.clone(),
            cwd: None,
            timeout: Some(Duration::from_secs(300)),
            no_cache: true,
            caller: Arc::new(caller),
            progress: Vec::new(),
            cancel: CancellationToken::new(),
            chain: Arc::new([]),
            depth: 0,
            holds_lane: false,
        }
    }

    async fn median(&self, rounds: usize, name: &str, arguments: &Value) -> Duration {
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.push(self.call(name, arguments.clone()).await);
        }
        times.sort_unstable();
        times[times.len() / 2]
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // Memory is measured in a process of its own: what was freed before would be in the way.
    if let Some(folder) = std::env::var_os(FOLDER) {
        return runtime.block_on(many_plugins(Path::new(&folder)));
    }
    runtime.block_on(async {
        let root = tempfile::tempdir().unwrap();
        let (bench, host) = start(root.path(), 2).await;
        cost_of_calls(&bench).await;
        cost_of_payloads(&bench).await;
        fairness(&bench).await;
        host.stop().await;
        cores(root.path()).await;
        reload_latency().await;
    });
    starts_with_many_plugins();
}

/// In the environment of a process that measures a start with many plugins: the folder that they are in.
const FOLDER: &str = "TOOLD_BENCH_FOLDER";

async fn start(root: &Path, machines: usize) -> (Bench, PluginHost) {
    let plugins = root.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("p.lua"), PLUGIN).unwrap();
    let engine = Arc::new(Engine::new("bench"));
    let key = SourceKey { kind: SourceKind::Builtin, name: "bench".into(), scope: Scope::Global };
    engine.registry.put(key, Origin::Builtin, vec![Arc::new(Native(native_spec()))]).unwrap();
    let dirs = vec![PluginDir { path: plugins, kind: DirKind::User }];
    let host =
        PluginHost::start(PluginHostOptions { machines, ..PluginHostOptions::new(engine.clone(), dirs) }).unwrap();
    host.settled().await;
    let session = Session::new(NewSession {
        id: SessionId::parse("bench").unwrap(),
        cwd: root.canonicalize().unwrap(),
        roots: Vec::new(),
        project: root.to_owned(),
        client: None,
        model: None,
        env: Default::default(),
        filter: Filter::default(),
    });
    (Bench { engine, session: Arc::new(session) }, host)
}

fn native_spec() -> ToolSpec {
    ToolSpec {
        name: ToolName::parse("native").unwrap(),
        label: String::new(),
        description: String::new(),
        input: Schema::compile_input(json!({"type": "object"})).unwrap(),
        output: None,
        source: Source { kind: SourceKind::Builtin, name: "bench".into(), path: None },
        origin: Origin::Builtin,
        parallelizable: true,
        permissions: vec![Category::Plugin],
        cache_ttl: None,
        timeout: None,
        annotations: Annotations::default(),
        version: None,
    }
}

fn row(what: &str, time: Duration, ratio: f64, of: &str) {
    println!("{what:<44} {:>12.1} us {ratio:>8.2} x {of}", time.as_secs_f64() * 1e6);
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

async fn cost_of_calls(bench: &Bench) {
    let empty = json!({});
    for name in ["native", "noop"] {
        bench.median(2_000, name, &empty).await;
    }
    let native = bench.median(20_000, "native", &empty).await;
    row("no-op native tool, in process", native, 1.0, "");
    for name in ["noop", "fail"] {
        let time = bench.median(20_000, name, &empty).await;
        row(&format!("Lua tool '{name}', in process"), time, ratio(time, native), "of native");
    }
}

async fn cost_of_payloads(bench: &Bench) {
    let objects = |count: usize| {
        let list: Vec<Value> =
            (0..count).map(|i| json!({"id": i, "name": format!("name {i}"), "ok": i % 2 == 0})).collect();
        json!({ "list": list })
    };
    for count in [10, 1_000, 10_000] {
        let (payload, rounds) = (objects(count), 200_000 / count.max(1_000));
        let text = payload.to_string();
        let (mut parse, mut native) = (Vec::new(), Vec::new());
        let (mut echo, mut map) = (Vec::new(), Vec::new());
        // One after another in each round: whatever slows the machine down slows all of them.
        for _ in 0..rounds {
            let start = Instant::now();
            std::hint::black_box(serde_json::from_str::<Value>(&text).unwrap());
            parse.push(start.elapsed());
            native.push(bench.call("native", payload.clone()).await);
            echo.push(bench.call("echo", payload.clone()).await);
            map.push(bench.call("map", payload.clone()).await);
        }
        let parse = middle(parse);
        row(&format!("parsing {count} objects"), parse, 1.0, "");
        for (what, times) in [("a native tool", native), ("Lua 'echo'", echo), ("Lua 'map'", map)] {
            let time = middle(times);
            row(&format!("{count} objects through {what}"), time, ratio(time, parse), "of parsing");
        }
    }
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long others wait at worst while a plugin loops for ever.
async fn fairness(bench: &Bench) {
    let worst = |bench: Bench| async move {
        let (mut worst, start) = (Duration::ZERO, Instant::now());
        while start.elapsed() < Duration::from_secs(1) {
            let before = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            bench.call("native", json!({})).await;
            worst = worst.max(before.elapsed());
        }
        worst
    };
    let alone = tokio::spawn(worst(bench.clone())).await.unwrap();
    row("worst wait of another call, alone", alone, 1.0, "");
    let loops: Vec<_> = (0..4)
        .map(|_| {
            let (engine, call) = (bench.engine.clone(), bench.call_of("forever", json!({})));
            let cancel = call.cancel.clone();
            (cancel, tokio::spawn(async move { execute(&engine, call).await }))
        })
        .collect();
    let beside = tokio::spawn(worst(bench.clone())).await.unwrap();
    row("the same beside four endless loops", beside, ratio(beside, alone), "of alone");
    for (cancel, task) in loops {
        cancel.cancel();
        let _ = task.await;
    }
}

/// Calls of a CPU-bound parallelizable tool, on one machine and on two, in turn.
async fn cores(root: &Path) {
    const ROUNDS: usize = 5;
    const CALLS: usize = 20;
    let mut hosts = Vec::new();
    for machines in [1, 2] {
        let (bench, host) = start(&root.join(machines.to_string()), machines).await;
        hosts.push((bench, host, Duration::ZERO));
    }
    for round in 0..=ROUNDS {
        for (bench, _, time) in &mut hosts {
            let start = Instant::now();
            let calls = (0..CALLS).map(|_| {
                let bench = bench.clone();
                tokio::spawn(async move { bench.call("burn", json!({})).await })
            });
            join_all(calls).await;
            // The first round makes the machines.
            if round > 0 {
                *time += start.elapsed();
            }
        }
    }
    let rate = |time: &Duration| (ROUNDS * CALLS) as f64 / time.as_secs_f64();
    let (one, two) = (rate(&hosts[0].2), rate(&hosts[1].2));
    println!("CPU-bound calls a second: {one:.1} on one machine, {two:.1} on two: {:.2} x", two / one);
    for (_, host, _) in hosts {
        host.stop().await;
    }
}

/// From the end of a save to the event that tells of it.
async fn reload_latency() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("p.lua");
    let script = |n: usize| format!("{PLUGIN}\n-- {n}");
    std::fs::write(&path, script(0)).unwrap();
    let engine = Arc::new(Engine::new("bench"));
    let dirs = vec![PluginDir { path: root.path().to_owned(), kind: DirKind::User }];
    let host = PluginHost::start(PluginHostOptions::new(engine.clone(), dirs)).unwrap();
    host.settled().await;
    let mut events = engine.events.subscribe(None).receiver;
    let mut times = Vec::new();
    for n in 1..=200 {
        std::fs::write(&path, script(n)).unwrap();
        let start = Instant::now();
        while events.recv().await.unwrap().what.kind() != "tools.changed" {}
        times.push(start.elapsed());
    }
    let worst = times.iter().max().copied().unwrap();
    row("save to tools.changed", middle(times), 1.0, "");
    row("the same, worst of 200", worst, 1.0, "");
    host.stop().await;
}

const MANY: usize = 1_000;

/// Three starts with a thousand plugins: nothing kept, nothing kept yet, all kept.
fn starts_with_many_plugins() {
    let root = tempfile::tempdir().unwrap();
    let plugins = root.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    for n in 0..MANY {
        let script = PLUGIN.replace("name = name", &format!("name = name .. '_{n}'"));
        std::fs::write(plugins.join(format!("p{n}.lua")), script).unwrap();
    }
    for (what, keeps) in [("not kept", "0"), ("first start", "1"), ("later start", "1")] {
        let program = std::env::current_exe().unwrap();
        let output =
            std::process::Command::new(program).env(FOLDER, root.path()).env("TOOLD_BENCH_KEEPS", keeps).output();
        print!("{MANY} plugins, {what:<12} {}", String::from_utf8_lossy(&output.unwrap().stdout));
    }
}

async fn many_plugins(root: &Path) {
    let before = resident();
    let start = Instant::now();
    let engine = Arc::new(Engine::new("bench"));
    let dirs = vec![PluginDir { path: root.join("plugins"), kind: DirKind::User }];
    let mut options = PluginHostOptions::new(engine.clone(), dirs);
    if std::env::var("TOOLD_BENCH_KEEPS").is_ok_and(|keeps| keeps == "1") {
        let build = "bench".to_owned();
        options.registrations = Some(KeptRegistrations { dir: root.join("registrations"), build });
    }
    let host = PluginHost::start(options).unwrap();
    host.settled().await;
    let time = start.elapsed();
    let tools = engine.registry.snapshot().global().len();
    println!(
        "{tools} tools, {:>6.0} ms until all serve, {:>6.1} KiB a plugin, {} revisions",
        time.as_secs_f64() * 1e3,
        (resident() - before) as f64 / MANY as f64 / 1024.0,
        engine.registry.snapshot().revision
    );
    host.stop().await;
}

/// Bytes of memory of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
