//! The cost of Lua: `cargo bench -p toold-lua`. Ratios within one run count, not the times. Things that are compared are
//! measured in turns, so that other load on the computer slows both; a table at the end shows the goals.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use toold_engine::Engine;
use toold_engine::call::Call;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::events::EventSelection;
use toold_engine::execute::execute;
use toold_engine::need::Need;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::Session;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_lua::plugin::registration_cache::RegistrationCache;
use toold_lua::reload::PluginHost;
use toold_lua::reload::options::{DirKind, PluginDir, PluginHostOptions};
use toold_proto::tool::{Category, SourceKind};
use toold_test_kit::{new_session, prepare_call, sample_spec};

/// As the daemon's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Programs that try to stay, and how each must end.
#[path = "../tests/lua/hostile/programs.rs"]
mod programs;

/// One line for `tests/benches/figures.py`, which makes the table of goals of such lines.
fn goal(number: u8, what: &str, value: f64, unit: &str, demand: &str, is_held: bool) {
    println!("goal G{number} | {what} | {value:.2} | {unit} | {demand} | {}", if is_held { "held" } else { "missed" });
}

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
tool("burn", function(ctx, input) local s = 0 for i = 1, 4e5 do s = s + i % 7 end return s end)
tool("forever", function() while true do end end)
"#;

struct Native(ToolSpec);

impl Callable for Native {
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
struct LuaBench {
    engine: Arc<Engine>,
    session: Arc<Session>,
    limit: Option<Duration>,
}

impl LuaBench {
    async fn call(&self, name: &str, arguments: Value) -> Duration {
        let call = self.call_of(name, arguments);
        let start = Instant::now();
        let result = execute(&self.engine, call).await.unwrap();
        std::hint::black_box(result);
        start.elapsed()
    }

    fn call_of(&self, name: &str, arguments: Value) -> Call {
        Call { timeout: self.limit, no_cache: true, ..prepare_call(&self.session, name, arguments) }
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
        // For a profile of the calls alone.
        if std::env::var_os("TOOLD_BENCH_CALLS").is_some() {
            return;
        }
        hostile().await;
        fairness(&bench).await;
        host.stop().await;
        cores(root.path()).await;
        reload_latency().await;
    });
    if std::env::var_os("TOOLD_BENCH_CALLS").is_none() {
        starts_with_many_plugins();
    }
}

/// In the environment of a process that measures a start with many plugins: the folder that they are in.
const FOLDER: &str = "TOOLD_BENCH_FOLDER";

async fn start(root: &Path, machines: usize) -> (LuaBench, PluginHost) {
    start_with(root, machines, PLUGIN).await
}

async fn start_with(root: &Path, machines: usize, script: &str) -> (LuaBench, PluginHost) {
    let plugins = root.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join("p.lua"), script).unwrap();
    let engine = Arc::new(Engine::new("bench"));
    let key = SourceKey { kind: SourceKind::Builtin, name: "bench".into(), scope: SourceScope::Global };
    engine.registry.put(key, Origin::Builtin, vec![Arc::new(Native(native_spec()))]).unwrap();
    let dirs = vec![PluginDir { path: plugins, kind: DirKind::User }];
    let host =
        PluginHost::start(PluginHostOptions { lua_states: machines, ..PluginHostOptions::new(engine.clone(), dirs) })
            .unwrap();
    host.settled().await;
    let session = Session::new(new_session("bench", root.canonicalize().unwrap()));
    (LuaBench { engine, session: Arc::new(session), limit: Some(Duration::from_secs(300)) }, host)
}

fn native_spec() -> ToolSpec {
    ToolSpec { permissions: vec![Category::Plugin], ..sample_spec("native") }
}

fn row(what: &str, time: Duration, ratio: f64, of: &str) {
    println!("{what:<44} {:>12.1} us {ratio:>8.2} x {of}", time.as_secs_f64() * 1e6);
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

async fn cost_of_calls(bench: &LuaBench) {
    const ROUNDS: usize = 40;
    let empty = json!({});
    let names = ["native", "noop", "fail"];
    let mut times = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        for (name, times) in names.iter().zip(&mut times) {
            let time = bench.median(500, name, &empty).await;
            // The first round warms up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let [native, noop, fail] = times.map(middle);
    row("no-op native tool, in process", native, 1.0, "");
    row("Lua tool 'noop', in process", noop, ratio(noop, native), "of native");
    row("Lua tool 'fail', in process", fail, ratio(fail, native), "of native");
}

async fn cost_of_payloads(bench: &LuaBench) {
    let objects = |count: usize| {
        let list: Vec<Value> =
            (0..count).map(|i| json!({"id": i, "name": format!("name {i}"), "ok": i % 2 == 0})).collect();
        json!({ "list": list })
    };
    let mut ratios = Vec::new();
    for count in [10, 1_000, 10_000] {
        let (payload, rounds) = (objects(count), 200_000 / count.max(1_000));
        let text = payload.to_string();
        let (mut parse, mut native) = (Vec::new(), Vec::new());
        let (mut echo, mut map) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let start = processor_time();
            std::hint::black_box(serde_json::from_str::<Value>(&text).unwrap());
            parse.push(processor_time().saturating_sub(start));
            for (name, times) in [("native", &mut native), ("echo", &mut echo), ("map", &mut map)] {
                let call = bench.call_of(name, payload.clone());
                let start = processor_time();
                std::hint::black_box(execute(&bench.engine, call).await.unwrap());
                times.push(processor_time().saturating_sub(start));
            }
        }
        let parse = middle(parse);
        row(&format!("parsing {count} objects"), parse, 1.0, "");
        for (what, times) in [("a native tool", native), ("Lua 'echo'", echo), ("Lua 'map'", map)] {
            let time = middle(times);
            row(&format!("{count} objects through {what}"), time, ratio(time, parse), "of parsing");
            if count == 10_000 && what.starts_with("Lua") {
                ratios.push(ratio(time, parse));
            }
        }
    }
    let again = "10,000 objects through Lua and back, of parsing them, in processor time";
    goal(6, again, ratios[0], "x", "at most 3", ratios[0] <= 3.0);
    goal(6, "the same, each created again", ratios[1], "x", "at most 3", ratios[1] <= 3.0);
}

/// How long after their deadline endless programs end.
async fn hostile() {
    const LIMIT: Duration = Duration::from_millis(150);
    let mut overruns = Vec::new();
    for (what, body, ends) in programs::BODIES {
        if *ends != programs::ProgramEnding::AtLimit {
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        let script =
            format!("hygge.register_tool{{name = 'hostile', timeout = 150, execute = function(ctx) {body} end}}");
        let (mut bench, host) = start_with(root.path(), 2, &script).await;
        bench.limit = None;
        let time = bench.call("hostile", json!({})).await;
        overruns.push((time.saturating_sub(LIMIT), *what));
        host.stop().await;
    }
    overruns.sort_unstable();
    let late = overruns.iter().filter(|(time, _)| *time > Duration::from_millis(20)).count();
    for (time, what) in overruns.iter().rev().take(3) {
        row(&format!("past its deadline: {what}"), *time, 1.0, "");
    }
    let (worst, _) = overruns.last().unwrap();
    println!("{late} of {} are more than 20 ms past their deadline", overruns.len());
    let worst = worst.as_secs_f64() * 1e3;
    goal(7, "the last of the endless programs ends after its deadline", worst, "ms", "at most 20", worst <= 20.0);
}

/// Processor time of all threads of this process; other processes do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long others wait at worst while plugins loop for ever. In turns of a quarter of a second, of which the one in
/// the middle counts: each has its own worst, and a machine that does other things has some of its own.
async fn fairness(bench: &LuaBench) {
    const TURNS: usize = 12;
    let worst = |bench: LuaBench| async move {
        let (mut worst, start) = (Duration::ZERO, Instant::now());
        while start.elapsed() < Duration::from_millis(250) {
            let before = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            bench.call("native", json!({})).await;
            worst = worst.max(before.elapsed());
        }
        worst
    };
    let mut waits = [0, 1, 2, 4].map(|loops| (loops, Vec::new()));
    for _ in 0..TURNS {
        for (loops, waits) in &mut waits {
            let loops: Vec<_> = (0..*loops)
                .map(|_| {
                    let (engine, call) = (bench.engine.clone(), bench.call_of("forever", json!({})));
                    let cancel = call.cancel.clone();
                    (cancel, tokio::spawn(async move { execute(&engine, call).await }))
                })
                .collect();
            waits.push(tokio::spawn(worst(bench.clone())).await.unwrap());
            for (cancel, task) in loops {
                cancel.cancel();
                let _ = task.await;
            }
        }
    }
    let [alone, one, two, four] = waits.map(|(_, waits)| middle(waits));
    row("worst wait of another call, alone", alone, 1.0, "");
    for (loops, time) in [("one endless loop", one), ("two", two), ("four", four)] {
        row(&format!("the same beside {loops}"), time, ratio(time, alone), "of alone");
    }
    let more = |time: Duration| time.saturating_sub(alone).as_secs_f64() * 1e3;
    println!("that is {:.1} ms more beside two, {:.1} beside four", more(two), more(four));
    let one = more(one);
    goal(8, "others' worst wait beside an endless loop, more than alone", one, "ms", "at most 5", one <= 5.0);
}

/// CPU-bound parallelizable calls in one Lua state and in two, and as much work without Lua on one thread and on two: that
/// tells what there was to be had. The quickest round of each counts, since others on the machine make rounds slower and
/// never quicker.
async fn cores(root: &Path) {
    const ROUNDS: usize = 400;
    let mut hosts = Vec::new();
    for machines in [1, 2] {
        hosts.push(start(&root.join(machines.to_string()), machines).await);
    }
    let mut best = [Duration::MAX; 4];
    for round in 0..=ROUNDS {
        for kind in 0..4 {
            let start = Instant::now();
            let calls = (0..2).map(|_| {
                let bench = hosts[kind % 2].0.clone();
                tokio::spawn(async move {
                    if kind < 2 {
                        _ = bench.call("burn", json!({})).await;
                    } else {
                        burn();
                    }
                })
            });
            match kind {
                2 => {
                    burn();
                    burn();
                }
                _ => _ = join_all(calls).await,
            }
            // The first round makes the Lua states.
            if round > 0 {
                best[kind] = best[kind].min(start.elapsed());
            }
        }
    }
    let [one, two, alone, both] = best;
    row("two CPU-bound calls, one Lua state", one, 1.0, "");
    row("the same, two Lua states", two, ratio(one, two), "as fast");
    row("two CPU-bound functions, one thread", alone, 1.0, "");
    row("the same, two threads", both, ratio(alone, both), "as fast");
    for (_, host) in hosts {
        host.stop().await;
    }
    println!("the same work without Lua: {:.2} x", ratio(alone, both));
    let gain = ratio(one, two);
    goal(9, "parallelizable Lua in two Lua states, of one", gain, "x", "at least 1.8", gain >= 1.8);
}

/// About as much as the tool of that name does.
fn burn() {
    let mut sum = 0.0_f64;
    for i in 0..800_000_u32 {
        sum = std::hint::black_box(sum + f64::from(i % 7));
    }
    std::hint::black_box(sum);
}

/// From the end of a save to the event that reports it.
async fn reload_latency() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("p.lua");
    let script = |n: usize| format!("{PLUGIN}\n-- {n}");
    std::fs::write(&path, script(0)).unwrap();
    let engine = Arc::new(Engine::new("bench"));
    let dirs = vec![PluginDir { path: root.path().to_owned(), kind: DirKind::User }];
    let host = PluginHost::start(PluginHostOptions::new(engine.clone(), dirs)).unwrap();
    host.settled().await;
    let mut events = engine.events.subscribe(EventSelection::NoCalls, None).receiver;
    let mut times = Vec::new();
    for n in 1..=200 {
        std::fs::write(&path, script(n)).unwrap();
        let start = Instant::now();
        while events.recv().await.unwrap().body.kind() != "tools.changed" {}
        times.push(start.elapsed());
    }
    let worst = times.iter().max().copied().unwrap();
    let middle = middle(times);
    row("save to tools.changed", middle, 1.0, "");
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
        options.registrations = Some(RegistrationCache { dir: root.join("registrations"), build });
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
