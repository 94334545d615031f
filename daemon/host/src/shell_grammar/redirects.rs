//! The files that redirects open.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use toold_engine::need::{Need, Word};
use toold_engine::policy::targets::check_target;
use toold_proto::tool::Category;
use tree_sitter::Node;

use super::arg::{self, Arg, WordPart};
use super::files::{is_public, leads_nowhere, may_be_forbidden};
use super::heredocs::{self, Heredoc, LiftedKind};
use super::programs::{CommandOutput, FileAccess, FileUse, Reading};
use super::state::{ShellState, logical};
use super::{LineItem, ShellWalk, SimpleCommand, Unreadable, Walked, all, check, children_of_field, named};
use crate::exclude::Exclusions;
use crate::file_needs::{read_need, write_need};
use crate::files::{ResolvedPath, is_file_of_opener, resolve_for};

/// A file that is opened by its name.
pub(super) struct Redirected {
    category: Category,
    path: String,
    /// As it was written.
    shown: String,
    /// The shell's possible folders; `None` if unknown.
    folders: Option<Vec<PathBuf>>,
    /// Why the file is not known after all, and whether it may be one that no tool touches.
    pub(super) unknown: Option<(String, bool)>,
}

pub(super) enum RedirectTarget {
    /// A descriptor, or a device that stores nothing.
    Nothing,
    File(Redirected),
    /// The file is unknown.
    Unsure,
}

impl Redirected {
    /// Whether it writes, and may be the file at this path.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        let is_it = |folder: &PathBuf| logical(&folder.join(&self.path)) == path;
        self.category == Category::FileWrite
            && (self.unknown.is_some() || self.folders.as_ref().is_none_or(|folders| folders.iter().any(is_it)))
    }

    pub(super) fn target(operator: &str, word: Word, raw: &str, folders: Option<&[PathBuf]>) -> RedirectTarget {
        let folders = folders.map(<[PathBuf]>::to_vec);
        let harmless = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        let descriptor = operator.ends_with('&');
        let number = word.text.strip_suffix('-').unwrap_or(&word.text);
        let is_number = number.chars().all(|c| c.is_ascii_digit()) && word.text != "--";
        if !word.literal || word.text.is_empty() {
            return RedirectTarget::Unsure;
        }
        // The shell expands the word behind `>&` twice.
        let plain = |c: char| c.is_alphanumeric() || "_./-+,@%=:".contains(c);
        if descriptor && !is_number && (!word.text.chars().all(plain) || word.text.starts_with(['-', '+'])) {
            return RedirectTarget::Unsure;
        }
        if (descriptor && is_number) || harmless.contains(&word.text.as_str()) {
            return RedirectTarget::Nothing;
        }
        let category = match operator {
            "<" => Category::FileRead,
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => Category::FileWrite,
            _ => return RedirectTarget::Unsure,
        };
        if let Some(address) = ["/dev/tcp/", "/dev/udp/"].iter().find_map(|start| word.text.strip_prefix(start)) {
            return RedirectTarget::File(Self {
                category: Category::Network,
                path: requested(address),
                shown: format!("{operator} {raw}"),
                folders,
                unknown: None,
            });
        }
        RedirectTarget::File(Self {
            category,
            path: word.text,
            shown: format!("{operator} {raw}"),
            folders,
            unknown: None,
        })
    }

    pub(super) fn is_written(&self) -> bool {
        self.category == Category::FileWrite
    }

    /// The files that it may be; none for a host, or in a folder that is not known.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        match (self.category, &self.folders) {
            (Category::FileRead | Category::FileWrite, _) if Path::new(&self.path).is_absolute() => {
                vec![PathBuf::from(&self.path)]
            }
            (Category::FileRead | Category::FileWrite, Some(folders)) => {
                folders.iter().map(|folder| folder.join(&self.path)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A place on the path that needs permission comes before the file.
    pub(super) fn needs(
        &self,
        line: &str,
        may_read: &mut dyn FnMut(&Path) -> bool,
        exclusions: &mut Exclusions,
    ) -> Vec<Need> {
        let on_file = match self.category {
            Category::FileRead => read_need,
            Category::FileWrite => write_need,
            other => {
                // A port name, or a host that no request could name: no rule could cover it.
                let forbidden = check_target(other, &self.path).err();
                return vec![Need { forbidden, line: Some(line.to_owned()), ..Need::new(other, self.path.clone()) }];
            }
        };
        let unknown = |why: &str| SimpleCommand::not_understood(&self.shown, why);
        let root = [PathBuf::from("/")];
        let folders = match (Path::new(&self.path).is_absolute(), &self.folders) {
            (true, _) => root.as_slice(),
            (false, Some(folders)) => folders,
            (false, None) => {
                let how = if self.category == Category::FileRead { FileAccess::Read } else { FileAccess::Write };
                let hides_file = may_be_forbidden(&Arg::text(&self.path), how);
                let nowhere = unknown("the folder that it runs in is unknown");
                return vec![SimpleCommand { hides_file, ..nowhere }.need(line)];
            }
        };
        let mut needs = Vec::new();
        if let Some((why, hides_file)) = &self.unknown {
            needs.push(SimpleCommand { hides_file: *hides_file, ..unknown(why) }.need(line));
        }
        for folder in folders {
            let ResolvedPath { path, judged_as, .. } = match resolve_for(Path::new(&self.path), folder, may_read) {
                Ok(found) => found,
                // No program needs such a name, and it could be that of any file.
                Err(error) if is_file_of_opener(&error) => {
                    let need = on_file(Path::new(&self.path), exclusions);
                    needs.push(Need { line: Some(line.to_owned()), forbidden: Some(error.to_string()), ..need });
                    continue;
                }
                Err(error) => {
                    needs.push(SimpleCommand { hides_file: true, ..unknown(&leads_nowhere(&error)) }.need(line));
                    continue;
                }
            };
            for path in judged_as.iter().chain([&path]) {
                let need = Need { line: Some(line.to_owned()), ..on_file(path, exclusions) };
                let is_public = self.category == Category::FileRead && is_public(path);
                needs.push(need.with_file(|file| file.is_public = is_public));
            }
        }
        needs
    }
}

/// `host/port` in the form of web requests, so that the same rules apply: `::1/80` becomes `[::1]:80`, and `0x7f.1/80`
/// becomes `127.0.0.1:80`. Anything that requests cannot name stays unchanged.
fn requested(address: &str) -> String {
    let Some((host, port)) = address.split_once('/') else { return format!("{address}:") };
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => match address.to_ipv4_mapped() {
            Some(inner) => inner.to_string(),
            None => format!("[{address}]"),
        },
        Err(_) if host.contains('%') => return address.to_owned(),
        Err(_) => match url::Host::parse(host) {
            Ok(host) => host.to_string().trim_end_matches('.').to_owned(),
            Err(_) => return address.to_owned(),
        },
    };
    format!("{host}:{port}")
}

impl<'t> ShellWalk<'_, '_, '_> {
    pub(super) fn redirected(&mut self, node: Node<'t>) -> Walked {
        let body = node.child_by_field_name("body");
        let redirects: Vec<Node> = named(node).into_iter().filter(|child| Some(*child) != body).collect();
        match body {
            Some(body) => self.with_redirects(body, &redirects),
            None => {
                let input = self.input.clone();
                let (further, doubt) = self.redirects(&redirects)?;
                let judged = match (further.is_empty(), doubt) {
                    (false, doubt) => {
                        // Behind a redirect there are no keywords, but assignments.
                        let is_plain = |name: &Arg| !check::is_reserved(name.start()) && !name.raw.contains('=');
                        let doubt = doubt || !further.first().is_some_and(is_plain);
                        self.simple(further, doubt, &self.lifted.shown(node.byte_range()))
                    }
                    (true, true) => self.unsure(node, "the target of a redirect is unknown"),
                    (true, false) => Ok(()),
                };
                self.input = input;
                judged
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

    /// The grammar attaches the redirects of the last command of a list or pipe to the whole list or pipe.
    pub(super) fn with_redirects(&mut self, body: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        match body.kind() {
            _ if redirects.is_empty() => return self.statement(body),
            "command" => return self.command(body, redirects),
            "list" => return self.list(body, redirects),
            "pipeline" => return self.pipeline(body, redirects),
            "negated_command" => return self.negated(body, redirects),
            "function_definition" => return self.function(body, redirects),
            "redirected_statement" => return Err(Unreadable),
            _ => {}
        }
        let input = self.input.clone();
        let (further, doubt) = self.redirects(redirects)?;
        // Words behind a redirect belong to a command, and these bodies take none.
        if !further.is_empty() {
            return Err(Unreadable);
        }
        if doubt {
            self.unsure(body, "the target of a redirect is unknown")?;
        }
        self.input = self.input.shared();
        let before = self.state.clone();
        self.statement(body)?;
        self.output = CommandOutput::Unknown;
        self.fails_as(&before);
        self.input = input;
        Ok(())
    }

    /// If a redirect fails, the command fails and the state stays as before.
    pub(super) fn fails_as(&mut self, before: &ShellState) {
        let mut failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        failed.or(before);
        self.failed = Some(failed);
    }

    /// Returns the words behind the redirect's target: the grammar attaches them to the redirect, the shell to the
    /// command.
    pub(super) fn redirect(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        self.judged.insert(node.id());
        if let Some(name) = self.lifted.descriptor_variable(node) {
            if !check::is_harmless_name(name) || !self.is_the_shells_own(name) {
                return Err(Unreadable);
            }
            self.state.set(name, None);
        }
        let before = self.word_before(node)?;
        match node.kind() {
            "file_redirect" => {
                let further = self.file_redirect(node)?;
                Ok(before.into_iter().chain(further).collect())
            }
            "herestring_redirect" => {
                let mut text = None;
                for word in named(node).into_iter().filter(|child| child.kind() != "file_descriptor") {
                    text = self.text_of_word(word)?;
                }
                self.gives_input(node, CommandOutput::of_text(text));
                Ok(Vec::new())
            }
            _ => Err(Unreadable),
        }
    }

    /// The word before a redirect that the grammar takes for its descriptor: `ls -1>file`.
    fn word_before(&self, node: Node<'t>) -> Walked<Option<Arg>> {
        let first = node.child(0).filter(|child| child.kind() == "file_descriptor").map(|child| self.text(child));
        let word = first.filter(|text| {
            text.strip_prefix('-')
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
        });
        check::descriptor_stands_alone(node, self.source, word.is_some())?;
        Ok(word.map(Arg::text))
    }

    fn file_redirect(&mut self, node: Node<'t>) -> Walked<Vec<Arg>> {
        let operator = all(node).into_iter().find(|child| !child.is_named()).ok_or(Unreadable)?;
        let mut destinations = Vec::new();
        let mut written = children_of_field(node, "destination");
        check::words_stand_apart(&written, self.source)?;
        let lifted = self.lifted.lifted(node).map(|redirect| &redirect.kind);
        if matches!(lifted, Some(LiftedKind::Heredoc(_) | LiftedKind::HereString)) {
            let text = match lifted {
                Some(LiftedKind::Heredoc(heredoc)) => {
                    self.heredoc(heredoc)?;
                    heredoc.text().map(str::to_owned)
                }
                _ => self.text_of_word(*written.first().ok_or(Unreadable)?)?,
            };
            self.gives_input(node, CommandOutput::of_text(text));
            let mut further = Vec::new();
            for word in written.drain(1..) {
                further.extend(self.word(word)?);
            }
            return Ok(further);
        }
        for destination in written {
            destinations.push((self.word(destination)?, self.text(destination)));
        }
        let mut destinations = destinations.into_iter();
        let operator = match lifted {
            Some(LiftedKind::ReadWrite) => "<>",
            _ => self.text(operator),
        };
        if operator.starts_with('<') {
            let file = destinations.clone().next().and_then(|(words, _)| <[Arg; 1]>::try_from(words).ok());
            let is_known = |file: &Arg| file.literal().is_some_and(|text| !text.starts_with("/dev/"));
            self.gives_input(
                node,
                match file {
                    Some([file]) if operator == "<" && file.is("/dev/null") => CommandOutput::Text("".into()),
                    Some([file]) if operator == "<" && is_known(&file) => CommandOutput::Content(file),
                    _ => CommandOutput::Unknown,
                },
            );
        }
        if !operator.ends_with('-') {
            let (words, raw) = destinations.next().ok_or(Unreadable)?;
            let word = match words.as_slice() {
                [one] => one.word(),
                _ => Word { text: raw.to_owned(), literal: false },
            };
            let is_found = matches!(words.as_slice(), [one] if one.has_glob() || matches!(one.pieces.as_slice(), [WordPart::Names(_)]));
            if is_found && matches!(operator, "<" | ">" | ">>" | ">|" | "&>" | "&>>") {
                let how = if operator == "<" { FileAccess::Read } else { FileAccess::Write };
                let mut reading = Reading {
                    files: vec![FileUse { is_operand: false, ..FileUse::new(how, words[0].clone()) }],
                    ..Reading::default()
                };
                let files = self.named_files(&mut reading);
                self.doubt |= reading.unsure.is_some();
                self.hides_file |= reading.hides_file;
                self.found.extend(files.into_iter().map(LineItem::File));
                return Ok(destinations.flat_map(|(words, _)| words).collect());
            }
            // The commands at the other end of the pipe were analyzed.
            let is_pipe = matches!(words.as_slice(), [Arg { pieces, .. }] if pieces.as_slice() == [WordPart::Pipe]);
            if is_pipe && matches!(operator, "<" | ">" | ">>" | "&>") {
                return Ok(destinations.flat_map(|(words, _)| words).collect());
            }
            // It is opened for both.
            let operators = if operator == "<>" { ["<", ">>"].as_slice() } else { &[operator] };
            for operator in operators {
                match Redirected::target(operator, word.clone(), raw, self.state.folders()) {
                    RedirectTarget::Nothing => {}
                    RedirectTarget::File(redirected) => self.found.push(LineItem::Redirect(redirected)),
                    RedirectTarget::Unsure => {
                        self.doubt = true;
                        self.hides_file = true;
                    }
                }
            }
        }
        Ok(destinations.flat_map(|(words, _)| words).collect())
    }

    /// The standard input of the command, unless the redirect is of another descriptor.
    fn gives_input(&mut self, redirect: Node<'t>, input: CommandOutput) {
        if self.lifted.descriptor_variable(redirect).is_some() {
            return;
        }
        let descriptor = redirect.child(0).filter(|child| child.kind() == "file_descriptor");
        if descriptor.is_none_or(|descriptor| self.text(descriptor).trim_start_matches('0').is_empty()) {
            self.input = input;
        }
    }

    /// The text of a here-string, if it is known.
    fn text_of_word(&mut self, word: Node<'t>) -> Walked<Option<String>> {
        let home = self.home();
        let pieces = arg::value(&self.tokens(word)?, home.as_deref());
        Ok(match pieces.as_slice() {
            [] => Some("\n".to_owned()),
            [WordPart::Text(text)] => Some(format!("{text}\n")),
            _ => None,
        })
    }

    /// Judges the substitutions that the shell evaluates in the body of a heredoc.
    fn heredoc(&mut self, heredoc: &Heredoc) -> Walked {
        let expansions = heredoc.expansions()?;
        if expansions.is_empty() {
            return Ok(());
        }
        // It expands them as in double quotes.
        let text = format!(": \"{}\"", expansions.join("\" \""));
        let lifted = heredocs::lift(&text)?;
        let mut walk = ShellWalk::new(&lifted, self.surroundings, self.state.clone(), self.clock);
        (walk.depth, walk.statements, walk.substitutions) = (self.depth + 1, self.statements, self.substitutions);
        walk.found = std::mem::take(&mut self.found);
        walk.input = self.input.shared();
        let outcome = walk.operands(expansions.len());
        let (found, statements, state) = (std::mem::take(&mut walk.found), walk.statements, walk.state.clone());
        let unordered = std::mem::take(&mut walk.unordered);
        let (doubt, hides_file) = (walk.doubt, walk.hides_file);
        (self.found, self.statements, self.state) = (found, statements, state);
        self.unordered.extend(unordered);
        self.doubt |= doubt;
        self.hides_file |= hides_file;
        outcome
    }
}
