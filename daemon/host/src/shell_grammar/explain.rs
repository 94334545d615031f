//! Explains to people how a line was parsed.

use toold_engine::effects::EffectSet;
use toold_engine::need::Need;

use super::{LineItem, Note, Surroundings, read};

/// One command of a line, or one file that it redirects to, and the permissions it needs.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The command as it was understood; empty for a redirect.
    pub command: String,
    /// The program and the version that the table was written for; `None` for a program that no table knows.
    pub program: Option<(String, String)>,
    /// The words with a meaning to the program.
    pub notes: Vec<Note>,
    pub unsure: Option<String>,
    pub reads_only: bool,
    pub effects: EffectSet,
    /// The command's own need first, then the files that it names.
    pub needs: Vec<Need>,
}

impl Explained {
    /// Needs that do not belong to a command.
    pub fn of_needs(needs: Vec<Need>) -> Self {
        Self {
            command: String::new(),
            program: None,
            notes: Vec::new(),
            unsure: None,
            reads_only: false,
            effects: EffectSet::EMPTY,
            needs,
        }
    }
}

/// Parses a line as [`needs`](super::needs) does, and reports the result.
pub fn explain(line: &str, surroundings: &mut Surroundings) -> Vec<Explained> {
    let mut all: Vec<Explained> = Vec::new();
    for (found, needs) in read(line, surroundings) {
        match found {
            LineItem::File(_) if !all.is_empty() => {
                if let Some(last) = all.last_mut() {
                    last.needs.extend(needs);
                }
            }
            LineItem::Command(command) => all.push(Explained {
                command: command.target.clone(),
                program: command.known.map(|known| (known.name.clone(), known.version.clone())),
                notes: command.notes,
                unsure: command.unsure,
                reads_only: command.reads_only,
                effects: needs.first().map_or(EffectSet::EMPTY, Need::effects_within),
                needs,
            }),
            LineItem::File(_) | LineItem::Redirect(_) => all.push(Explained::of_needs(needs)),
        }
    }
    all
}
