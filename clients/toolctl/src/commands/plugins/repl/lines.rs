//! Lines of input: edited at a terminal, with history and completion, or read from stdin.

use std::io::{self, IsTerminal};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::terminal;

use super::completion::LuaCompleter;

/// How many inputs the history keeps.
const HISTORY: usize = 1_000;

pub(super) enum Input {
    Line(String),
    /// Ctrl-C: what was typed so far does not count.
    Abandoned,
    End,
}

pub(super) enum Lines {
    /// `None` only while a line is read.
    Terminal(Option<Box<LineEditor>>),
    Stdin,
}

pub(super) struct LineEditor {
    editor: Editor<LuaCompleter, FileHistory>,
    history: Option<PathBuf>,
}

impl Lines {
    pub(super) fn open() -> anyhow::Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Stdin);
        }
        terminal::guard()?;
        let config = Config::builder().max_history_size(HISTORY)?.auto_add_history(false).build();
        let mut editor = Editor::with_config(config).context("can't use the terminal")?;
        editor.set_helper(Some(LuaCompleter::default()));
        let history = history_file();
        if let Some(file) = &history {
            // There is none yet, or it cannot be read: the prompt works without.
            let _ = editor.load_history(file);
        }
        Ok(Self::Terminal(Some(Box::new(LineEditor { editor, history }))))
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line. `is_first`: of an input.
    pub(super) async fn next(&mut self, is_first: bool) -> anyhow::Result<Input> {
        match self {
            Self::Stdin => {
                let read = || {
                    let mut line = String::new();
                    io::stdin().read_line(&mut line).map(|length| (length > 0).then_some(line))
                };
                let line = tokio::task::spawn_blocking(read).await?.context("can't read stdin")?;
                Ok(line.map_or(Input::End, |line| Input::Line(line.trim_end_matches('\n').to_owned())))
            }
            Self::Terminal(place) => {
                let mut editor = place.take().context("a line is being read already")?;
                let read = move || {
                    let read = editor.editor.readline(if is_first { "> " } else { "... " });
                    (editor, read)
                };
                let (editor, read) = tokio::task::spawn_blocking(read).await?;
                *place = Some(editor);
                match read {
                    Ok(line) => Ok(Input::Line(line)),
                    Err(ReadlineError::Interrupted) => Ok(Input::Abandoned),
                    Err(ReadlineError::Eof) => Ok(Input::End),
                    Err(error) => Err(error).context("can't read from the terminal"),
                }
            }
        }
    }

    /// Adds an input to the history.
    pub(super) fn remember(&mut self, source: &str) {
        let Self::Terminal(Some(editor)) = self else { return };
        // Without a history, only the arrow keys do less.
        let _ = editor.editor.add_history_entry(source);
        let _ = editor.history.as_ref().map(|file| editor.editor.append_history(file));
        if let Some(helper) = editor.editor.helper_mut() {
            helper.learn(source);
        }
    }
}

/// In toold's state folder. Inputs may hold secrets: only the user may read it.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("toold");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("repl-history"))
}
