//! The programs of agents, recorded so that the daemon knows an agent by more than the name that its client gives itself.
//! `[agents.NAME] level` raises the level of that program alone.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toold_client::place::state_folder;
use toold_proto::agent_programs::{AGENT_PROGRAMS, AgentProgram, AgentPrograms, ProgramFile};

use crate::commands::hook::HookAgent;
use crate::config_file;
use crate::person::PersonWrites;

/// Programs that run others' code: one of them says nothing about who the client is.
const INTERPRETERS: &[&str] = &[
    "node", "nodejs", "deno", "bun", "python", "pypy", "ruby", "perl", "php", "java", "electron", "sh", "bash", "dash",
    "zsh", "ksh", "fish", "busybox", "env", "toolctl",
];

/// The state of the record about an agent's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramState {
    Recorded,
    /// The recorded file is another one now, such as after an upgrade.
    Changed,
    NotRecorded,
}

impl ProgramState {
    pub(super) fn of(agent: HookAgent) -> Self {
        let recorded = read().unwrap_or_default();
        match recorded.agents.get(agent.name()) {
            Some(program) if file_of(&program.path).is_ok_and(|file| file == program.file) => Self::Recorded,
            Some(_) => Self::Changed,
            None => Self::NotRecorded,
        }
    }
}

/// The program of an agent: the given one, or that which `PATH` leads to.
///
/// # Errors
/// There is none, or it cannot be told from others; as a sentence for the user.
pub(super) fn program_of(agent: HookAgent, given: Option<&Path>) -> anyhow::Result<AgentProgram> {
    let found = match given {
        Some(given) => given.to_owned(),
        None => super::found::in_path(agent.program())
            .with_context(|| format!("there is no program {} in PATH", agent.program()))?,
    };
    let path = found.canonicalize().with_context(|| format!("can't find {}", found.display()))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if INTERPRETERS.contains(&plain) {
        bail!("{} runs code of others", path.display());
    }
    let mut start = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(4).read_to_end(&mut start))
        .with_context(|| format!("can't read {}", path.display()))?;
    if start != b"\x7fELF" {
        bail!("{} is a script, so that the program of its interpreter runs, as for others", path.display());
    }
    Ok(AgentProgram { file: file_of(&path)?, path })
}

fn file_of(path: &Path) -> anyhow::Result<ProgramFile> {
    let found = std::fs::metadata(path).with_context(|| format!("can't look at {}", path.display()))?;
    let changed = (found.ctime(), found.ctime_nsec());
    Ok(ProgramFile { device: found.dev(), inode: found.ino(), bytes: found.size(), changed })
}

/// Records the program of an agent, or forgets it for `None`. True if that changed something.
pub(super) fn record(agent: HookAgent, program: Option<AgentProgram>, right: &PersonWrites) -> anyhow::Result<bool> {
    let mut programs = read()?;
    let before = programs.clone();
    match program {
        Some(program) => _ = programs.agents.insert(agent.name().to_owned(), program),
        None => _ = programs.agents.remove(agent.name()),
    }
    if programs == before {
        return Ok(false);
    }
    let file = file()?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    }
    config_file::replace(&file, &serde_json::to_string(&programs)?, right)?;
    Ok(true)
}

fn read() -> anyhow::Result<AgentPrograms> {
    let file = file()?;
    let Some(text) = config_file::read(&file)? else { return Ok(AgentPrograms::default()) };
    serde_json::from_str(&text).with_context(|| format!("can't read {}: remove it, and install again", file.display()))
}

fn file() -> anyhow::Result<PathBuf> {
    Ok(state_folder().context("there is no state folder: set HOME or XDG_STATE_HOME")?.join(AGENT_PROGRAMS))
}
