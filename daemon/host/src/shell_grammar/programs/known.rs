//! The program tables, parsed once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!($name))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "archives.toml",
    "build.toml",
    "clouds.toml",
    "coreutils.toml",
    "databases.toml",
    "deploy.toml",
    "forges.toml",
    "git.toml",
    "infra.toml",
    "network.toml",
    "runners.toml",
    "shell.toml",
    "system.toml",
    "text.toml",
    "wrappers.toml"
];

/// The content of one file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    version: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for whoever reads the file")]
    manual: Option<Manual>,
    #[serde(default)]
    options: Vec<OptionGroup>,
    program: Vec<TableEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "for whoever reads the file")]
enum Manual {
    One(String),
    Several(Vec<String>),
}

/// Options that several entries of a file share.
#[derive(Deserialize)]
struct OptionGroup {
    name: String,
    #[serde(flatten)]
    lists: HashMap<String, toml::Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct TableEntry {
    names: Vec<String>,
    version: Option<String>,
    reads_only: bool,
    closed: bool,
    runs_nothing: bool,
    #[serde(rename = "use")]
    uses: String,
    flags: String,
    values: String,
    optional: String,
    read: String,
    write: String,
    write_optional: String,
    output: String,
    folder: String,
    place: String,
    changes: String,
    lists_with: String,
    unsure: HashMap<String, String>,
    operands: String,
    first_unless: String,
    recursive: String,
    number: bool,
    one_dash: bool,
    in_order: bool,
    command: Option<usize>,
    assignments: bool,
    rest: String,
    open: bool,
    subcommand: Vec<TableEntry>,
}

/// The arguments and the effect of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// Takes this many words.
    Words(usize),
    /// A value, only if it is attached.
    Attached,
    Read,
    Write,
    /// The file that the command is meant to write: approving the command approves it.
    Output,
    /// A file that is written, only if it is attached.
    WriteAttached,
    Folder,
    /// Takes one word, which chooses another machine, account or repository: a wildcard covers it only where the pattern
    /// shows the option.
    Place,
    /// The option is known to do more; the text says what.
    Unsure(String),
}

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Text,
    Read,
    Tree,
    List,
    Write,
}

/// A program, or a subcommand of one.
#[derive(Debug, Default)]
pub(crate) struct ProgramTable {
    pub(crate) name: String,
    /// The first names of its entry and of those above: `git log` for `git whatchanged`.
    pub(crate) entry: String,
    /// The version that the entry was written for.
    pub(crate) version: String,
    pub(crate) reads_only: bool,
    pub(crate) closed: bool,
    /// No option and no operand names a command or a text that it runs.
    pub(crate) runs_nothing: bool,
    pub(crate) options: HashMap<String, Takes>,
    /// The other spellings of options.
    pub(crate) spellings: HashMap<String, Vec<String>>,
    /// Options that make a read-only program change something.
    pub(crate) changes: Vec<String>,
    /// It only reads with one of these options, or without operands.
    pub(crate) lists_with: Vec<String>,
    /// The kinds of operands; the flag marks the one that repeats.
    pub(crate) operands: Vec<(Operand, bool)>,
    pub(crate) first_unless: Vec<String>,
    pub(crate) recursive: Vec<String>,
    pub(crate) number: bool,
    pub(crate) one_dash: bool,
    pub(crate) in_order: bool,
    pub(crate) command: Option<usize>,
    pub(crate) assignments: bool,
    pub(crate) rest_is_text: bool,
    pub(crate) rest_is_unsure: bool,
    /// The entry whose options the words after `--` are.
    pub(crate) rest_of: Option<String>,
    pub(crate) open: bool,
    pub(crate) subcommands: HashMap<String, ProgramTable>,
}

impl ProgramTable {
    /// Whether its operands are files that it removes or changes where they are, and none of them is a copy's target.
    pub(crate) fn removes_or_changes(&self) -> bool {
        self.operands.iter().all(|(kind, _)| matches!(kind, Operand::Write | Operand::Text))
    }

    /// Whether one of its options selects the files that it reads or writes.
    pub(crate) fn has_choosing_options(&self) -> bool {
        let is_plain = |takes: &Takes| matches!(takes, Takes::Nothing | Takes::Words(_) | Takes::Attached);
        !self.recursive.is_empty() || !self.first_unless.is_empty() || !self.options.values().all(is_plain)
    }
}

static KNOWN: LazyLock<HashMap<String, ProgramTable>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for (file, text) in FILES {
        // Tests parse each file, so a release cannot fail here; without a file, its programs are unknown.
        match read(text) {
            Ok(programs) => known.extend(programs),
            Err(error) => tracing::error!("the table {file} cannot be read: {error}"),
        }
    }
    known
});

/// Each entry of a program or a subcommand.
#[cfg(test)]
pub(crate) fn all_entries() -> Vec<&'static ProgramTable> {
    let mut waiting: Vec<&ProgramTable> = entries().map(|(_, entry)| entry).collect();
    let mut all = Vec::new();
    while let Some(entry) = waiting.pop() {
        waiting.extend(entry.subcommands.values());
        all.push(entry);
    }
    all
}

/// Reads the tables, if nobody has before. That takes longer than judging most lines.
pub(crate) fn load_tables() {
    LazyLock::force(&KNOWN);
}

/// The entry of a program by its name.
pub(crate) fn find(name: &str) -> Option<&'static ProgramTable> {
    KNOWN.get(name)
}

/// All entries of programs, in no order.
pub(super) fn entries() -> impl Iterator<Item = (&'static String, &'static ProgramTable)> {
    KNOWN.iter()
}

fn read(text: &str) -> Result<Vec<(String, ProgramTable)>, String> {
    let file: TableFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut groups = HashMap::new();
    for group in file.options {
        let mut entry = toml::Table::new();
        entry.extend(group.lists);
        let entry: TableEntry = entry.try_into().map_err(|error| format!("options {}: {error}", group.name))?;
        groups.insert(group.name, entry);
    }
    let mut programs = Vec::new();
    for entry in &file.program {
        for name in &entry.names {
            programs.push((name.clone(), known(name, first_name(entry), entry, &file.version, &groups)?));
        }
    }
    Ok(programs)
}

fn first_name(entry: &TableEntry) -> &str {
    entry.names.first().map(String::as_str).unwrap_or_default()
}

fn known(
    name: &str,
    entry_name: &str,
    entry: &TableEntry,
    version: &str,
    groups: &HashMap<String, TableEntry>,
) -> Result<ProgramTable, String> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let version = entry.version.as_deref().unwrap_or(version);
    let mut known = ProgramTable {
        name: name.to_owned(),
        entry: entry_name.to_owned(),
        version: version.to_owned(),
        reads_only: entry.reads_only,
        closed: entry.closed,
        runs_nothing: entry.runs_nothing || entry.closed,
        changes: words(&entry.changes),
        lists_with: words(&entry.lists_with),
        first_unless: words(&entry.first_unless),
        recursive: words(&entry.recursive),
        number: entry.number,
        one_dash: entry.one_dash,
        in_order: entry.in_order || entry.command.is_some(),
        command: entry.command,
        assignments: entry.assignments,
        rest_is_text: !matches!(entry.rest.as_str(), "" | "unsure"),
        rest_of: Some(entry.rest.clone()).filter(|rest| !matches!(rest.as_str(), "" | "unsure" | "text*")),
        rest_is_unsure: entry.rest == "unsure",
        open: entry.open,
        ..ProgramTable::default()
    };
    for group in entry.uses.split_whitespace() {
        let group = groups.get(group).ok_or_else(|| format!("{name}: there is no [[options]] {group:?}"))?;
        add_options(name, &mut known, group)?;
    }
    add_options(name, &mut known, entry)?;
    for kind in entry.operands.split_whitespace() {
        let (kind, repeats) = kind.strip_suffix('*').map_or((kind, false), |kind| (kind, true));
        let kind = match kind {
            "text" => Operand::Text,
            "read" => Operand::Read,
            "tree" => Operand::Tree,
            "list" => Operand::List,
            "write" => Operand::Write,
            other => return Err(format!("{name}: there is no kind of operand {other:?}")),
        };
        known.operands.push((kind, repeats));
    }
    for subcommand in &entry.subcommand {
        for sub in &subcommand.names {
            let full = format!("{name} {sub}");
            let first = format!("{entry_name} {}", first_name(subcommand));
            known.subcommands.insert(sub.clone(), self::known(&full, &first, subcommand, version, groups)?);
        }
    }
    Ok(known)
}

fn add_options(name: &str, known: &mut ProgramTable, entry: &TableEntry) -> Result<(), String> {
    let lists = [
        (&entry.flags, Takes::Nothing),
        (&entry.values, Takes::Words(1)),
        (&entry.optional, Takes::Attached),
        (&entry.read, Takes::Read),
        (&entry.write, Takes::Write),
        (&entry.write_optional, Takes::WriteAttached),
        (&entry.output, Takes::Output),
        (&entry.folder, Takes::Folder),
        (&entry.place, Takes::Place),
    ];
    for (list, takes) in lists {
        for spellings in list.split_whitespace() {
            let all: Vec<&str> = spellings.split('|').collect();
            for spelling in &all {
                let others = all.iter().filter(|other| *other != spelling).map(|other| (*other).to_owned());
                known.spellings.entry((*spelling).to_owned()).or_default().extend(others);
            }
        }
        for option in list.split_whitespace().flat_map(|spellings| spellings.split('|')) {
            let (option, takes) = match option.rsplit_once(':') {
                Some((option, count)) if takes == Takes::Words(1) => {
                    let count = count.parse().map_err(|_| format!("{name}: {option}:{count}: expected a number"))?;
                    (option, Takes::Words(count))
                }
                _ => (option, takes.clone()),
            };
            if !option.starts_with(['-', '+']) {
                return Err(format!("{name}: {option:?} is no option"));
            }
            known.options.insert(option.to_owned(), takes);
        }
    }
    for (option, why) in &entry.unsure {
        known.options.insert(option.clone(), Takes::Unsure(why.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_can_be_read_and_none_names_a_program_twice() {
        let mut seen = HashMap::new();
        for (file, text) in FILES {
            let table: TableFile = toml::from_str(text).unwrap();
            let of_several = |entry: &&TableEntry| table.version.contains(", ") && entry.version.is_none();
            let without: Vec<&str> = table.program.iter().filter(of_several).map(first_name).collect();
            assert!(without.is_empty(), "{file}: {without:?} have the versions of all programs of the file");
            for (name, known) in read(text).unwrap_or_else(|error| panic!("{file}: {error}")) {
                assert!(!known.version.is_empty(), "{file}: {name} has no version");
                assert_eq!(seen.insert(name.clone(), file), None, "{name} is in {file} too");
            }
        }
        assert!(seen.len() > 100, "{}", seen.len());
        for entry in all_entries() {
            let program = entry.rest_of.as_deref();
            assert!(program.is_none_or(|program| seen.contains_key(program)), "{}: rest {program:?}", entry.name);
        }
    }

    #[test]
    fn each_table_in_the_folder_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shell_grammar/programs");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".toml") && name != "effects.toml")
            .collect();
        there.sort();
        let built_in: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, built_in);
    }
}
