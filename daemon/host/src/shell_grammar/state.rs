//! The known state of the shell during a line: its working folder and its variables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::arg::WordPart;
use super::variables;

/// With more possible folders than this, a command may be anywhere.
const MAX_FOLDERS: usize = 8;

/// Bytes of a path: Linux opens none that is longer (`PATH_MAX`).
pub(super) const MAX_PATH: usize = 4096;

/// The variables that the shell itself sets, or that change how it parses.
const SPECIAL: &[&str] =
    &["IFS", "PATH", "CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShellState {
    /// Its possible folders, as `cd` computes them: links are not resolved. `None` if it may be anywhere.
    folders: Option<Vec<PathBuf>>,
    /// Variables that the line has set; `None` if the value is unknown.
    variables: BTreeMap<String, Option<Vec<WordPart>>>,
    /// Variables that may contain, or may have contained, something else than a decimal number that the line has set.
    not_numbers: BTreeSet<String>,
    /// Variables that the line has exported, so that programs get them.
    exported: BTreeSet<String>,
    /// Arrays whose indices are texts (`declare -A`), which the shell does not evaluate.
    associative: BTreeSet<String>,
    /// `set -a`: every variable is exported.
    exports_all: bool,
    /// The shell was started by a command of the line, which may have given it other variables than the line got.
    is_child: bool,
    /// The functions that the line has defined, and whether calling one leaves the shell as it is.
    functions: BTreeMap<String, bool>,
    /// Something ran that can have changed anything.
    is_lost: bool,
}

impl ShellState {
    pub(super) fn new(cwd: &Path) -> Self {
        Self {
            folders: Some(vec![cwd.to_owned()]),
            variables: BTreeMap::new(),
            not_numbers: BTreeSet::new(),
            exported: BTreeSet::new(),
            associative: BTreeSet::new(),
            exports_all: false,
            is_child: false,
            functions: BTreeMap::new(),
            is_lost: false,
        }
    }

    /// For a shell that this one starts. It inherits the exported variables, and which ones are exported is unknown.
    pub(super) fn for_child(&self) -> Self {
        let variables = self.variables.keys().map(|name| (name.clone(), None)).collect();
        Self { variables, functions: BTreeMap::new(), is_child: true, ..self.clone() }
    }

    pub(super) fn lose(&mut self) {
        self.is_lost = true;
        self.folders = None;
    }

    /// Only the folder is known: of a line that never changes it.
    pub(super) fn lose_all_but_folder(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn define(&mut self, function: &str, leaves_shell: bool) {
        self.functions.insert(function.to_owned(), leaves_shell);
    }

    pub(super) fn forget_functions(&mut self) {
        self.functions.clear();
    }

    /// Whether a call of this name leaves the shell as it is, if it certainly is a function of the line.
    pub(super) fn function(&self, name: &str) -> Option<bool> {
        self.functions.get(name).copied().filter(|_| !self.is_lost)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub(super) fn folders(&self) -> Option<&[PathBuf]> {
        self.folders.as_deref()
    }

    pub(super) fn export(&mut self, name: &str) {
        self.exported.insert(name.to_owned());
    }

    pub(super) fn declare_associative(&mut self, name: &str) {
        self.associative.insert(name.to_owned());
    }

    pub(super) fn is_associative(&self, name: &str) -> bool {
        !self.is_lost && self.associative.contains(name)
    }

    pub(super) fn export_all(&mut self) {
        self.exports_all = true;
    }

    /// Whether programs get a variable that the line sets.
    pub(super) fn hands_on(&self, name: &str) -> bool {
        self.exports_all || self.exported.contains(name)
    }

    /// Changes the folder; `None` if the new one is unknown.
    pub(super) fn enter(&mut self, folder: Option<&str>) {
        self.folders = match (self.folders.take(), folder.filter(|folder| folder.len() <= MAX_PATH)) {
            (_, Some(folder)) if folder.starts_with('/') => Some(vec![logical(Path::new(folder))]),
            (Some(folders), Some(folder)) => {
                Some(folders.into_iter().map(|before| logical(&before.join(folder))).collect())
            }
            (_, None) | (None, _) => None,
        };
        self.variables.insert("OLDPWD".to_owned(), None);
    }

    pub(super) fn enter_one_of(&mut self, folders: &[PathBuf]) {
        self.folders = (folders.len() <= MAX_FOLDERS).then(|| folders.iter().map(|folder| logical(folder)).collect());
        self.variables.insert("OLDPWD".to_owned(), None);
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Whether the line has assigned at most numbers to a variable, in whatever order its commands ran. So if the line's
    /// environment lacks the variable, it is unset or contains a number.
    pub(super) fn sets_only_numbers(&self, name: &str) -> bool {
        !self.is_lost && !self.is_child && !self.not_numbers.contains(name)
    }

    /// The value that the line has assigned to a variable. The outer `None`: the line has not set it.
    pub(super) fn variable(&self, name: &str) -> Option<Option<&[WordPart]>> {
        match self.is_lost {
            true => Some(None),
            false => self.variables.get(name).map(Option::as_deref),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Option<Vec<WordPart>>) {
        if SPECIAL.contains(&name) {
            self.lose();
        }
        // It may contain another value than the assigned one.
        let value = value.filter(|_| !variables::is_special(name));
        // The output of a command that counts, which is empty if it fails: that is 0.
        let is_number = |value: &[WordPart]| is_decimal(value) || value == [WordPart::Maybe];
        if !value.as_deref().is_some_and(is_number) {
            self.not_numbers.insert(name.to_owned());
        }
        self.variables.insert(name.to_owned(), value);
    }

    /// The common knowledge of two possible states.
    pub(super) fn or(&mut self, other: &Self) {
        self.is_lost |= other.is_lost;
        self.functions.retain(|name, leaves_shell| {
            let other = other.functions.get(name);
            *leaves_shell &= other.is_some_and(|leaves_shell| *leaves_shell);
            other.is_some()
        });
        self.exports_all |= other.exports_all;
        self.exported.extend(other.exported.iter().cloned());
        self.associative.retain(|name| other.associative.contains(name));
        self.not_numbers.extend(other.not_numbers.iter().cloned());
        self.folders = match (self.folders.take(), &other.folders) {
            (Some(mut folders), Some(others)) => {
                for folder in others {
                    if !folders.contains(folder) {
                        folders.push(folder.clone());
                    }
                }
                (folders.len() <= MAX_FOLDERS).then_some(folders)
            }
            _ => None,
        };
        for (name, value) in &mut self.variables {
            let both = (value.as_deref(), other.variables.get(name).and_then(Option::as_deref));
            if let (Some(one), Some(other)) = both
                && one == other
            {
                continue;
            }
            *value = match both {
                (Some(one), Some(other)) if is_number(one) && is_number(other) => Some(vec![WordPart::Number]),
                _ => None,
            };
        }
        for name in other.variables.keys() {
            self.variables.entry(name.clone()).or_insert(None);
        }
    }
}

/// Without a zero in front, which would make it octal.
pub(super) fn is_decimal(pieces: &[WordPart]) -> bool {
    match pieces {
        [WordPart::Number | WordPart::Digits] => true,
        [WordPart::Text(text)] => is_decimal_text(text),
        _ => false,
    }
}

pub(super) fn is_decimal_text(text: &str) -> bool {
    let is_digits = !text.is_empty() && text.len() < 18 && text.bytes().all(|b| b.is_ascii_digit());
    is_digits && (text == "0" || !text.starts_with('0'))
}

pub(super) fn is_number(pieces: &[WordPart]) -> bool {
    match pieces {
        [WordPart::Number] => true,
        [WordPart::Text(text)] => !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// `..` removes the last component, as `cd` does without `-P`.
pub(crate) fn logical(path: &Path) -> PathBuf {
    let mut done = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(done.pop()),
            Component::Normal(name) => done.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    done
}
