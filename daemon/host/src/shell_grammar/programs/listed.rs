//! The program tables as lists, for tests that run what they describe.

use super::known::{Operand, ProgramTable, Takes, entries};

/// An entry: a program, or a subcommand with the words before it.
#[derive(Debug)]
pub struct TableListing {
    /// `["git", "stash", "list"]`
    pub words: Vec<String>,
    pub reads_only: bool,
    /// Options that are not listed are harmless as well.
    pub closed: bool,
    /// Their spellings, sorted, each with the number of words that it takes and whether a value may be attached.
    pub options: Vec<(String, usize, bool)>,
    /// Those of them that choose another folder of this machine, and those that choose another place.
    pub folders: Vec<String>,
    pub places: Vec<String>,
    /// The kinds of operands, as in the tables; `*` is left out.
    pub operands: Vec<&'static str>,
}

/// All entries, sorted by their words.
pub fn listings() -> Vec<TableListing> {
    let mut found = Vec::new();
    for (name, table) in entries() {
        add(&mut found, vec![name.clone()], table);
    }
    found.sort_by(|one, other| one.words.cmp(&other.words));
    found
}

fn add(found: &mut Vec<TableListing>, words: Vec<String>, table: &ProgramTable) {
    for (name, subcommand) in &table.subcommands {
        add(found, [words.clone(), vec![name.clone()]].concat(), subcommand);
    }
    let option = |(name, takes): (&String, &Takes)| {
        let (words, attached) = match takes {
            Takes::Nothing => (0, false),
            Takes::Words(count) => (*count, true),
            Takes::Attached | Takes::WriteAttached => (0, true),
            Takes::Read | Takes::Write | Takes::Output | Takes::Folder | Takes::Place | Takes::Unsure(_) => (1, true),
        };
        (name.clone(), words, attached)
    };
    let mut options: Vec<_> = table.options.iter().map(option).collect();
    options.sort();
    let kind = |(kind, _): &(Operand, bool)| match kind {
        Operand::Text => "text",
        Operand::Read => "read",
        Operand::Tree => "tree",
        Operand::List => "list",
        Operand::Write => "write",
    };
    let taking = |wanted: Takes| {
        let mut names: Vec<String> =
            table.options.iter().filter(|(_, takes)| **takes == wanted).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    };
    let (folders, places) = (taking(Takes::Folder), taking(Takes::Place));
    let operands = table.operands.iter().map(kind).collect();
    found.push(TableListing {
        words,
        reads_only: table.reads_only,
        closed: table.closed,
        options,
        folders,
        places,
        operands,
    });
}
