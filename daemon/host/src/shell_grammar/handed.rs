//! Variables that a line hands to the programs that it starts: in front of a command, or exported before it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toold_engine::need::Word;

use super::arg::{Arg, WordPart};
use super::programs::aliases::SetVariable;
use super::programs::moved::{names_in_value, places};
use super::programs::{DECLARING, FileAccess, FileUse, exports};
use super::{LineItem, ShellWalk, SimpleCommand, check, variables};

/// Values of variables such as `GIT_TRACE` that name no file.
const NO_FILES: &[&str] = &["", "true", "false", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

impl ShellWalk<'_, '_, '_> {
    /// Whether no program gets a variable that the line sets.
    pub(super) fn is_the_shells_own(&self, name: &str) -> bool {
        variables::is_the_shells_own(name, self.surroundings.environment) && !self.state.hands_on(name)
    }

    /// The values that a builtin hands to programs, which may run them, for rules that deny or ask.
    pub(super) fn handed_values(&self, words: &[Arg]) -> Option<String> {
        let (name, rest) = words.split_first()?;
        let name = name.literal().filter(|name| DECLARING.contains(name))?;
        let exports = exports(name, rest);
        let is_handed = |variable: &str| exports || !self.is_the_shells_own(variable);
        let mut texts = Vec::new();
        for word in rest {
            let text = word.literal().unwrap_or(&word.raw);
            match text.split_once('=') {
                Some((variable, value)) => {
                    let variable = variable.trim_end_matches('+');
                    let is_harmless = variables::is_harmless_for_programs(variable, word.literal().map(|_| value));
                    texts.extend((is_handed(variable) && !is_harmless).then(|| variables::script_of(variable, text)));
                }
                // One that the line has set before.
                None => match self.state.variable(text) {
                    Some(Some([WordPart::Text(value)])) if exports => texts.push(format!("{text}={value}")),
                    _ => {}
                },
            }
        }
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// The variables that the line has set so far to values that are known, whoever gets them.
    pub(super) fn set_variables(&self) -> Vec<SetVariable> {
        let words = self.found.iter().filter_map(|found| match found {
            LineItem::Command(command) => command.words.as_deref(),
            LineItem::Redirect(_) | LineItem::File(_) => None,
        });
        let declares = |word: &Word| DECLARING.contains(&word.text.as_str());
        let sets = |words: &&[Word]| words.len() == 1 || words.first().is_some_and(declares);
        let assignments = words.filter(sets).flatten().filter(|word| word.literal);
        let variables = assignments.filter_map(|word| word.text.split_once('='));
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The files and folders that the value of a variable in front of a command names: programs may write there. `value` is `None` if
    /// it is not known; then `assignment` has names.
    pub(super) fn places_of_variable(&self, name: &str, value: Option<&str>, assignment: &str) -> Vec<String> {
        let here = [self.surroundings.cwd.to_owned()];
        places_of(name, value, assignment, self.state.folders().unwrap_or(&here), self.surroundings.folders)
    }

    pub(super) fn settle_variables(&mut self, assigned: Range<usize>) {
        let (before, run) = self.found.split_at_mut(assigned.end);
        settle(&mut before[assigned.start..], run);
    }

    /// The files that exported variables make programs write.
    pub(super) fn files_of_exports(&mut self, words: &[Arg], target: &str) {
        let Some((name, rest)) = words.split_first() else { return };
        if !name.literal().is_some_and(|name| exports(name, rest)) {
            return;
        }
        for word in rest {
            let variable = word.start().split('=').next().unwrap_or_default();
            let value = word.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value);
            if word.start().contains('=') {
                self.file_of_variable(variable, value, target);
            }
        }
    }

    /// The file that a variable makes programs write, or the folder that they read: `GIT_TRACE=FILE`, `GIT_DIR=FOLDER`. `value`
    /// is `None` if it is unknown.
    pub(super) fn file_of_variable(&mut self, name: &str, value: Option<&str>, target: &str) {
        let how = match (variables::names_written_file(name), variables::names_read_folder(name)) {
            (true, _) => FileAccess::Write,
            (false, true) => FileAccess::List,
            (false, false) => return,
        };
        if value.is_some_and(|value| NO_FILES.contains(&value)) {
            return;
        }
        let mut files = Vec::new();
        let known = value.map(|value| FileUse { is_operand: false, ..FileUse::new(how, Arg::text(value)) });
        let is_known = known.is_some_and(|file| self.named_file(&file, &mut files).is_ok());
        if let (false, Some(LineItem::Command(command))) = (is_known, self.found.last_mut()) {
            command.hides_file = true;
            command.doubt("the file that the variable makes programs read or write is unknown");
        }
        for mut file in files {
            target.clone_into(&mut file.command);
            self.found.push(LineItem::File(file));
        }
    }
}

/// Variables with lists of folders in which programs look for something.
const SEARCHED: &[&str] = &[
    "PATH",
    "CDPATH",
    "MANPATH",
    "PYTHONPATH",
    "NODE_PATH",
    "CLASSPATH",
    "PERL5LIB",
    "RUBYLIB",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "PWD",
    "OLDPWD",
];

fn places_of(
    name: &str,
    value: Option<&str>,
    assignment: &str,
    folders: &[PathBuf],
    session_folders: &[Cow<Path>],
) -> Vec<String> {
    let value = value.or(assignment.split_once('=').map(|(_, value)| value)).filter(|_| !SEARCHED.contains(&name));
    places(value.into_iter().flat_map(names_in_value), folders, session_folders)
}

fn only_reads(found: &LineItem) -> bool {
    match found {
        LineItem::Command(command) => command.reads_only,
        LineItem::Redirect(_) | LineItem::File(_) => true,
    }
}

/// Whether it runs the project's own tests, whose rule is for its code wherever that lies.
fn runs_tests(found: &LineItem) -> bool {
    let LineItem::Command(SimpleCommand { words: Some(words), .. }) = found else { return only_reads(found) };
    let texts: Vec<&str> = words.iter().map(|word| if word.literal { word.text.as_str() } else { "" }).collect();
    let texts = texts.strip_prefix(&["uv", "run"]).unwrap_or(&texts);
    let program = texts.first().map(|name| name.rsplit('/').next().unwrap_or_default()).unwrap_or_default();
    match (program, texts.get(1..3)) {
        ("pytest" | "py.test", _) => true,
        (python, Some(["-m", "pytest" | "unittest"])) => python.starts_with("python"),
        _ => false,
    }
}

/// The commands that get a variable.
struct Receivers {
    only_read: bool,
    only_read_or_test: bool,
}

impl Receivers {
    fn of<'f>(run: impl Iterator<Item = &'f LineItem> + Clone) -> Self {
        let only_read_or_test = run.clone().all(|found| only_reads(found) || runs_tests(found));
        Self { only_read: run.clone().all(only_reads), only_read_or_test }
    }

    /// Rules that deny are about the values of variables that are set for commands which may run them. Those that only read
    /// do not, but for variables that name a program. `words` are those of the form `NAME=value`.
    fn settle(&self, variable: &mut SimpleCommand, words: usize) {
        let is_harmless = |word: &Word| {
            let assigned = word.text.split_once('=').filter(|_| word.literal);
            assigned.is_some_and(|(name, value)| variables::is_harmless_for_tests(name, Some(value)))
        };
        let assigned = variable.words.as_deref().and_then(|all| all.get(words..)).unwrap_or_default();
        let is_for_tests = self.only_read_or_test && !assigned.is_empty() && assigned.iter().all(is_harmless);
        if is_for_tests && variable.unsure.is_none() {
            variable.reads_only = true;
            variable.script = None;
        }
        let names = |line: &str| variables::names_program(line.split(['=', '+']).next().unwrap_or_default());
        if self.only_read && !variable.script.as_deref().is_some_and(|script| script.lines().any(names)) {
            variable.script = None;
        }
        if self.only_read {
            variable.discards.clear();
        }
    }
}

/// Judges the variables in front of a command by what it runs.
pub(super) fn settle(variables: &mut [LineItem], run: &[LineItem]) {
    if run.is_empty() {
        return;
    }
    let receivers = Receivers::of(run.iter());
    for found in variables {
        if let LineItem::Command(variable) = found {
            receivers.settle(variable, 0);
        }
    }
}

/// Judges the variables that builtins export by all commands of the line: any of them may get them. `session_folders` and `cwd` are
/// the session's folders and the folder of the line.
pub(super) fn settle_exports(found: &mut [LineItem], session_folders: &[Cow<Path>], cwd: &Path) {
    let is_export = |found: &LineItem| match found {
        LineItem::Command(SimpleCommand { words: Some(words), .. }) => {
            words.first().is_some_and(|name| name.literal && DECLARING.contains(&name.text.as_str()))
        }
        _ => false,
    };
    if !found.iter().any(is_export) {
        return;
    }
    let receivers = Receivers::of(found.iter().filter(|found| !is_export(found)));
    let mut folders = vec![cwd.to_owned()];
    let mut set: HashMap<String, String> = HashMap::new();
    for found in found.iter() {
        let LineItem::Command(command) = found else { continue };
        if let Some(folder) = command.folder.as_ref().filter(|folder| !folders.contains(folder)) {
            folders.push(folder.clone());
        }
        if let Some((name, _)) = command.target.split_once('=').filter(|(name, _)| check::is_name(name)) {
            set.insert(name.to_owned(), command.target.clone());
        }
    }
    for found in found.iter_mut().filter(|found| is_export(found)) {
        if let LineItem::Command(export) = found {
            let words = export.words.iter().flatten().skip(1).map(|word| word.text.as_str());
            // A variable that the line has set before stands there without its value.
            let assigned = words
                .filter_map(|word| if word.contains('=') { Some(word) } else { set.get(word).map(String::as_str) });
            let places = assigned.filter_map(|text| Some((text.split_once('=')?.0, text)));
            export.discards =
                places.flat_map(|(name, text)| places_of(name, None, text, &folders, session_folders)).collect();
            receivers.settle(export, 1);
        }
    }
}
