//! A working day of a developer with an agent: real programs, a real repository, and a count of the approvals.
//!
//! [`script`] is the day as data. The table of steps and the approvals are printed:
//! `cargo test -p toold-tests --test clients working_day:: -- --nocapture`.

mod agent;
mod editor;
mod person;
mod project;
mod report;
mod script;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ServerStep as Sends, ok};
use toold_tests::{Setup, TestDaemon, skip_uninstalled, toolctl, until};

use crate::working_day::agent::Agent;
use crate::working_day::editor::Editor;
use crate::working_day::person::Person;
use crate::working_day::project::{Project, SECRET};
use crate::working_day::report::{DoneStep, lines, print};
use crate::working_day::script::{DayAction, DayStep, ENOUGH, Ends, RULES, day};

/// Output of a step.
pub(crate) struct Seen {
    pub(crate) text: String,
    /// The tool reports an error, or the program's status is not 0.
    pub(crate) failed: bool,
}

/// The folders and addresses that the script names by placeholders.
struct PathNames(Vec<(&'static str, String)>);

impl PathNames {
    fn put_into(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// The other way, for texts that are printed.
    fn take_out_of(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(value, name))
    }

    fn put_into_value(&self, value: &Value) -> Value {
        serde_json::from_str(&self.put_into(&value.to_string())).unwrap()
    }
}

/// Pages of documentation, as the agent fetches them.
fn docs(request: &str) -> Vec<Sends> {
    let page = match request.split(' ').nth(1) {
        Some("/str.html") => "<title>str</title><p>splitlines() counts a last line that no newline ends.</p>",
        _ => "<title>unittest</title><p>assertEqual(first, second) compares two values.</p>",
    };
    vec![Sends::Send(ok("text/html", page))]
}

fn config(names: &PathNames, docs: &str) -> String {
    let mut config = format!("[network]\nallow_private = [\"{docs}\"]\n");
    for (category, pattern) in RULES {
        let pattern = names.put_into(pattern);
        config.push_str(&format!(
            "\n[[permission.rules]]\ncategory = \"{category}\"\npattern = \"{pattern}\"\naction = \"allow\"\n"
        ));
    }
    config
}

/// The participants of the day.
struct Cast<'a> {
    daemon: &'a TestDaemon,
    project: &'a Project,
    names: &'a PathNames,
    person: &'a Person,
    /// `None` between two agents.
    agent: Option<Agent>,
    editor: Editor,
}

impl Drop for Cast<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // After a restart no handle of this test holds the daemon.
            let _ = self.toolctl(&["stop"]);
        }
    }
}

impl Cast<'_> {
    fn act(&mut self, step: &DayStep) -> Seen {
        let names = self.names;
        match &step.does {
            DayAction::Tool(name, arguments) => self.agent().call(name, &names.put_into_value(arguments)),
            DayAction::OwnShell(line) => self.agent().shell(&names.put_into(line)),
            DayAction::ToolsUntil(text) => self.agent().tools_until(text),
            DayAction::Reconnect => self.agent().reconnect(),
            DayAction::NewAgent => self.start_agent(&self.project.folder),
            DayAction::AgentInOther => self.start_agent(&self.project.other),
            DayAction::Toolctl(arguments) => {
                let seen = self.toolctl(arguments);
                if *arguments == ["restart"] {
                    self.person.has_a_daemon();
                }
                seen
            }
            DayAction::Editor(lua) => self.editor.run(&names.put_into(lua)),
        }
    }

    fn agent(&mut self) -> &mut Agent {
        self.agent.as_mut().expect("there is one in every step")
    }

    fn start_agent(&mut self, folder: &Path) -> Seen {
        // The old one ends first.
        self.agent = None;
        self.agent = Some(Agent::start(self.daemon, folder));
        Seen { text: String::new(), failed: false }
    }

    /// Runs `toolctl` as the person does, in the project's folder.
    fn toolctl(&self, arguments: &[&str]) -> Seen {
        let mut command = self.daemon.setup.command(toolctl());
        command.args(arguments.iter().map(|argument| self.names.put_into(argument)));
        let output = command.current_dir(&self.project.folder).stdin(Stdio::null()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        Seen { text: String::from_utf8_lossy(&text).into_owned(), failed: !output.status.success() }
    }
}

/// `Ok` if the step ended as the script says, or else the difference.
fn check(step: &DayStep, seen: &Seen) -> Result<(), String> {
    let (failed, text) = match step.ends {
        Ends::Well(text) => (false, text),
        Ends::Badly(text) | Ends::Refused(text) => (true, text),
    };
    let wrong = |why: &str| Err(format!("{}: {why}: {}", step.text(), seen.text));
    if seen.failed != failed {
        return wrong(if failed { "expected to fail" } else { "expected to work" });
    }
    if !seen.text.contains(text) {
        return wrong(&format!("expected {text:?} in the output"));
    }
    if matches!(step.ends, Ends::Badly(_)) && seen.text.contains("not allowed") {
        return wrong("it was refused");
    }
    if seen.text.contains(SECRET) {
        return wrong("it shows what nobody may see");
    }
    Ok(())
}

#[test]
fn a_working_day_takes_few_approvals() {
    if !editor::is_installed() {
        return skip_uninstalled("nvim");
    }
    let site = ScriptedServer::start_thread(docs);
    let docs = site.address.to_string();

    let setup = Setup::new();
    let project = Project::make(&setup);
    let shown = |path: &Path| path.display().to_string();
    let names = PathNames(vec![
        ("{src}", shown(&setup.path("home/src"))),
        ("{docs}", docs.clone()),
        ("{home}", shown(&setup.path("home"))),
        ("{other}", shown(&project.other)),
        ("{plugins}", shown(&setup.path("config/toold/plugins"))),
        ("{toolctl}", shown(toolctl())),
    ]);
    let config = config(&names, &docs);
    let daemon = setup.config(&config).start();
    let person = Person::start(&daemon);
    let mut cast = Cast {
        daemon: &daemon,
        project: &project,
        names: &names,
        person: &person,
        agent: Some(Agent::start(&daemon, &project.folder)),
        editor: Editor::start(&daemon, &project.folder),
    };
    let chosen = cast.editor.run("return day.choose('Yes')");
    assert!(!chosen.failed, "{}", chosen.text);

    let started = Instant::now();
    let mut wrong = Vec::new();
    let mut done = Vec::new();
    for (at, step) in day().iter().enumerate() {
        person.step_begins(at + 1, step.who());
        let begun = Instant::now();
        let seen = cast.act(step);
        let outcome = check(step, &seen);
        done.push(DoneStep { who: step.who(), text: step.text(), took: begun.elapsed(), failed: seen.failed });
        wrong.extend(outcome.err().map(|wrong| format!("step {}: {wrong}", at + 1)));
    }
    let took = started.elapsed();
    let grants = grants(&daemon);
    let replayed = cast.toolctl(&["permissions", "replay", "--since", "1d", "--level", "develop", "--json"]);
    let asked = person.asked();
    person.day_is_over();
    // The daemon that runs now is not the one that the harness started.
    let stopped = cast.toolctl(&["stop"]);
    drop(cast);
    person.join();
    until("the daemon has stopped", || daemon.processes().is_empty().then_some(()));

    let counted = print(&names, &done, &asked, took);
    check_replay(&replayed);
    assert!(!stopped.failed, "{}", stopped.text);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(done.len() >= 120, "a day has more than {} steps", done.len());
    assert!(!project.folder.join(".git/hooks/pre-commit").exists());
    assert!(grants.is_empty(), "only sessions were given something: {grants:?}");
    insta::assert_snapshot!("asks", lines(&names, &asked).join("\n"));
    assert!(counted.approvals <= ENOUGH, "{counted} are more than {ENOUGH}");
    let document = include_str!("../../../daemon/SECURITY.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(document.contains(&counted.to_string()), "daemon/SECURITY.md does not say {counted:?}: {counted}");
}

/// The day again at the level `develop`: it asks half as often at most, and frees nothing that was denied.
fn check_replay(replayed: &Seen) {
    let replay: Value = serde_json::from_str(&replayed.text).unwrap_or_else(|_| panic!("{}", replayed.text));
    let count = |name: &str| replay[name].as_u64().unwrap();
    let (before, after) = (count("asks_before"), count("asks_after"));
    println!("the day again at the level develop: {before} asks, then {after}, of {} decisions", count("decisions"));
    assert!(after * 2 <= before, "{replay}");
    let freed = replay["freed"].as_array().unwrap();
    assert!(freed.iter().all(|line| line["was_denied"] != json!(true)), "{replay}");
}

/// Grants that outlast a session.
fn grants(daemon: &TestDaemon) -> Vec<Value> {
    let listed = daemon.connect().result("permissions.list", json!({}))["grants"].take();
    listed.as_array().unwrap().iter().filter(|grant| grant["scope"] != "session").cloned().collect()
}
