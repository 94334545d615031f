//! Every way in which editors and git save plugins, while clients call all tools all the time: no tool is ever missing,
//! and in the end the newest version of each serves.
//!
//! `TOOLD_SAVE_ROUNDS` sets how often each plugin is saved.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toold_test_kit::git;
use toold_tests::{Setup, Wire, until};

const PLUGINS: usize = 20;
/// Files of the repository: plugins, and modules of one more plugin.
const CHECKED_OUT: (usize, usize) = (20, 180);
const CLIENTS: usize = 4;
/// A save that takes longer than this, because the machine is busy, is two versions, and the first one is incomplete.
const WHOLE: Duration = Duration::from_millis(300);
/// A file that is gone for longer than this was deleted.
const GONE: Duration = Duration::from_millis(50);

fn tool(name: &str, version: &str) -> String {
    format!(
        "hygge.register_tool{{name = '{name}', description = '{version}', parallelizable = true,\n\
         execute = function() return '{version}' end}}\n"
    )
}

/// A plugin with two tools, in two halves that both are Lua.
struct SavedPlugin {
    name: String,
    /// The file that is saved: the plugin's only one, or a module of it.
    file: PathBuf,
}

impl SavedPlugin {
    fn new(plugins: &Path, number: usize) -> Self {
        let name = format!("p{number}");
        let file = match number % 3 {
            0 => plugins.join(&name).join("tools.lua"),
            _ => plugins.join(format!("{name}.lua")),
        };
        Self { name, file }
    }

    fn tools(&self) -> [String; 2] {
        ["a", "b"].map(|end| format!("{}_{end}", self.name))
    }

    fn halves(&self, version: &str) -> [String; 2] {
        let [a, b] = self.tools();
        let log = format!("hygge.log('info', '{} {version}')\n", self.name);
        [log + &"-- a long file\n".repeat(200) + &tool(&a, version), tool(&b, version)]
    }

    fn beside(&self, name: impl Fn(&str) -> String) -> PathBuf {
        self.file.with_file_name(name(&self.file.file_name().unwrap().to_string_lossy()))
    }
}

/// Saves one version. Returns how long it took, and how long it may take.
type WayToSave = fn(&SavedPlugin, [String; 2], &mut dyn FnMut()) -> (Duration, Duration);

const WAYS: [(&str, WayToSave); 7] = [
    ("in one go", |plugin, text, _| timed(WHOLE, || fs::write(&plugin.file, text.concat()).unwrap())),
    ("in two halves, with a pause in which the first one is loaded", |plugin, [first, second], loaded| {
        timed(WHOLE, || {
            let mut file = File::create(&plugin.file).unwrap();
            file.write_all(first.as_bytes()).unwrap();
            file.sync_all().unwrap();
            loaded();
            file.write_all(second.as_bytes()).unwrap();
        })
    }),
    ("renamed over", |plugin, text, _| {
        timed(WHOLE, || {
            let beside = plugin.beside(|name| format!("{name}.tmp"));
            fs::write(&beside, text.concat()).unwrap();
            fs::rename(&beside, &plugin.file).unwrap();
        })
    }),
    ("deleted and created", |plugin, text, _| {
        timed(GONE, || {
            fs::remove_file(&plugin.file).unwrap();
            fs::write(&plugin.file, text.concat()).unwrap();
        })
    }),
    ("as vim does", |plugin, text, _| {
        let (probe, backup) = (plugin.beside(|_| "4913".into()), plugin.beside(|name| format!("{name}~")));
        File::create(&probe).unwrap();
        fs::remove_file(&probe).unwrap();
        let took = timed(GONE, || {
            fs::rename(&plugin.file, &backup).unwrap();
            fs::write(&plugin.file, text.concat()).unwrap();
        });
        fs::remove_file(&backup).unwrap();
        took
    }),
    ("as emacs does", |plugin, text, _| {
        let (lock, autosave) = (plugin.beside(|name| format!(".#{name}")), plugin.beside(|name| format!("#{name}#")));
        symlink("ada@example.org.1", &lock).unwrap();
        fs::write(&autosave, &text[0]).unwrap();
        let took = timed(WHOLE, || fs::write(&plugin.file, text.concat()).unwrap());
        fs::remove_file(&autosave).unwrap();
        fs::remove_file(&lock).unwrap();
        took
    }),
    ("touched, then appended to in small pieces", |plugin, text, _| {
        let before = fs::read(&plugin.file).unwrap();
        fs::write(&plugin.file, before).unwrap();
        timed(WHOLE, || {
            let mut file = File::create(&plugin.file).unwrap();
            for piece in text.concat().as_bytes().chunks(500) {
                file.write_all(piece).unwrap();
            }
        })
    }),
];

fn timed(limit: Duration, save: impl FnOnce()) -> (Duration, Duration) {
    let start = Instant::now();
    save();
    (start.elapsed(), limit)
}

/// A repository with two branches, whose files say of which branch they are.
fn repository(folder: &Path) {
    fs::create_dir_all(folder.join("many")).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch", "one"]);
    for branch in ["one", "two"] {
        if branch == "two" {
            git(folder, &["checkout", "--quiet", "-b", branch]);
        }
        let (plugins, modules) = CHECKED_OUT;
        for n in 0..plugins {
            fs::write(folder.join(format!("g{n}.lua")), tool(&format!("g{n}"), branch)).unwrap();
        }
        for n in 0..modules {
            fs::write(folder.join(format!("many/m{n}.lua")), format!("return '{branch}'\n")).unwrap();
        }
        let script = format!(
            "local seen = {{}}\nfor n = 0, {} do seen[require('m' .. n)] = true end\n\
             local branches = (seen.one and 'one' or '') .. (seen.two and 'two' or '')\n\
             hygge.register_tool{{name = 'many', description = branches, parallelizable = true,\n\
             execute = function() return branches end}}\n",
            modules - 1
        );
        fs::write(folder.join("many/plugin.lua"), script).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "--message", branch]);
    }
    git(folder, &["checkout", "--quiet", "one"]);
}

/// A call that found no tool.
struct MissedCall {
    tool: String,
    at: Instant,
}

/// Calls all tools in turn until it is told to stop.
fn call_all(mut wire: Wire, tools: &[String], stop: &AtomicBool, calls: &AtomicU64) -> Vec<MissedCall> {
    let mut missed = Vec::new();
    for tool in tools.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let answer = wire.call("tools.execute", json!({"name": tool}));
        calls.fetch_add(1, Ordering::Relaxed);
        if answer["error"]["code"] == -32001 {
            missed.push(MissedCall { tool: tool.clone(), at: Instant::now() });
            continue;
        }
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(answer["result"]["is_error"] == false && !text.is_empty(), "{tool}: {answer}");
        // Half of a checkout would be of both branches.
        assert_ne!(text, "onetwo");
    }
    missed
}

fn described(wire: &mut Wire, names: &[String], version: &str) -> bool {
    let tools = wire.result("tools.list", json!({"names": names}));
    let tools = tools["tools"].as_array().unwrap();
    tools.len() == names.len() && tools.iter().all(|tool| tool["description"] == version)
}

#[test]
fn no_call_misses_its_tool_while_plugins_are_saved_in_every_way() {
    let rounds: usize = std::env::var("TOOLD_SAVE_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    let setup = Setup::new();
    let (folder, plugins) = (setup.path("repository"), setup.path("config/toold/plugins"));
    repository(&folder);
    let setup = setup.config(&format!("[plugins]\npaths = [{folder:?}]\n"));
    let saved: Vec<SavedPlugin> = (0..PLUGINS).map(|number| SavedPlugin::new(&plugins, number)).collect();
    for plugin in &saved {
        fs::create_dir_all(plugin.file.parent().unwrap()).unwrap();
        fs::write(&plugin.file, plugin.halves("v0").concat()).unwrap();
        if plugin.file.ends_with("tools.lua") {
            fs::write(plugin.file.with_file_name("plugin.lua"), "require('tools')\n").unwrap();
        }
    }
    let daemon = setup.start();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["log"]}));
    let checked_out: Vec<String> = (0..CHECKED_OUT.0).map(|n| format!("g{n}")).chain(["many".to_owned()]).collect();
    let tools: Vec<String> = saved.iter().flat_map(SavedPlugin::tools).chain(checked_out.iter().cloned()).collect();
    assert!(described(&mut wire, &checked_out, "one"));
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    // When a tool may be missing, because the machine was too slow for its save.
    let mut excused: Vec<(String, Instant, Instant)> = Vec::new();
    let (mut counts, mut slow) = ([0; WAYS.len()], [Duration::ZERO; WAYS.len()]);
    let missed: Vec<MissedCall> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (wire, tools, stop, calls) = (daemon.connect(), &tools, &stop, &calls);
                scope.spawn(move || call_all(wire, tools, stop, calls))
            })
            .collect();
        let working = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=rounds {
                let version = format!("v{round}");
                for (number, plugin) in saved.iter().enumerate() {
                    let way = (round + number) % WAYS.len();
                    counts[way] += 1;
                    let log = format!("{} {version}", plugin.name);
                    let start = Instant::now();
                    let mut loaded = || {
                        while wire.notification("events.event")["result"]["message"] != log.as_str() {}
                    };
                    let (took, limit) = WAYS[way].1(plugin, plugin.halves(&version), &mut loaded);
                    slow[way] = slow[way].max(took);
                    if took >= limit {
                        until("the version of a slow save serves", || {
                            described(&mut wire, &plugin.tools(), &version).then_some(())
                        });
                        excused.extend(plugin.tools().map(|tool| (tool, start, Instant::now())));
                    }
                }
                git(&folder, &["checkout", "--quiet", if round % 2 == 1 { "two" } else { "one" }]);
            }
            let newest = format!("v{rounds}");
            for plugin in &saved {
                until("the newest version serves", || described(&mut wire, &plugin.tools(), &newest).then_some(()));
            }
            let branch = if rounds % 2 == 1 { "two" } else { "one" };
            until("the branch serves", || described(&mut wire, &checked_out, branch).then_some(()));
        }));
        stop.store(true, Ordering::Relaxed);
        let missed = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        if let Err(panic) = working {
            std::panic::resume_unwind(panic);
        }
        missed
    });
    for (plugin, version) in saved.iter().map(|plugin| (plugin, format!("v{rounds}"))) {
        for tool in plugin.tools() {
            assert_eq!(wire.tool(&tool, json!({}))["content"][0]["text"], version, "{tool}");
        }
    }
    let is_excused = |missed: &&MissedCall| {
        excused.iter().any(|(tool, from, to)| *tool == missed.tool && (*from..=*to).contains(&missed.at))
    };
    let unexcused: Vec<&str> =
        missed.iter().filter(|missed| !is_excused(missed)).map(|missed| missed.tool.as_str()).collect();
    for ((way, count), slow) in WAYS.iter().zip(counts).zip(slow) {
        println!("{count:5} saves {}, which took {slow:?} at most", way.0);
    }
    println!(
        "{rounds:5} checkouts; {} calls, of which {} missed their tool, {} of them while a save took too long",
        calls.into_inner(),
        missed.len(),
        missed.len() - unexcused.len()
    );
    assert!(unexcused.is_empty(), "there was no tool {unexcused:?}");
    // A real delete counts.
    fs::remove_file(&saved[1].file).unwrap();
    until("the deleted plugin is gone", || {
        (wire.call("tools.execute", json!({"name": saved[1].tools()[0]}))["error"]["code"] == -32001).then_some(())
    });
}
