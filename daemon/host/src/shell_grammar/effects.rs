//! The effects of a command on the shell: its folder, its variables, and its output.

use toold_proto::cut;

use super::arg::{Arg, WordPart};
use super::programs::{self, CommandOutput};
use super::{ShellWalk, check, expand};

impl ShellWalk<'_, '_, '_> {
    /// The state that the command leaves in the shell.
    pub(super) fn effects(&mut self, name: Option<&str>, words: &[Arg], hides: bool, same_shell: bool) {
        let Some(name) = name else { return self.state.lose() };
        let rest = &words[1..];
        match name {
            "cd" | "pushd" => {
                let operand =
                    rest.iter().find(|word| !matches!(word.literal(), Some("-P" | "-L" | "--" | "-e" | "-n")));
                // `cdpath` is the list that zsh ties to it.
                let by_path = self.surroundings.environment.get("CDPATH").is_some()
                    || ["CDPATH", "cdpath"].iter().any(|name| self.state.is_set(name));
                let home = self.home();
                let options: Vec<_> = rest.iter().filter(|word| word.start().starts_with(['-', '+'])).collect();
                let operands = rest.len() - options.len();
                // `-P` follows links, other options do not change the folder at all, and two operands are an error.
                if options.iter().any(|option| !option.is("--") && !option.is("-L")) || operands > 1 {
                    return self.state.enter(None);
                }
                let folder = match operand {
                    None => home.as_deref().filter(|_| name == "cd"),
                    Some(word) => word.literal().filter(|text| !text.is_empty() && !text.starts_with(['-', '+'])),
                };
                // `cd a/../b` fails if `a` does not exist.
                let climbs = folder.is_some_and(|folder| {
                    let mut parts = folder.split('/').skip_while(|part| matches!(*part, ".." | "." | ""));
                    parts.any(|part| part == "..")
                });
                let is_found_elsewhere =
                    climbs || by_path && folder.is_some_and(|folder| !folder.starts_with(['/', '.']));
                match operand.filter(|word| word.has_glob() && name == "cd") {
                    Some(word) => self.enter_one_of(word),
                    None => self.state.enter(folder.filter(|_| !is_found_elsewhere)),
                }
            }
            "popd" => self.state.enter(None),
            "break" | "continue" if rest.is_empty() => {
                let mut jumped = self.state.clone();
                if let Some(other) = &self.jumped {
                    jumped.or(other);
                }
                self.jumped = Some(jumped);
            }
            // Leaves more than one loop.
            "break" | "continue" => self.state.lose(),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" | "wait" | "printf" => {
                let names_array =
                    |word: &Arg| word.may_be_option() && (word.literal().is_none() || word.start().contains('a'));
                if matches!(name, "read" | "mapfile" | "readarray") && rest.iter().any(names_array) {
                    self.state.lose();
                }
                // Options other than `-r`, or several names, take parts of lines.
                let is_alone =
                    matches!(rest, [only] if !only.is("-r")) || matches!(rest, [option, _] if option.is("-r"));
                let sets = |word: &Arg| match word.literal() {
                    Some(text) => text.starts_with("-v"),
                    None => word.start().starts_with("-v") || "-v".starts_with(word.start()),
                };
                if name == "printf" && rest.first().is_some_and(sets) {
                    // The name of the variable may be in the same word, or expanded.
                    let names = rest.iter().take(2).map(|word| word.literal());
                    match names.collect::<Vec<_>>().as_slice() {
                        [Some("-v"), Some(variable)] if check::is_name(variable) => {}
                        _ => self.state.lose(),
                    }
                }
                for word in rest.iter().skip(usize::from(name == "getopts")) {
                    match word.literal() {
                        Some(text) if check::is_name(text) => self.set_unless_special(name, text, is_alone),
                        Some(_) => {}
                        None if matches!(name, "printf" | "wait") => {}
                        None => self.state.lose(),
                    }
                }
                if name == "read" || name == "mapfile" {
                    self.state.set("REPLY", None);
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                // References to other variables, and values that are evaluated.
                let makes_array = |word: &Arg| word.is("-a") || word.is("-A");
                let changes = |word: &Arg| {
                    word.start().starts_with(['-', '+'])
                        && word.start().contains(['n', 'i', 'a', 'A'])
                        && (!makes_array(word) || hides)
                };
                let freezes = |word: &Arg| word.start().starts_with('-') && word.start().contains('r');
                if rest.iter().any(changes) || name == "readonly" || rest.iter().any(freezes) {
                    self.state.lose();
                }
                let exports = programs::exports(name, rest);
                if rest.iter().any(|word| word.is("-A")) && name != "export" {
                    let names = rest.iter().filter(|word| !word.start().starts_with('-'));
                    let names: Vec<String> =
                        names.filter_map(|word| Some(word.start().split('=').next()?.to_owned())).collect();
                    names.iter().for_each(|name| self.state.declare_associative(name));
                }
                for word in rest {
                    let text = word.start().split('=').next().unwrap_or_default();
                    if exports {
                        self.state.export(text.trim_end_matches('+'));
                    }
                    match word.literal().is_some() || word.start().contains('=') {
                        false => self.state.lose(),
                        // If the grammar knows the value, it is set afterwards.
                        true if check::is_name(text.trim_end_matches('+')) => {
                            self.state.set(text.trim_end_matches('+'), None);
                        }
                        true => {}
                    }
                }
            }
            "let" if self.only_computes(rest) => {
                let names: Vec<String> =
                    rest.iter().filter_map(|word| self.assigns_number(word.literal()?).map(str::to_owned)).collect();
                names.iter().for_each(|name| self.state.set(name, Some(vec![WordPart::Number])));
            }
            "eval" | "source" | "." | "alias" | "unalias" | "enable" | "hash" | "let" | "trap" | "coproc" | "bind" => {
                self.state.lose();
            }
            "shopt" if programs::only_empties_wildcards(rest) => {}
            "shopt" if rest.iter().any(|word| !word.is("-p") && !word.is("-q")) => self.state.lose(),
            "set" => {
                let harmless = |word: &Arg| {
                    let letters = |text: &str| {
                        text.len() > 1 && cut::after_first(text).chars().all(|c| "euxovETaCbhm".contains(c))
                    };
                    word.literal().is_some_and(|text| {
                        matches!(text, "pipefail" | "errexit" | "nounset" | "xtrace" | "allexport" | "noclobber")
                            || text.starts_with(['-', '+']) && letters(text)
                    })
                };
                // The words behind `--` are the arguments of the shell itself, whose values count as unknown.
                if !rest.iter().take_while(|word| !word.is("--")).all(harmless) {
                    self.state.lose();
                }
                let exports_all = |word: &Arg| match word.literal() {
                    Some(text) => text == "allexport" || text.starts_with('-') && text.contains('a'),
                    None => word.may_be_option(),
                };
                if rest.iter().take_while(|word| !word.is("--")).any(exports_all) {
                    self.state.export_all();
                }
            }
            // It may have changed this shell in unknown ways.
            _ if hides && (same_shell || check::is_reserved(name)) => self.state.lose(),
            _ => {}
        }
    }

    /// A wildcard with few matching folders leads to one of them.
    fn enter_one_of(&mut self, word: &Arg) {
        let before = self.state.folders().map(<[std::path::PathBuf]>::to_vec).unwrap_or_default();
        let mut found = Vec::new();
        for folder in &before {
            match expand::expand(word, folder, self.surroundings.may_read) {
                Some(names) => found.extend(names.files.into_iter().filter(|file| file.is_dir())),
                None => return self.state.enter(None),
            }
        }
        match before.is_empty() || found.is_empty() {
            true => self.state.enter(None),
            false => self.state.enter_one_of(&found),
        }
    }

    fn set_unless_special(&mut self, command: &str, name: &str, is_alone: bool) {
        // Each line that `read` gets is one of the names.
        let value = match &self.input {
            CommandOutput::Lines(names) if command == "read" && is_alone => Some(vec![WordPart::Names(names.clone())]),
            _ => None,
        };
        if command != "printf" || name != "v" {
            self.state.set(name, value);
        }
    }

    /// `is_copied`: it prints its input as it is, and not only lines of it.
    pub(super) fn printed(&mut self, output: CommandOutput, is_copied: bool) -> CommandOutput {
        match output {
            CommandOutput::Input => match &self.input {
                CommandOutput::Lines(names) => CommandOutput::Lines(names.clone()),
                CommandOutput::Ended(names) => CommandOutput::Ended(names.clone()),
                CommandOutput::OfLine | CommandOutput::Unknown => CommandOutput::Unknown,
                input if is_copied => input.clone(),
                _ => CommandOutput::Unknown,
            },
            CommandOutput::Names(uses) => self.names_of(&uses).map_or(CommandOutput::Unknown, CommandOutput::Lines),
            CommandOutput::EndedNames(uses) => {
                self.names_of(&uses).map_or(CommandOutput::Unknown, CommandOutput::Ended)
            }
            other => other,
        }
    }
}
