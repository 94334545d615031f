//! Simple commands: their words, redirects and assignments, and what their programs make of them.

use toold_engine::need::Word;
use toold_engine::policy::targets::begins_command;
use tree_sitter::Node;

use super::arg::{self, Arg, Piece};
use super::names;
use super::programs::{self, FileUse, How, Output, Reading, Site};
use super::redirects::{Redirected, Target};
use super::state::State;
use super::{
    Command, Found, Lost, MAX_DEPTH, MAX_NEEDS, Walk, Walked, all, check, children_of_field, named, shown, variables,
    with_fields,
};

impl<'t> Walk<'_, '_, '_> {
    /// A simple command; `redirects` stand behind it.
    pub(super) fn command(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        let mut words: Vec<Arg> = Vec::new();
        let mut assignments = Vec::new();
        let reads_redirect = |node: &Node| {
            node.kind() != "file_redirect" || all(*node).iter().any(|child| child.kind().starts_with('<'))
        };
        let input = match redirects
            .iter()
            .chain(&all(node))
            .any(|child| child.kind().ends_with("_redirect") && reads_redirect(child))
        {
            true => std::mem::take(&mut self.input),
            false => self.input.clone(),
        };
        let doubt = self.doubting(|walk| {
            let children = all(node);
            check::words_stand_apart(&children, walk.source)?;
            for child in children {
                match child.kind() {
                    "variable_assignment" => assignments.push(child),
                    "command_name" => {
                        let name = child.child(0).filter(|_| child.child_count() == 1).ok_or(Lost)?;
                        walk.doubt |= check::is_reserved(walk.text(name)) || walk.text(name).contains('=');
                        words.extend(walk.word(name)?);
                    }
                    "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                        // Words behind the target of a redirect that stands before the name: the name is one of them.
                        let further = walk.redirect(child)?;
                        walk.doubt |= words.is_empty() && !further.is_empty();
                        words.extend(further);
                    }
                    "subshell" => return Err(Lost),
                    _ => words.extend(walk.word(child)?),
                }
            }
            let mut at = node.end_byte();
            for redirect in redirects {
                if walk.source[at..redirect.start_byte()].trim() == "-" {
                    words.push(Arg::text("-"));
                }
                check::number_is_no_descriptor(
                    &walk.source[..redirect.start_byte()],
                    words.last().map(Arg::word).as_ref(),
                )?;
                words.extend(walk.redirect(*redirect)?);
                at = redirect.end_byte();
            }
            Ok(())
        })?;
        let reads_a_line =
            words.first().is_some_and(|name| name.is("read") || name.is("mapfile") || name.is("readarray"));
        for assignment in assignments {
            let name = assignment.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
            // How a line is split, for this one command.
            let is_empty = assignment.child_by_field_name("value").is_none();
            if reads_a_line && name == "IFS" && !is_empty {
                self.input = Output::Unknown;
            }
            if !(reads_a_line && name == "IFS") {
                self.assignment(assignment, words.is_empty())?;
            }
        }
        let end = redirects.last().map_or(node.end_byte(), |redirect| redirect.end_byte());
        let is_redirect = |child: &&Node| child.kind() == "file_redirect";
        let own = all(node);
        let goes_elsewhere =
            |child: &&Node| !self.text(**child).starts_with("2>") || self.text(**child).starts_with("2>&1");
        let hides_output = redirects.iter().chain(&own).filter(is_redirect).any(|child| goes_elsewhere(&child));
        let may_fail = redirects.iter().chain(&own).any(|child| child.kind() == "file_redirect");
        let before = self.state.clone();
        self.simple(words, doubt, &self.source[node.start_byte()..end])?;
        if hides_output {
            self.output = Output::Unknown;
        }
        if may_fail {
            self.fails_as(&before);
        }
        self.input = input;
        Ok(())
    }

    pub(super) fn redirected(&mut self, node: Node<'t>) -> Walked {
        let body = node.child_by_field_name("body");
        let redirects: Vec<Node> = named(node).into_iter().filter(|child| Some(*child) != body).collect();
        match body {
            Some(body) => self.with_redirects(body, &redirects),
            None => {
                let (further, doubt) = self.redirects(&redirects)?;
                match (further.is_empty(), doubt) {
                    (false, _) => self.simple(further, true, self.text(node)),
                    (true, true) => self.unsure(node, "where it redirects to is not known"),
                    (true, false) => Ok(()),
                }
            }
        }
    }

    fn redirects(&mut self, redirects: &[Node<'t>]) -> Walked<(Vec<Arg>, bool)> {
        let mut further = Vec::new();
        let doubt = self.doubting(|walk| {
            for redirect in redirects {
                further.extend(walk.redirect(*redirect)?);
            }
            Ok(())
        })?;
        Ok((further, doubt))
    }

    /// The grammar hangs the redirects of the last command of a list or a pipe on the whole of it.
    pub(super) fn with_redirects(&mut self, body: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        match body.kind() {
            _ if redirects.is_empty() => return self.statement(body),
            "command" => return self.command(body, redirects),
            "list" => return self.list(body, redirects),
            "pipeline" => return self.pipeline(body, redirects),
            "redirected_statement" | "negated_command" => return Err(Lost),
            _ => {}
        }
        let (further, doubt) = self.redirects(redirects)?;
        // Words behind a redirect belong to a command, and these bodies take none.
        if !further.is_empty() {
            return Err(Lost);
        }
        if doubt {
            self.unsure(body, "where it redirects to is not known")?;
        }
        let input = std::mem::take(&mut self.input);
        let before = self.state.clone();
        self.statement(body)?;
        self.output = Output::Unknown;
        self.fails_as(&before);
        self.input = input;
        Ok(())
    }

    /// A redirect that fails leaves everything as it was, and the command has failed.
    fn fails_as(&mut self, before: &State) {
        let mut failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        failed.or(before);
        self.failed = Some(failed);
    }

    /// `stays`: there is no command behind it, so the shell keeps the value.
    pub(super) fn assignment(&mut self, node: Node<'t>, stays: bool) -> Walked {
        let mut found = None;
        let doubt = self.doubting(|walk| {
            found = Some(walk.assignment_word(node)?);
            Ok(())
        })?;
        let (name, value, word) = found.ok_or(Lost)?;
        let target = self.text(node).to_owned();
        let is_digits = text_of(&value).is_some_and(|value| value.bytes().all(|b| b.is_ascii_digit()));
        let doubt = doubt || variables::is_integer(&name) && !is_digits || variables::is_read_only(&name);
        let is_harmless = match stays {
            true => variables::is_the_shells_own(&name, self.surroundings.environment),
            false => variables::is_harmless_for_programs(&name, text_of(&value)),
        };
        if stays {
            let appends = self.source[..node.end_byte()][node.start_byte()..].contains("+=");
            self.state.set(&name, (!doubt && !appends).then_some(value));
        }
        let variable = Command {
            words: (!doubt).then(|| vec![word]),
            unsure: doubt.then(|| "what the value becomes may be evaluated".to_owned()),
            reads_only: is_harmless && !doubt,
            ..Command::variable(&name, &target, is_harmless)
        };
        self.found.push(Found::Command(Command { may_run_any: variable.may_run_any || doubt, ..variable }));
        Ok(())
    }

    /// The name, the value, and `name=value` as one word.
    fn assignment_word(&mut self, node: Node<'t>) -> Walked<(String, Vec<Piece>, Word)> {
        let name = node.child_by_field_name("name").ok_or(Lost)?;
        let raw = self.text(node).to_owned();
        if name.kind() == "variable_name" && !check::is_name(self.text(name)) {
            return Err(Lost);
        }
        let text = self.text(name).to_owned();
        let Some(value) = node.child_by_field_name("value") else {
            self.doubt |= name.kind() != "variable_name";
            return Ok((text, Vec::new(), Word { text: raw, literal: true }));
        };
        let unknown = vec![Piece::Unknown { splits: true }];
        if name.kind() != "variable_name" || value.kind() == "array" {
            // An index is evaluated, and so are commands among the values.
            self.doubt = true;
            return Ok((text, unknown, Word { text: raw, literal: false }));
        }
        let before = &self.source[node.start_byte()..value.start_byte()];
        let home = self.home();
        let pieces = arg::value(&self.tokens(value)?, home.as_deref());
        let word = match text_of(&pieces) {
            Some(value) => Word { text: format!("{before}{value}"), literal: true },
            None => Word { text: raw, literal: false },
        };
        Ok((text, pieces, word))
    }

    pub(super) fn declaration(&mut self, node: Node<'t>) -> Walked {
        let mut words = Vec::new();
        let mut values = Vec::new();
        let children = all(node);
        check::words_stand_apart(&children, self.source)?;
        let doubt = self.doubting(|walk| {
            for child in children {
                match child.kind() {
                    "variable_assignment" => {
                        let (name, value, word) = walk.assignment_word(child)?;
                        let pieces = match word.literal {
                            true => vec![Piece::Text(word.text)],
                            false => vec![Piece::Text(format!("{name}=")), Piece::Unknown { splits: false }],
                        };
                        words.push(Arg { pieces, raw: walk.text(child).to_owned() });
                        values.push((name, value));
                    }
                    "variable_name" => words.push(Arg::text(walk.text(child))),
                    _ if child.is_named() => words.extend(walk.word(child)?),
                    _ => words.push(Arg::text(walk.text(child))),
                }
            }
            Ok(())
        })?;
        let is_plain_export = words.first().is_some_and(|word| word.is("export"))
            && !words.iter().any(|word| word.start().starts_with(['-', '+']));
        self.simple(words, doubt, self.text(node))?;
        // Only `export` without options sets what is written for certain.
        for (name, value) in values {
            self.state.set(&name, (!doubt && is_plain_export).then_some(value));
        }
        Ok(())
    }

    /// Gives the words that stand behind the redirect's target: the grammar counts them to the
    /// redirect, the shell to the command.
    pub(super) fn redirect(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        check::descriptor_stands_alone(node, self.source)?;
        match node.kind() {
            "file_redirect" => self.file_redirect(node),
            "herestring_redirect" => {
                named(node)
                    .into_iter()
                    .filter(|child| child.kind() != "file_descriptor")
                    .try_for_each(|child| self.tokens(child).map(drop))?;
                Ok(Vec::new())
            }
            "heredoc_redirect" => self.heredoc(node),
            _ => Err(Lost),
        }
    }

    fn file_redirect(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        let operator = all(node).into_iter().find(|child| !child.is_named()).ok_or(Lost)?;
        let mut destinations = Vec::new();
        let written = children_of_field(node, "destination");
        check::words_stand_apart(&written, self.source)?;
        for destination in written {
            destinations.push((self.word(destination)?, self.text(destination)));
        }
        let mut destinations = destinations.into_iter();
        let operator = self.text(operator);
        if !operator.ends_with('-') {
            let (words, raw) = destinations.next().ok_or(Lost)?;
            let word = match words.as_slice() {
                [one] => one.word(),
                _ => Word { text: raw.to_owned(), literal: false },
            };
            let is_found = matches!(words.as_slice(), [one] if one.has_glob() || matches!(one.pieces.as_slice(), [Piece::Names(_)]));
            if is_found && matches!(operator, "<" | ">" | ">>" | ">|" | "&>" | "&>>") {
                let how = if operator == "<" { How::Read } else { How::Write };
                let mut reading = Reading {
                    files: vec![FileUse { is_operand: false, ..FileUse::new(how, words[0].clone()) }],
                    ..Reading::default()
                };
                let files = self.named_files(&mut reading);
                self.doubt |= reading.unsure.is_some();
                self.found.extend(files.into_iter().map(Found::File));
                return Ok(destinations.flat_map(|(words, _)| words).collect());
            }
            match Redirected::target(operator, word, raw, self.state.folders()) {
                Target::Nothing => {}
                Target::File(redirected) => self.found.push(Found::Redirect(redirected)),
                Target::Unsure => self.doubt = true,
            }
        }
        Ok(destinations.flat_map(|(words, _)| words).collect())
    }

    fn heredoc(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        // The shell reads bodies where lines end, not where the grammar would have them, so one must end before the next.
        let here = node.byte_range();
        let overlaps =
            |other: &std::ops::Range<usize>| *other != here && other.start < here.end && here.start < other.end;
        if self.heredocs.iter().any(overlaps) {
            return Err(Lost);
        }
        self.heredocs.push(here);
        let expands = check::heredoc_ends_where_it_says(node, self.source, self.substitutions)?;
        let mut words = Vec::new();
        for (child, field) in with_fields(node) {
            match (child.kind(), field) {
                ("file_redirect" | "herestring_redirect", _) => words.extend(self.redirect(child)?),
                ("heredoc_body", _) if expands => self.heredoc_body(child)?,
                ("heredoc_body" | "heredoc_start" | "heredoc_end" | "file_descriptor", _) => {}
                (_, Some("argument")) => words.extend(self.word(child)?),
                ("pipeline", _) | (_, Some("right")) => {
                    let outer = self.doubt;
                    let state = self.state.clone();
                    self.statement(child)?;
                    self.settle();
                    self.state.or(&state);
                    self.doubt = outer;
                }
                _ if child.is_named() => return Err(Lost),
                _ => {}
            }
        }
        Ok(words)
    }

    /// A command with its words, and as it was written. `doubt`: its words do not tell all that it does.
    pub(super) fn simple(&mut self, words: Vec<Arg>, doubt: bool, raw: &str) -> Walked {
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.found.len() > MAX_NEEDS {
            return Err(Lost);
        }
        if words.is_empty() {
            // All that there was expanded to nothing, or to what is not known.
            if doubt {
                self.found.push(Found::Command(Command::not_understood(raw, "what it expands to is not known")));
            }
            self.depth -= 1;
            return Ok(());
        }
        let plain: Vec<Word> = words.iter().map(Arg::word).collect();
        let name = words[0].literal().map(str::to_owned);
        let evaluates = check::evaluates_its_words(&plain);
        let doubt = doubt || name.is_none() || evaluates;
        // Patterns that begin with such words are refused, since no command does.
        let doubt = doubt || !begins_command(&plain);
        let input = match &self.input {
            Output::Lines(names) => Output::Lines(names.clone()),
            Output::Ended(names) => Output::Ended(names.clone()),
            _ => Output::Unknown,
        };
        let site = Site { folders: self.state.folders(), environment: self.surroundings.environment, input: &input };
        let mut reading = programs::read(&words, &site);
        let looked_up = self.look_up_wildcards(&words, &mut reading);
        list_wildcards(&words, &mut reading);
        let operands = operands_of(&words, &reading);
        let head = reading.known.and_then(|known| head_of(&words, &known.name));
        let files = self.named_files(&mut reading);
        let hides = doubt || reading.is_open;
        let unsure = match (doubt, name.is_none(), reading.unsure.take()) {
            (_, true, _) => Some(format!("which program {} is, is not known", words[0].raw)),
            (true, _, None) => Some("the shell does more with its words than to pass them on".to_owned()),
            (_, _, why) => why,
        };
        let may_run_any = name.is_none() || reading.may_run_any || doubt && name.as_deref() != Some("set");
        let script = reading.script_file.take().and_then(|file| self.script_text(&file));
        let target = if hides { raw.to_owned() } else { shown(&plain) };
        self.found.push(Found::Command(Command {
            target: target.clone(),
            words: (!hides).then_some(plain),
            raw: words.iter().map(|word| word.raw.clone()).collect(),
            may_run_any,
            reads_only: reading.reads_only && unsure.is_none(),
            unsure,
            looked_up,
            script,
            head,
            operands,
            known: reading.known,
            notes: std::mem::take(&mut reading.notes),
        }));
        for mut file in files {
            file.command.clone_from(&target);
            self.found.push(Found::File(file));
        }
        for assignment in std::mem::take(&mut reading.assignments) {
            self.exported(&assignment);
        }
        let before = self.state.clone();
        if name.as_deref() == Some("trap") {
            // What it names runs at any time.
            self.state.lose();
        }
        let output = self.printed(std::mem::take(&mut reading.output));
        let Reading { commands, on_found, scripts, same_shell, .. } = reading;
        // A word of the shell's grammar, unlike the program in a folder.
        let same_shell = same_shell || name.as_deref() == Some("time");
        for inner in commands {
            self.inner(inner)?;
        }
        for (command, found) in on_found {
            let names = self.names_of(&found);
            let replaced = command.into_iter().map(|word| match (&names, word.is("{}")) {
                (_, false) => word,
                (Some(names), true) => Arg { raw: word.raw, ..names::arg(names.clone(), "{}") },
                (None, true) => Arg { pieces: vec![Piece::Unknown { splits: true }], raw: word.raw },
            });
            self.inner(replaced.collect())?;
        }
        for script in scripts {
            self.inner_script(&script)?;
        }
        if !same_shell {
            self.state = before.clone();
            self.failed = None;
        }
        self.effects(name.as_deref(), &words, hides, same_shell);
        if matches!(name.as_deref(), Some("cd" | "pushd" | "popd")) {
            // When it fails, the shell stays where it was. It does not when the folder is there, and nothing ran that
            // could have removed it.
            let changed = |found: &Found| match found {
                Found::Command(command) => !command.reads_only,
                Found::Redirect(_) | Found::File(_) => false,
            };
            let is_there = |folders: &[std::path::PathBuf]| folders.iter().all(|folder| folder.is_dir());
            let is_sure = self.state.folders().is_some_and(is_there) && !self.found.iter().any(changed);
            self.failed = (!is_sure).then_some(before);
        }
        self.output = output;
        self.depth -= 1;
        Ok(())
    }

    fn inner(&mut self, words: Vec<Arg>) -> Walked {
        let raw = shown(&words.iter().map(Arg::word).collect::<Vec<_>>());
        // Behind `time` the shell reads keywords and assignments.
        let doubt = words.first().is_some_and(|name| check::is_reserved(name.start()) || name.start().contains('='));
        self.simple(words, doubt, &raw)
    }

    /// What a script in a file says.
    fn script_text(&mut self, file: &Arg) -> Option<String> {
        let [folder] = self.state.folders()? else { return None };
        let path = folder.join(file.literal()?);
        let found = crate::files::resolve_for(&path, std::path::Path::new("/"), self.surroundings.may_read).ok()?;
        if found.veil.is_some() || !(self.surroundings.may_read)(&found.path) {
            return None;
        }
        let text = crate::files::read_whole(&found.path, super::MAX_BYTES as u64).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn inner_script(&mut self, script: &str) -> Walked {
        let state = self.state.for_child();
        let mut inner = Walk::new(script, self.surroundings, state);
        inner.depth = self.depth;
        inner.statements = self.statements;
        let outcome = inner.script();
        let (found, statements, state) = (std::mem::take(&mut inner.found), inner.statements, inner.state.clone());
        self.statements = statements;
        match outcome {
            Ok(()) => self.found.extend(found),
            Err(Lost) => self
                .found
                .push(Found::Command(Command::not_understood(script, "toold cannot read this script for certain"))),
        }
        // For `eval`, which changes this shell.
        self.state.or(&state);
        Ok(())
    }
}

impl Walk<'_, '_, '_> {
    /// `NAME=value` that a command exports, or sets for what it runs.
    fn exported(&mut self, word: &Arg) {
        let name = word.start().split('=').next().unwrap_or_default().trim_end_matches('+').to_owned();
        let value = word.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value);
        let is_harmless = variables::is_harmless_for_programs(&name, value);
        let plain = word.word();
        let target = shown(std::slice::from_ref(&plain));
        let variable = Command::variable(&name, &target, is_harmless);
        self.found.push(Found::Command(Command { words: Some(vec![plain]), raw: vec![word.raw.clone()], ..variable }));
    }

    /// What the command leaves in the shell.
    fn effects(&mut self, name: Option<&str>, words: &[Arg], hides: bool, same_shell: bool) {
        let Some(name) = name else { return self.state.lose() };
        let rest = &words[1..];
        match name {
            "cd" | "pushd" => {
                let operand =
                    rest.iter().find(|word| !matches!(word.literal(), Some("-P" | "-L" | "--" | "-e" | "-n")));
                let by_path = self.surroundings.environment.get("CDPATH").is_some() || self.state.is_set("CDPATH");
                let home = self.home();
                let options: Vec<_> = rest.iter().filter(|word| word.start().starts_with(['-', '+'])).collect();
                let operands = rest.len() - options.len();
                // `-P` follows links, others do not change the folder at all, and two operands are a mistake.
                if options.iter().any(|option| !option.is("--") && !option.is("-L")) || operands > 1 {
                    return self.state.enter(None);
                }
                let folder = match operand {
                    None => home.as_deref().filter(|_| name == "cd"),
                    Some(word) => word.literal().filter(|text| !text.is_empty() && !text.starts_with(['-', '+'])),
                };
                // `cd a/../b` fails when there is no `a`.
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
            // Out of more than one loop.
            "break" | "continue" => self.state.lose(),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" | "wait" | "printf" => {
                let names_array =
                    |word: &Arg| word.may_be_option() && (word.literal().is_none() || word.start().contains('a'));
                if matches!(name, "read" | "mapfile" | "readarray") && rest.iter().any(names_array) {
                    self.state.lose();
                }
                // Other options than `-r`, or several names, take parts of lines.
                let is_alone =
                    matches!(rest, [only] if !only.is("-r")) || matches!(rest, [option, _] if option.is("-r"));
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
                let changes =
                    |word: &Arg| word.start().starts_with(['-', '+']) && word.start().contains(['n', 'i', 'a', 'A']);
                let freezes = |word: &Arg| word.start().starts_with('-') && word.start().contains('r');
                if rest.iter().any(changes) || name == "readonly" || rest.iter().any(freezes) {
                    self.state.lose();
                }
                for word in rest {
                    let text = word.start().split('=').next().unwrap_or_default();
                    match word.may_be_option() && word.literal().is_none() {
                        true => self.state.lose(),
                        // Where the grammar knows the value, it is set behind this.
                        false if check::is_name(text.trim_end_matches('+')) => {
                            self.state.set(text.trim_end_matches('+'), None);
                        }
                        false => {}
                    }
                }
            }
            "eval" | "source" | "." | "alias" | "unalias" | "enable" | "hash" | "let" | "trap" | "coproc" | "bind" => {
                self.state.lose();
            }
            "shopt" if rest.iter().any(|word| !word.is("-p") && !word.is("-q")) => self.state.lose(),
            "set" => {
                let harmless = |word: &Arg| {
                    let letters = |text: &str| text.len() > 1 && text[1..].chars().all(|c| "euxovET".contains(c));
                    word.literal().is_some_and(|text| {
                        matches!(text, "pipefail" | "errexit" | "nounset" | "xtrace")
                            || text.starts_with(['-', '+']) && letters(text)
                    })
                };
                if !rest.iter().all(harmless) {
                    self.state.lose();
                }
            }
            // It may have changed this shell in ways that are not known.
            _ if hides && (same_shell || check::is_reserved(name)) => self.state.lose(),
            _ => {}
        }
    }

    /// A wildcard that finds few folders leads to one of them.
    fn enter_one_of(&mut self, word: &Arg) {
        let before = self.state.folders().map(<[std::path::PathBuf]>::to_vec).unwrap_or_default();
        let mut found = Vec::new();
        for folder in &before {
            match names::expand(word, folder, self.surroundings.may_read) {
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
            Output::Lines(names) if command == "read" && is_alone => Some(vec![Piece::Names(names.clone())]),
            _ => None,
        };
        if command != "printf" || name != "v" {
            self.state.set(name, value);
        }
    }

    fn printed(&mut self, output: Output) -> Output {
        match output {
            Output::Input => match &self.input {
                Output::Lines(names) => Output::Lines(names.clone()),
                Output::Ended(names) => Output::Ended(names.clone()),
                _ => Output::Unknown,
            },
            Output::Names(uses) => self.names_of(&uses).map_or(Output::Unknown, Output::Lines),
            Output::EndedNames(uses) => self.names_of(&uses).map_or(Output::Unknown, Output::Ended),
            other => other,
        }
    }
}

/// Wildcards show names of folders to whatever gets them.
fn list_wildcards(words: &[Arg], reading: &mut Reading) {
    for word in words.iter().filter(|word| word.has_glob()) {
        let is_file = reading.files.iter().any(|file| file.arg == *word);
        let folder = word.start().rsplit_once('/').map(|(folder, _)| if folder.is_empty() { "/" } else { folder });
        if let Some(folder) = folder.filter(|folder| !is_file && (folder.starts_with('/') || folder.contains(".."))) {
            reading.files.push(FileUse::new(How::List, Arg::text(folder)));
        }
    }
}

/// The places of the words that name files.
fn operands_of(words: &[Arg], reading: &Reading) -> Vec<usize> {
    let is_file = |word: &Arg| reading.files.iter().any(|file| file.is_operand && file.arg == *word);
    words.iter().enumerate().skip(1).filter(|(_, word)| is_file(word)).map(|(at, _)| at).collect()
}

/// How many of the first words say which command it is: the program, its subcommand, and the script that `run` names.
fn head_of(words: &[Arg], name: &str) -> Option<usize> {
    let names: Vec<&str> = name.split(' ').collect();
    let given = words.iter().skip(1).zip(&names[1..]);
    if words.len() < names.len() || !given.into_iter().all(|(word, name)| word.is(name)) {
        return None;
    }
    let runs_script = matches!(names.last(), Some(&("run" | "run-script"))) && names.len() == 2;
    let names_script =
        runs_script && words.get(2).is_some_and(|word| word.literal().is_some_and(|text| !text.starts_with('-')));
    Some(names.len() + usize::from(names_script))
}

fn text_of(pieces: &[Piece]) -> Option<&str> {
    match pieces {
        [] => Some(""),
        [Piece::Text(text)] => Some(text),
        _ => None,
    }
}
