//! Simple commands: their words, and what their programs do with them. Redirects are in [`super::redirects`], variables
//! in [`super::assignments`], and the effects of a command on the shell in [`super::effects`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toold_engine::effects::CommandEffects;
use toold_engine::need::{InnerCommand, Word};
use toold_engine::policy::targets::begins_command;
use toold_proto::cut;
use tree_sitter::Node;

use super::arg::{Arg, WordPart};
use super::expand;
use super::made::MadeNames;
use super::named_programs::{ProgramName, name_in_session, script_in_session};
use super::programs::{self, CommandContext, CommandOutput, FileAccess, FileUse, NamedCommand, Reading};
use super::{
    LineItem, MAX_DEPTH, MAX_NEEDS, MAX_STATEMENTS, ShellWalk, SimpleCommand, Unreadable, Walked, all, check, heredocs,
    places, shown, variables,
};

/// So many words of a command take as long as a statement.
const WORDS_PER_STATEMENT: usize = 4;

/// Variables that choose the folder of a `cd` behind them: `CDPATH=x cd y`.
const CHOOSING_FOLDER: &[&str] = &["CDPATH", "HOME", "OLDPWD", "PWD"];

impl<'t> ShellWalk<'_, '_, '_> {
    /// A simple command; `redirects` follow it.
    pub(super) fn command(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        self.judged.insert(node.id());
        let mut words: Vec<Arg> = Vec::new();
        let mut assignments = Vec::new();
        let input = self.input.clone();
        let doubt = self.doubting(|walk| {
            let is_there = |child: &Node| !child.byte_range().is_empty();
            let children: Vec<Node> = all(node).into_iter().filter(is_there).collect();
            check::words_stand_apart(&children, walk.source)?;
            for child in children {
                match child.kind() {
                    "variable_assignment" => assignments.push(child),
                    "command_name" => {
                        let name = child.child(0).filter(|_| child.child_count() == 1).ok_or(Unreadable)?;
                        // Then the words behind it are another command.
                        let is_syntax = check::is_reserved(walk.text(name)) || walk.text(name).contains('=');
                        walk.doubt |= is_syntax;
                        walk.hides_file |= is_syntax;
                        words.extend(walk.word(name)?);
                    }
                    "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                        // Words after the target of a redirect that precedes the name: the name is one of them.
                        let further = walk.redirect(child)?;
                        walk.doubt |= words.is_empty() && !further.is_empty();
                        words.extend(further);
                    }
                    "subshell" => return Err(Unreadable),
                    _ => words.extend(walk.word(child)?),
                }
            }
            for redirect in redirects {
                check::number_is_no_descriptor(
                    cut::before(walk.source, redirect.start_byte()),
                    words.last().map(|word| word.raw.as_str()),
                )?;
                words.extend(walk.redirect(*redirect)?);
            }
            Ok(())
        })?;
        let reads_a_line =
            words.first().is_some_and(|name| name.is("read") || name.is("mapfile") || name.is("readarray"));
        let assigned = self.found.len();
        let mut chooses_folder = false;
        for assignment in assignments {
            let name = assignment.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
            chooses_folder |= CHOOSING_FOLDER.contains(&name);
            // The field separators, for this one command.
            let is_empty = assignment.child_by_field_name("value").is_none();
            if reads_a_line && name == "IFS" && !is_empty {
                self.input = CommandOutput::Unknown;
            }
            let is_known = check::holds_no_substitution(self.text(assignment)).is_ok();
            if !(reads_a_line && name == "IFS" && is_known) {
                self.assignment(assignment, words.is_empty())?;
            }
        }
        let end = redirects.last().map_or(node.end_byte(), |redirect| redirect.end_byte());
        let is_redirect = |child: &&Node| child.kind() == "file_redirect" && !self.lifted.is_text(**child);
        let own = all(node);
        let goes_elsewhere = |child: &&Node| {
            let text = self.text(**child);
            // An input leaves the output alone.
            let is_input = text.starts_with('<') && !text.starts_with("<>") && !text.contains('>');
            !is_input && (!text.starts_with("2>") || text.starts_with("2>&1"))
        };
        let hides_output = redirects.iter().chain(&own).filter(is_redirect).any(|child| goes_elsewhere(&child));
        let may_fail = redirects.iter().chain(&own).any(|child| is_redirect(&child));
        let before = self.state.clone();
        let run = self.found.len();
        let raw = self.lifted.shown(node.start_byte()..end);
        let function = words.first().and_then(Arg::literal).and_then(|name| self.state.function(name));
        match function.filter(|_| !doubt) {
            Some(leaves_shell) => self.call(&words, &raw, leaves_shell),
            None => self.simple(words, doubt, &raw)?,
        }
        self.settle_variables(assigned..run);
        if chooses_folder && self.state.folders() != before.folders() {
            self.state.enter(None);
        }
        if hides_output {
            self.output = CommandOutput::Unknown;
        }
        if may_fail {
            self.fails_as(&before);
        }
        self.input = input;
        Ok(())
    }

    /// A call of a function of the line, whose commands were judged for any words.
    fn call(&mut self, words: &[Arg], raw: &str, leaves_shell: bool) {
        let plain: Vec<Word> = words.iter().map(Arg::word).collect();
        let function = SimpleCommand {
            words: Some(plain),
            raw: words.iter().map(|word| word.raw.clone()).collect(),
            notes: vec![programs::Note { text: words[0].raw.clone(), meaning: "function of the line".to_owned() }],
            ..SimpleCommand::variable("", raw, true)
        };
        self.found.push(LineItem::Command(function));
        self.output = CommandOutput::Unknown;
        if !leaves_shell {
            self.state.lose();
        }
    }

    /// A command with its words, and as it was written. `doubt`: the words do not show everything that it does.
    pub(super) fn simple(&mut self, words: Vec<Arg>, doubt: bool, raw: &str) -> Walked {
        self.depth += 1;
        self.statements += words.len() / WORDS_PER_STATEMENT;
        let is_too_large = self.found.len() > MAX_NEEDS || self.statements > MAX_STATEMENTS;
        if self.depth > MAX_DEPTH || is_too_large || self.clock.is_over() {
            return Err(Unreadable);
        }
        if words.is_empty() {
            // Everything expanded to nothing, or to something unknown.
            let hides_file = std::mem::take(&mut self.hides_file);
            if doubt {
                let command = SimpleCommand::not_understood(raw, "the result of its expansion is unknown");
                self.found.push(LineItem::Command(SimpleCommand { hides_file, ..command }));
            }
            self.depth -= 1;
            return Ok(());
        }
        let program = self.program_in_session(&words[0]);
        let as_written: Vec<Word> = words.iter().map(Arg::word).collect();
        // As the session's folder names the program and the script that it runs, for rules that allow.
        let mut named = words.clone();
        if let ProgramName::Other(name) = &program {
            named[0] = Arg { raw: words[0].raw.clone(), ..Arg::text(name) };
        }
        if let Some(at) = programs::script_at(&words) {
            match self.script_in_session(&words[at]) {
                ProgramName::Other(name) => named[at] = Arg { raw: words[at].raw.clone(), ..Arg::text(&name) },
                // A file of this name, in some folder.
                ProgramName::Unknown => {
                    let name = words[at].start().rsplit('/').next().unwrap_or_default();
                    named[at] = Arg::unknown(&format!("*/{name}"));
                }
                ProgramName::AsWritten => {}
            }
        }
        let plain: Vec<Word> = named.iter().map(Arg::word).collect();
        let name = words[0].literal().map(str::to_owned);
        // A number evaluates to itself.
        let is_number =
            |word: &Arg| matches!(word.pieces.as_slice(), [WordPart::Number | WordPart::Digits | WordPart::Maybe]);
        let evaluated: Vec<Word> = words
            .iter()
            .map(|word| if is_number(word) { Word { text: "0".to_owned(), literal: true } } else { word.word() })
            .collect();
        let is_arithmetic = name.as_deref() == Some("let") && self.only_computes(&words[1..]);
        let evaluates = check::evaluates_its_words(&evaluated) && !is_arithmetic;
        let doubt = doubt || name.is_none() || evaluates;
        // Patterns that begin with such words are rejected, since no command does.
        let is_grammar = !begins_command(&plain);
        let doubt = doubt || is_grammar;
        let input = self.input.clone();
        let switched_by = self.found.iter().rev().find_map(|found| match found {
            LineItem::Command(command) => command.words.clone().filter(|words| programs::switches_branch(words)),
            LineItem::Redirect(_) | LineItem::File(_) => None,
        });
        let nothing_changed = self.nothing_changed();
        let changes_pathspecs = self.found.iter().any(|found| match found {
            LineItem::Command(command) => command.target.contains("_PATHSPECS"),
            LineItem::Redirect(_) | LineItem::File(_) => false,
        });
        let environment = self.surroundings.environment;
        let state = &self.state;
        let is_the_shells_own =
            |name: &str| variables::is_the_shells_own(name, environment) && !state.hands_on(name) && !state.is_lost();
        let site = CommandContext {
            clock: self.clock,
            is_the_shells_own: &is_the_shells_own,
            nothing_changed,
            changes_pathspecs,
            switched_by: switched_by.as_deref(),
            folders: self.state.folders(),
            is_elsewhere: self.is_elsewhere,
            session_folders: self.surroundings.folders,
            environment: self.surroundings.environment,
            input: &input,
        };
        let mut reading = programs::read(&words, &site);
        let head = programs::head(&words, &reading, &site);
        let looked_up = self.look_up_wildcards(&words, &mut reading);
        list_wildcards(&words, &mut reading);
        let operands = operands_of(&words, &reading);
        let mut effects = programs::effects_of(&named, &reading, head);
        if effects.all().is_empty() && variables::only_sets_plain_ones(&words) {
            effects = CommandEffects::reading();
        }
        // Doubts about files are no doubts about what runs.
        let runs_nothing = reading.known.is_some_and(|known| known.runs_nothing);
        let may_hold_command = doubt || reading.unsure.is_some() && !runs_nothing && !reading.doubts_files;
        if let Some(patch) = reading.patch.take() {
            // What the line itself puts into it is not known.
            reading.hides_file |= self.may_have_written(&patch.file);
            let text = self.script_text(&patch.file);
            reading.files.extend(text.iter().flat_map(|text| patch.files(text)));
        }
        let files = self.named_files(&mut reading);
        let makes = MadeNames::of(reading.known, reading.form.as_ref(), &files, self.state.folders());
        let hides = doubt || reading.is_open;
        let unsure = match (doubt, name.is_none(), reading.unsure.take()) {
            (_, true, _) => Some(format!("the program that {} names is unknown", words[0].raw)),
            (true, _, None) => Some("the shell itself interprets its words".to_owned()),
            (_, _, why) => why,
        };
        let may_run_any = name.is_none() || reading.may_run_any || doubt && name.as_deref() != Some("set");
        let script_file = reading.script_file.take();
        let run = match &script_file {
            Some(file) => vec![file.clone()],
            None => programs::files_that_run(&words, &reading),
        };
        // Another file of the same kind is another program.
        let is_go = reading.known.is_some_and(|known| known.name == "go run");
        let operands: Vec<usize> = operands.into_iter().filter(|at| !is_go && !run.contains(&words[*at])).collect();
        // Rules that deny cannot know what it runs then.
        let runs_written = run.iter().any(|file| self.may_have_written(file));
        let script = script_file.and_then(|file| self.script_text(&file));
        let script = script.or_else(|| programs::inline_script(&words)).or_else(|| self.handed_values(&words));
        let target = if hides { raw.to_owned() } else { shown(&plain) };
        let mut texts: Vec<String> = script.into_iter().chain(reading.program.take()).collect();
        if may_hold_command {
            let is_other = reading.is_unknown_operation && reading.form.is_some();
            texts.insert(0, programs::values::in_front(&words, is_other).unwrap_or_else(|| target.clone()));
            texts.append(&mut reading.texts);
        }
        let script = (!texts.is_empty()).then(|| texts.join("\n"));
        let (inner, scripts) = (std::mem::take(&mut reading.elsewhere), std::mem::take(&mut reading.scripts_elsewhere));
        let (mut elsewhere, mut may_run) = self.elsewhere(inner, &scripts)?;
        let (guessed, further) = self.elsewhere(std::mem::take(&mut reading.may_run), &[])?;
        may_run.extend(guessed.into_iter().chain(further));
        let mut shows = std::mem::take(&mut reading.shows);
        let changed = std::mem::take(&mut reading.changes_in);
        let changes = changed.into_iter().map(|(folder, endings)| self.changed_in(folder, endings)).collect();
        let given = self.folders_written(&reading.reads_in);
        shows.extend(given.into_iter().map(|folder| self.shown_in(folder.into())));
        let folder = self.state.folders().and_then(|folders| folders.first().filter(|_| folders.len() == 1));
        let folder_text = folder.map(PathBuf::as_path);
        let places: Vec<&Path> = self.surroundings.folders.iter().map(AsRef::as_ref).collect();
        let mut renamed = programs::other_names(&as_written, reading.form.as_ref(), folder_text, &places);
        if plain != as_written || program == ProgramName::Unknown {
            renamed.push(NamedCommand { words: as_written.clone(), form: reading.form.clone() });
        }
        // The line may have put a folder of its own in front of `PATH`.
        if self.lifted.written.contains("PATH=") && name.as_deref().is_some_and(|name| !name.contains('/')) {
            let script = Word { text: format!("./{}", plain[0].text), literal: true };
            let words: Vec<Word> = std::iter::once(script).chain(plain.iter().skip(1).cloned()).collect();
            renamed.extend(programs::other_names(&words, None, None, &[]));
        }
        for words in std::mem::take(&mut reading.also) {
            let form = words.first().and_then(Arg::literal).and_then(|name| programs::values::form(name, &words[1..]));
            renamed.push(NamedCommand { words: words.iter().map(Arg::word).collect(), form });
        }
        for words in programs::aliases::meant(&words, &self.set_variables()) {
            let words: Vec<Word> = words.iter().map(Arg::word).collect();
            renamed.extend(programs::other_names(&words, None, folder_text, &places));
            renamed.push(NamedCommand { words, form: None });
        }
        elsewhere.extend(renamed.into_iter().map(|command| InnerCommand {
            target: String::new(),
            words: Some(command.words),
            form: command.form,
            is_unsure: false,
            may_run_any: false,
            effects: CommandEffects::default(),
        }));
        let short = reading.known.filter(|_| unsure.is_none()).and_then(|_| places::without_place(&named));
        let short = short.filter(|_| program != ProgramName::Unknown);
        let writes_in = self.folders_written(&reading.writes_in);
        self.found.push(LineItem::Command(SimpleCommand {
            target: target.clone(),
            words: (!hides && program != ProgramName::Unknown).then_some(plain),
            raw: words.iter().map(|word| word.raw.clone()).collect(),
            may_run_any,
            runs_written,
            carries_code: reading.carries_code,
            never_free: reading.never_free,
            runs_input: reading.runs_input,
            hides_file: reading.hides_file || std::mem::take(&mut self.hides_file) || is_grammar,
            reads_anywhere: std::mem::take(&mut reading.reads_anywhere),
            shows,
            may_run,
            reads_only: reading.reads_only && unsure.is_none(),
            unsure,
            looked_up,
            script,
            makes,
            form: reading.form.take().filter(|_| !hides),
            short,
            elsewhere,
            head,
            operands,
            discards: std::mem::take(&mut reading.discards),
            writes_in,
            changes,
            checks_out: reading.checks_out.take(),
            effects,
            folder: folder.cloned(),
            known: reading.known,
            notes: std::mem::take(&mut reading.notes),
        }));
        for mut file in files {
            file.command.clone_from(&target);
            self.found.push(LineItem::File(file));
        }
        self.files_of_exports(&words, &target);
        let assigned = self.found.len();
        for assignment in std::mem::take(&mut reading.assignments) {
            self.exported(&assignment);
        }
        let run = self.found.len();
        let before = self.state.clone();
        if name.as_deref() == Some("trap") {
            // The command that it names may run at any time.
            self.state.lose();
        }
        let is_copied = matches!(name.as_deref(), Some("cat" | "tee"));
        let output = self.printed(std::mem::take(&mut reading.output), is_copied);
        let Reading { commands, on_found, scripts, same_shell, other_shell, .. } = reading;
        let own = self.found.len();
        // A keyword of the shell, unlike a program of that name in a folder.
        let same_shell = same_shell || name.as_deref() == Some("time");
        for inner in commands {
            self.inner(inner)?;
        }
        self.settle_variables(assigned..run);
        for (command, found) in on_found {
            let names = self.names_of(&found);
            let replaced = command.into_iter().map(|word| match (&names, word.is("{}")) {
                (_, false) => word,
                (Some(names), true) => Arg { raw: word.raw, ..expand::arg(names.clone(), "{}") },
                (None, true) => Arg { pieces: vec![WordPart::Unknown { splits: true }], raw: word.raw },
            });
            self.inner(replaced.collect())?;
        }
        for script in scripts {
            self.inner_script(&script)?;
        }
        if other_shell {
            for found in self.found.iter_mut().skip(own) {
                if let LineItem::Command(command) = found {
                    command.reads_only &= command.words.as_deref().is_some_and(enters_folder);
                }
            }
        }
        if !same_shell {
            self.state = before.clone();
            self.failed = None;
        }
        if name.as_deref() == Some("unset") {
            self.state.forget_functions();
        }
        self.effects(name.as_deref(), &words, hides, same_shell);
        if matches!(name.as_deref(), Some("cd" | "pushd" | "popd")) {
            // If `cd` fails, the shell stays in its folder. It cannot fail if the folder exists and nothing ran that
            // could have removed it.
            let is_there = |folders: &[std::path::PathBuf]| folders.iter().all(|folder| folder.is_dir());
            let is_sure = self.state.folders().is_some_and(is_there) && self.nothing_changed();
            self.failed = (!is_sure).then_some(before);
        }
        self.output = output;
        self.depth -= 1;
        Ok(())
    }

    /// See [`name_in_session`].
    fn program_in_session(&self, program: &Arg) -> ProgramName {
        let Some(written) = program.literal() else { return ProgramName::AsWritten };
        name_in_session(written, self.state.folders(), &self.session_places(), self.nothing_changed())
    }

    /// See [`script_in_session`]. Behind a script that a person has allowed to change this shell, names stay as they are.
    fn script_in_session(&self, script: &Arg) -> ProgramName {
        match script.literal() {
            Some(written) if !(self.is_elsewhere || self.state.is_lost() && self.state.folders().is_none()) => {
                script_in_session(written, self.state.folders(), &self.session_places(), self.nothing_changed())
            }
            _ => ProgramName::AsWritten,
        }
    }

    fn session_places(&self) -> Vec<&Path> {
        let places: Vec<&Path> = self.surroundings.folders.iter().map(AsRef::as_ref).collect();
        if places.is_empty() { vec![self.surroundings.cwd] } else { places }
    }

    /// No command that was read until here may have changed a file.
    fn nothing_changed(&self) -> bool {
        let changed = |found: &LineItem| match found {
            LineItem::Command(command) => !command.reads_only,
            LineItem::Redirect(_) | LineItem::File(_) => false,
        };
        !self.found.iter().any(changed)
    }

    fn inner(&mut self, words: Vec<Arg>) -> Walked {
        let raw = shown(&words.iter().map(Arg::word).collect::<Vec<_>>());
        // After `time`, the shell accepts keywords and assignments.
        let doubt = words.first().is_some_and(|name| check::is_reserved(name.start()) || name.start().contains('='));
        self.hides_file |= doubt;
        self.simple(words, doubt, &raw)
    }

    /// Commands that run in a container or on another machine, and those that their words may stand for. Nothing is known about
    /// its folders and variables.
    fn elsewhere(
        &mut self,
        commands: Vec<Vec<Arg>>,
        scripts: &[String],
    ) -> Walked<(Vec<InnerCommand>, Vec<InnerCommand>)> {
        if commands.is_empty() && scripts.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let (outer, before, failed) = (std::mem::take(&mut self.found), self.state.clone(), self.failed.take());
        let unordered = self.unordered.len();
        let is_within = std::mem::replace(&mut self.is_elsewhere, true);
        self.state.lose();
        for command in commands {
            self.inner(command)?;
        }
        for script in scripts {
            self.inner_script(script)?;
        }
        self.is_elsewhere = is_within;
        let found = std::mem::replace(&mut self.found, outer);
        self.unordered.truncate(unordered);
        (self.state, self.failed) = (before, failed);
        let (mut inner, mut may_run) = (Vec::new(), Vec::new());
        for found in found {
            if let LineItem::Command(command) = found {
                inner.extend(command.elsewhere);
                may_run.extend(command.may_run);
                // Rules that deny are about words in a text only if it may hold a command.
                let is_text = command.script.is_some() || command.words.is_none() || command.may_run_any;
                // The words are known where only a program in another language is a text.
                let own = Some(command.target).filter(|_| command.words.is_none() || command.may_run_any);
                let text = own.into_iter().chain(command.script).collect::<Vec<_>>().join("\n");
                inner.push(InnerCommand {
                    target: if is_text { text } else { String::new() },
                    words: command.words,
                    form: command.form,
                    is_unsure: command.unsure.is_some(),
                    may_run_any: command.may_run_any,
                    effects: command.effects,
                });
            }
        }
        Ok((inner, may_run))
    }

    /// Whether a command of the line that runs before may write the file, so that its content is not known.
    fn may_have_written(&self, file: &Arg) -> bool {
        let (Some(folders), Some(name)) = (self.state.folders(), file.literal()) else { return false };
        let paths: Vec<PathBuf> = folders.iter().map(|folder| super::state::logical(&folder.join(name))).collect();
        self.found.iter().any(|found| match found {
            LineItem::Command(_) => false,
            LineItem::File(named) => paths.iter().any(|path| named.may_write(path)),
            LineItem::Redirect(redirected) => paths.iter().any(|path| redirected.may_write(path)),
        })
    }

    /// The content of a script file.
    fn script_text(&mut self, file: &Arg) -> Option<String> {
        let [folder] = self.state.folders()? else { return None };
        let path = folder.join(file.literal()?);
        let found = crate::files::resolve_for(&path, std::path::Path::new("/"), self.surroundings.may_read).ok()?;
        if found.judged_as.is_some() || !(self.surroundings.may_read)(&found.path) {
            return None;
        }
        let text = crate::files::read_whole(&found.path, super::MAX_BYTES as u64).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The first line names who runs the file, unless somebody else does.
        let without_runner = text.split_once('\n').filter(|(first, _)| first.starts_with("#!")).map(|(_, rest)| rest);
        Some(without_runner.unwrap_or(&text).to_owned())
    }

    /// Whether a command of the line got the variable in front of it.
    fn is_given(&self, variable: &str) -> bool {
        self.found.iter().any(|found| match found {
            LineItem::Command(command) => {
                command.target.split_once('=').is_some_and(|(name, _)| name.trim_end_matches('+') == variable)
            }
            LineItem::Redirect(_) | LineItem::File(_) => false,
        })
    }

    fn inner_script(&mut self, script: &str) -> Walked {
        let mut state = self.state.for_child();
        for name in CHOOSING_FOLDER.iter().filter(|name| self.is_given(name)) {
            state.set(name, None);
        }
        let not_parsed =
            || LineItem::Command(SimpleCommand::not_parsed(script, "toold cannot parse this script reliably"));
        let Ok(lifted) = heredocs::lift(script) else {
            self.found.push(not_parsed());
            return Ok(());
        };
        let mut inner = ShellWalk::new(&lifted, self.surroundings, state, self.clock);
        inner.depth = self.depth;
        inner.statements = self.statements;
        inner.input = self.input.shared();
        // The commands before it count inside, too: a script may run a file that they have written.
        let before = self.found.len();
        inner.found = std::mem::take(&mut self.found);
        let outcome = inner.script();
        let (found, statements, state) = (std::mem::take(&mut inner.found), inner.statements, inner.state.clone());
        let unordered = std::mem::take(&mut inner.unordered);
        self.statements = statements;
        self.found = found;
        match outcome {
            Ok(()) => self.unordered.extend(unordered),
            Err(Unreadable) => {
                self.found.truncate(before);
                self.found.push(not_parsed());
            }
        }
        // For `eval`, which changes this shell.
        self.state.or(&state);
        Ok(())
    }
}

/// `cd FOLDER`, which every shell reads alike.
fn enters_folder(words: &[Word]) -> bool {
    let [name, folder] = words else { return false };
    let is_plain = folder.literal && !folder.text.starts_with(['-', '+', '~', '=']);
    name.literal && name.text == "cd" && is_plain
}

/// Wildcards reveal names in folders to the program that gets them.
pub(super) fn list_wildcards(words: &[Arg], reading: &mut Reading) {
    for word in words.iter().filter(|word| word.has_glob()) {
        let is_file = reading.files.iter().any(|file| file.arg == *word);
        let folder = word.start().rsplit_once('/').map(|(folder, _)| if folder.is_empty() { "/" } else { folder });
        if let Some(folder) = folder.filter(|folder| !is_file && (folder.starts_with('/') || folder.contains(".."))) {
            reading.files.push(FileUse::new(FileAccess::List, Arg::text(folder)));
        }
    }
}

/// The positions of the words that name files.
fn operands_of(words: &[Arg], reading: &Reading) -> Vec<usize> {
    let files: HashSet<&str> =
        reading.files.iter().filter(|file| file.is_operand).map(|file| file.arg.raw.as_str()).collect();
    let is_file = |word: &Arg| files.contains(word.raw.as_str());
    words.iter().enumerate().skip(1).filter(|(_, word)| is_file(word)).map(|(at, _)| at).collect()
}
