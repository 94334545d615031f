//! The agent, in a process of its own, as the daemon sees Claude Code.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use toold_tests::{TestDaemon, toolctl};

use crate::working_day::Seen;

pub(crate) struct Agent {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Agent {
    /// In this folder, with an environment like a person's shell.
    pub(crate) fn start(daemon: &TestDaemon, folder: &Path) -> Self {
        let script = daemon.setup.path("agent.py");
        std::fs::write(&script, include_str!("agent.py")).unwrap();
        let mut command = daemon.setup.command("python3".as_ref());
        command.arg(script).arg(toolctl()).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let requests = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, requests, answers }
    }

    #[track_caller]
    fn say(&mut self, request: &Value) -> Value {
        let requests = self.requests.as_mut().expect("it is taken only when the agent ends");
        writeln!(requests, "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the agent failed at {request}: {error}: {line:?}"))
    }

    /// Calls a tool over MCP.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Seen {
        let answer = self.say(&json!({"call": {"name": name, "arguments": arguments}}));
        let Some(result) = answer.get("result") else {
            return Seen { text: answer.to_string(), failed: true };
        };
        let texts = result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        Seen { text: texts.collect::<Vec<_>>().join("\n"), failed: result["isError"] == true }
    }

    /// Runs a line in its own shell, which the daemon does not see.
    pub(crate) fn shell(&mut self, line: &str) -> Seen {
        let done = self.say(&json!({"shell": line}));
        Seen { text: done["output"].as_str().unwrap_or_default().to_owned(), failed: done["status"] != 0 }
    }

    /// Waits until the list of tools has this text, by the daemon's notifications.
    pub(crate) fn tools_until(&mut self, text: &str) -> Seen {
        let listed = self.say(&json!({"tools_until": text}));
        Seen { text: listed.to_string(), failed: listed["listed"] != true }
    }

    /// Starts the bridge again, as after the daemon has gone.
    pub(crate) fn reconnect(&mut self) -> Seen {
        let done = self.say(&json!({"reconnect": true}));
        Seen { text: done.to_string(), failed: false }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.requests.take());
        if std::thread::panicking() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
