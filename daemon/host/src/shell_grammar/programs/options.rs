//! Splits a command's words into options and operands as its program does (POSIX utility conventions; GNU
//! `getopt_long`).

use toold_engine::need::{CommandForm, FormOption, Word};
use toold_proto::cut;

use super::in_folder::InFolder;
use super::known::{self, Operand, ProgramTable, Takes};
use super::{FileAccess, FileUse, Reading, rustc, shell};
use crate::shell_grammar::arg::{Arg, WordPart};

/// An option as it was written.
#[derive(Clone, Debug)]
pub(crate) struct GivenOption {
    pub(crate) name: String,
    pub(crate) values: Vec<Arg>,
}

/// A parsed command.
pub(crate) struct Parsed {
    pub(crate) known: &'static ProgramTable,
    pub(crate) given: Vec<GivenOption>,
    pub(crate) operands: Vec<Arg>,
    /// The words that chose the entry of the tables.
    pub(crate) subcommands: Vec<Arg>,
    /// The words after `--`, if the program parses them differently.
    pub(crate) rest: Vec<Arg>,
    /// The command that it runs.
    pub(crate) command: Vec<Arg>,
    pub(crate) reading: Reading,
    /// Which words are values of options is not certain.
    pub(crate) is_uncertain: bool,
    /// The folder that an option before the subcommand chooses: all other names are relative to it.
    pub(crate) folder: Option<Arg>,
}

/// Options with a folder that the program does not enter, so that names stay relative to its own.
const NOT_ENTERED: &[&str] = &["--project", "-P", "--prefix"];

/// What the tables say of options that name a file with settings or code, which may name programs.
const SETTINGS_ELSEWHERE: &[&str] = &[
    "reads options from a file",
    "another configuration",
    "loads code",
    "loads a library",
    "commands of a file",
    "commands from a file",
    "program from a file",
    "script from a file",
    "configuration, which can name a program",
    "configuration of another repository",
    "programs of another folder",
];

/// What they say of options that run something, load code, or read what may name some.
const OF_CODE: &[&str] = &[
    "program",
    "code",
    "command",
    "script",
    "shell",
    "editor",
    "library",
    "viewer",
    "browser",
    "options from a file",
    "configuration",
    "settings",
    "tasks",
    "recipes",
    "build of another file",
    "key bindings",
    "hooks",
    "pager",
    "debugger",
    "rules of another",
];

/// Programs that show or pack what they get, and do nothing else.
const PLAIN_PROGRAMS: &[&str] = &["cat", "true", ":", "less", "more", "gzip", "pigz", "bzip2", "xz", "zstd", "lz4"];

impl Parsed {
    /// The words as rules that deny or ask compare them; `None` where they cannot be told apart.
    fn form(&self) -> Option<CommandForm> {
        if self.is_uncertain || self.given.iter().any(|given| given.name == "?") {
            return None;
        }
        let options = self.options();
        // `docker container rm` is `docker rm`.
        let is_container =
            self.known.name.starts_with("docker container ") || self.known.name.starts_with("podman container ");
        let subcommands = self.subcommands.iter().skip(usize::from(is_container));
        let plain = subcommands.chain(&self.operands).chain(&self.rest).chain(&self.command);
        Some(CommandForm { plain: plain.map(Arg::word).collect(), options, operation: None })
    }

    /// Each option that was read, with all its spellings.
    fn options(&self) -> Vec<FormOption> {
        // `-race` and `--race` are one option of such a program.
        let two_dashes = |name: &String| (self.known.one_dash && !name.starts_with("--")).then(|| format!("-{name}"));
        let option = |given: &GivenOption| FormOption {
            names: [std::slice::from_ref(&given.name), self.spellings(&given.name), two_dashes(&given.name).as_slice()]
                .concat(),
            values: given.values.iter().map(Arg::word).collect(),
        };
        self.given.iter().map(option).collect()
    }

    fn spellings(&self, name: &str) -> &[String] {
        self.known.spellings.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.name.as_str()))
    }

    pub(crate) fn values(&self, names: &[&str]) -> impl Iterator<Item = &Arg> {
        self.given.iter().filter(move |given| names.contains(&given.name.as_str())).flat_map(|given| &given.values)
    }
}

/// Whether the option gives a container a volume of its engine, and no folder of this machine: `-v data:/var/lib`.
pub(super) fn is_of_engine(entry: &str, option: &str, value: &Word) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    matches!(entry, "docker run" | "docker compose run")
        && matches!(option, "-v" | "--volume")
        && value.literal
        && value.text.split_once(':').is_some_and(|(name, place)| is_name(name) && place.starts_with('/'))
}

/// Parses the words after the program's name, including a subcommand's.
pub(crate) fn parse(known: &'static ProgramTable, words: &[Arg]) -> Parsed {
    let reading = Reading { known: Some(known), ..Reading::default() };
    let mut parser = OptionParser {
        parsed: Parsed {
            known,
            given: Vec::new(),
            operands: Vec::new(),
            subcommands: Vec::new(),
            rest: Vec::new(),
            command: Vec::new(),
            reading,
            is_uncertain: false,
            folder: None,
        },
        words,
        at: 0,
        uncertain: false,
    };
    parser.run();
    parser.parsed
}

struct OptionParser<'a> {
    parsed: Parsed,
    words: &'a [Arg],
    at: usize,
    /// An earlier word may expand to several, so it is unknown which word is the value of which option.
    uncertain: bool,
}

impl<'a> OptionParser<'a> {
    fn known(&self) -> &'static ProgramTable {
        self.parsed.known
    }

    fn run(&mut self) {
        while let Some(word) = self.words.get(self.at) {
            self.at += 1;
            self.gains_options(word);
            if word.is("--") {
                let rest = &self.words[self.at..];
                if self.known().rest_is_unsure && !rest.is_empty() {
                    self.parsed.reading.doubt("the words after -- are for another program");
                }
                if let Some(program) = self.known().rest_of.as_deref() {
                    self.rest_of(program, rest);
                }
                match (self.known().rest_is_text, self.known().command.is_some()) {
                    (true, _) => self.parsed.rest = rest.to_vec(),
                    (_, true) => return self.command(),
                    _ => self.parsed.operands.extend_from_slice(rest),
                }
                return;
            }
            let text = word.start();
            if text.starts_with('+')
                && self.known().options.contains_key("+")
                && !self.known().options.contains_key(text)
            {
                let name = "+";
                let takes = self.known().options[name].clone();
                self.take(word, name, &takes, None);
                continue;
            }
            if word.is("-") && self.known().options.contains_key("-") {
                self.parsed.reading.note(word, "option");
                continue;
            }
            let takes_files = self.known().operands.iter().any(|(kind, _)| *kind != Operand::Text);
            if text.starts_with('+') && cut::after_first(text).starts_with(|c: char| c.is_ascii_digit()) && takes_files
            {
                self.parsed.reading.doubt(format!("{} may be an option", word.raw));
            }
            let is_option = text.len() > 1 && text.starts_with('-')
                || text.starts_with('+') && self.known().options.contains_key("+");
            if is_option && (text.starts_with("--") || self.known().one_dash) {
                self.long(word);
            } else if is_option {
                self.cluster(word);
            } else if word.may_be_option() && word.literal().is_none() {
                self.may_be_option(word);
            } else if self.operand(word) {
                return;
            }
        }
    }

    /// A word that the shell may turn into options, which may run what stands in them: `make $x` runs any recipe.
    fn gains_options(&mut self, word: &Arg) {
        self.parsed.reading.may_run_any |= word.may_become_option() && !self.known().runs_nothing;
    }

    /// Words behind `--`, which are options of the program that this one starts.
    fn rest_of(&mut self, program: &str, words: &[Arg]) {
        let Some(known) = known::find(program) else {
            return self.parsed.reading.doubt(format!("the words after -- are for {program}"));
        };
        let mut inner = parse(known, words);
        if program == "rustc" {
            rustc::add_values(&mut inner);
        }
        let inner = inner.into_reading();
        self.parsed.reading.hides_file |= inner.hides_file;
        self.parsed.reading.files.extend(inner.files);
        self.parsed.reading.notes.extend(inner.notes);
        if let Some(why) = inner.unsure {
            self.parsed.reading.doubt(why);
        }
    }

    /// True if the options end here.
    fn operand(&mut self, word: &Arg) -> bool {
        let known = self.known();
        if !known.subcommands.is_empty() && self.parsed.operands.is_empty() {
            match word.literal().map(|text| (text, known.subcommands.get(text))) {
                Some((_, Some(subcommand))) => {
                    self.parsed.reading.note(word, "subcommand");
                    self.parsed.subcommands.push(word.clone());
                    self.parsed.known = subcommand;
                    self.parsed.reading.known = Some(subcommand);
                    self.parsed.operands.clear();
                    return false;
                }
                Some((_, None)) if known.open => {
                    let rest = &self.words[self.at..];
                    if rest.first().is_some_and(|first| first.literal().is_none()) {
                        self.parsed
                            .reading
                            .doubt(format!("the shell expands {}, and the result is unknown", rest[0].raw));
                    }
                    self.parsed.operands.push(word.clone());
                    self.parsed.operands.extend_from_slice(rest);
                    self.at = self.words.len();
                    return true;
                }
                Some((_, None)) if self.parsed.given.iter().any(|given| known.lists_with.contains(&given.name)) => {}
                Some((text, None)) if !known.closed && known.operands.is_empty() => {
                    self.parsed.reading.is_unknown_operation = true;
                    self.parsed.reading.doubt(format!("toold does not know what {} {text} does", known.name));
                }
                None if !known.closed => {
                    self.parsed.reading.doubt(format!("the shell expands {}, and the result is unknown", word.raw))
                }
                _ => {}
            }
        }
        if known.command.is_some() {
            self.at -= 1;
            self.command();
            return true;
        }
        self.parsed.operands.push(word.clone());
        if known.in_order {
            self.parsed.operands.extend_from_slice(&self.words[self.at..]);
            return true;
        }
        false
    }

    /// Assignments, the wrapper's own operands, and the command that it runs.
    fn command(&mut self) {
        let known = self.known();
        while known.assignments && self.words.get(self.at).is_some_and(|word| word.start().contains('=')) {
            self.parsed.reading.assignments.push(self.words[self.at].clone());
            self.at += 1;
        }
        for _ in 0..known.command.unwrap_or_default() {
            if let Some(word) = self.words.get(self.at) {
                if !word.is_one() || word.may_be_option() {
                    self.parsed.reading.doubt(format!("the shell expands {}, and the result is unknown", word.raw));
                    self.parsed.reading.may_run_any = true;
                }
                self.parsed.reading.note(word, "operand");
                self.at += 1;
            }
        }
        let command = self.words.get(self.at..).unwrap_or_default();
        // It may expand to nothing, or to an option.
        if command.first().is_some_and(|name| !name.is_one() || name.may_be_option() && name.literal().is_none()) {
            self.parsed.reading.may_run_any = true;
            self.parsed.reading.doubt(format!("the program that {} names is unknown", command[0].raw));
        }
        self.parsed.command = command.to_vec();
        self.at = self.words.len();
    }

    /// A word whose beginning the shell still expands.
    fn may_be_option(&mut self, word: &Arg) {
        // A wildcard alone is looked up in the folder, and stays an operand if no name there begins with a dash.
        if matches!(word.pieces.first(), Some(WordPart::Glob(_)))
            && !word.pieces.iter().any(|piece| matches!(piece, WordPart::Unknown { .. }))
        {
            self.parsed.operands.push(word.clone());
            return;
        }
        if self.known().closed {
            self.doubt_option(word);
            self.uncertain |= !word.is_one();
            self.parsed.operands.push(word.clone());
            return;
        }
        if self.known().command.is_some() {
            // It may also be the program that is run.
            self.parsed.reading.may_run_any = true;
            self.parsed.reading.is_open = true;
        }
        self.parsed.reading.doubt(format!("{} may expand to an option", word.raw));
        self.parsed.operands.push(word.clone());
    }

    /// A word that may become any option of a program with harmless options: some of them still select other files.
    fn doubt_option(&mut self, word: &Arg) {
        if self.known().has_choosing_options() {
            self.parsed.reading.doubt(format!("{} may expand to an option that selects other files", word.raw));
        }
    }

    fn long(&mut self, word: &Arg) {
        let text = word.start();
        let (name, attached) = match text.split_once('=') {
            Some((name, _)) => (name, Some(word.without_start(name.len() + 1))),
            // The shell still changes the option's name.
            None if word.literal().is_none() => return self.unlisted(word, text, None),
            None => (text, None),
        };
        let takes = self.known().options.get_key_value(name).or_else(|| {
            // Most programs that take long options with one dash also take two.
            let short = name.strip_prefix('-').filter(|short| short.starts_with('-') && self.known().one_dash);
            short.and_then(|short| self.known().options.get_key_value(short))
        });
        match takes {
            None => {
                let digits = cut::after_first(name);
                if self.known().number && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
                    self.parsed.reading.note(word, "number");
                    return;
                }
                self.unlisted(word, name, attached);
            }
            Some((name, takes)) => self.take(word, name, takes, attached),
        }
    }

    /// `-abc`: each letter is an option until one takes the rest as its value.
    fn cluster(&mut self, word: &Arg) {
        let text = word.start();
        let digits = cut::after_first(text);
        if self.known().number && word.literal().is_some() && digits.bytes().all(|b| b.is_ascii_digit()) {
            self.parsed.reading.note(word, "number");
            return;
        }
        // Some programs have options of one dash and several letters.
        if word.literal().is_some()
            && text.len() > 2
            && let Some(takes) = self.known().options.get(text)
        {
            return self.take(word, text, takes, None);
        }
        let mut is_sure = true;
        for (index, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let end = index + letter.len_utf8();
            let is_last = end == text.len();
            let rest = (!is_last || word.literal().is_none()).then(|| word.without_start(end));
            match self.known().options.get(&name) {
                None => {
                    if self.known().number && letter.is_ascii_digit() {
                        // After digits, letters are units and take no word.
                        is_sure = false;
                        self.parsed.given.push(GivenOption { name: "?".to_owned(), values: Vec::new() });
                        continue;
                    }
                    is_sure = false;
                    if !self.known().closed {
                        // `-TTevil`: what is behind the letters may be a value, or the value of this one.
                        let behind = [index, end].map(|at| cut::from(text, at).to_owned());
                        self.parsed.reading.texts.extend(behind);
                        return self.unlisted(word, &name, None);
                    }
                    self.uncertain = true;
                    self.parsed.given.push(GivenOption { name: "?".to_owned(), values: Vec::new() });
                }
                Some(Takes::Nothing) => {
                    self.parsed.given.push(GivenOption { name, values: Vec::new() });
                    if is_last && word.literal().is_none() {
                        // The shell still changes the text after the letters.
                        return self.unlisted(word, text, None);
                    }
                }
                Some(Takes::Unsure(why)) => return self.unsure(word, &name, why, rest),
                Some(takes) => {
                    let attached = rest.map(|rest| match rest.start().strip_prefix('=') {
                        // `-n=5` gives `=5` to GNU programs and `5` to others.
                        Some(_) if self.known().one_dash => rest.without_start(1),
                        _ => rest,
                    });
                    // After an unknown letter, the next word may be an operand.
                    let takes = match takes {
                        Takes::Words(_) if !is_sure => &Takes::Attached,
                        takes => takes,
                    };
                    return self.take(word, &name, takes, attached);
                }
            }
        }
        if is_sure {
            self.parsed.reading.note(word, "option");
        }
    }

    fn take(&mut self, word: &Arg, name: &str, takes: &Takes, attached: Option<Arg>) {
        let mut values = Vec::new();
        let has_value = attached.is_some();
        let wanted = match takes {
            Takes::Nothing | Takes::Attached | Takes::WriteAttached => 0,
            Takes::Words(count) => count.saturating_sub(usize::from(has_value)),
            Takes::Read | Takes::Write | Takes::Output | Takes::Folder | Takes::Place => usize::from(!has_value),
            Takes::Unsure(why) => return self.unsure(word, name, why, attached),
        };
        values.extend(attached);
        self.parsed.reading.note(word, "option");
        if *takes == Takes::Nothing && has_value && !self.known().closed {
            self.parsed.reading.doubt(format!("{name} takes no value"));
        }
        for _ in 0..wanted {
            let Some(value) = self.words.get(self.at) else { break };
            self.at += 1;
            self.parsed.reading.note(value, format!("value of {name}"));
            // Some programs parse such a word as the next option.
            let is_number =
                value.start().len() > 1 && cut::after_first(value.start()).bytes().all(|b| b.is_ascii_digit());
            if value.start().starts_with('-') && value.start() != "-" && !is_number && !self.known().closed {
                self.parsed.reading.doubt(format!("{}, the value of {name}, may be an option itself", value.raw));
            }
            if !value.is_one() {
                self.gains_options(value);
                // It may expand to no word at all, and then the next word is the value.
                if !self.known().closed {
                    self.parsed.reading.doubt(format!(
                        "the shell expands {}, the value of {name}, and the result is unknown",
                        value.raw
                    ));
                }
                self.uncertain = true;
                self.parsed.operands.push(value.clone());
            }
            values.push(value.clone());
        }
        if *takes == Takes::Folder {
            let enters = !self.known().subcommands.is_empty() || self.known().command.is_some();
            if enters && !NOT_ENTERED.contains(&name) {
                // Each is relative to the one before, of which only `git` and a few others take several.
                let earlier = std::mem::replace(&mut self.parsed.folder, values.last().cloned());
                if earlier.is_some() {
                    self.parsed.reading.doubt(format!("{name} is given twice"));
                }
            }
            self.parsed
                .reading
                .files
                .extend(values.iter().map(|folder| FileUse::new(FileAccess::List, folder.clone())));
        }
        // This machine is no other place.
        let is_here = |value: &Arg| matches!(value.literal(), Some("localhost" | "127.0.0.1" | "::1" | "[::1]"));
        if *takes == Takes::Place && !values.iter().all(is_here) {
            let names = [std::slice::from_ref(&name.to_owned()), self.parsed.spellings(name)].concat();
            self.parsed.reading.places.push(names);
        }
        let how = match takes {
            Takes::Read => Some(FileAccess::Read),
            Takes::Output | Takes::Write | Takes::WriteAttached => Some(FileAccess::Write),
            _ => None,
        };
        if let Some(how) = how {
            if let Some(address) = values.iter().find(|value| how == FileAccess::Read && value.start().contains("://"))
            {
                self.parsed.reading.doubt(format!("{} is fetched from another machine", address.raw));
            }
            for value in &values {
                let is_operand = how == FileAccess::Read || *takes == Takes::Output;
                self.parsed.reading.files.push(FileUse { is_operand, ..FileUse::new(how, value.clone()) });
                // `-F=x` is the file `x` for some libraries that read options, and `=x` for others.
                if value.start().starts_with('=') {
                    let other = FileUse::new(how, value.without_start(1));
                    self.parsed.reading.files.push(FileUse { is_operand, ..other });
                } else if how == FileAccess::Read
                    && let Some(at) = value.start().find('=')
                {
                    // `--from-file=NAME=FILE`
                    let named = FileUse::new(how, value.without_start(at + 1));
                    self.parsed.reading.files.push(FileUse { is_operand, ..named });
                }
            }
        }
        self.parsed.given.push(GivenOption { name: name.to_owned(), values });
    }

    /// An option that is known to do more. What it runs, if anything, stands in its words, unless the shell changes them.
    fn unsure(&mut self, word: &Arg, name: &str, why: &str, attached: Option<Arg>) {
        let value = attached.as_ref().or_else(|| self.words.get(self.at));
        if value.is_some_and(|value| is_of_engine(&self.known().entry, name, &value.word())) {
            return self.take(word, name, &Takes::Words(1), attached);
        }
        // The option of a wrapper may choose another command.
        self.parsed.reading.may_run_any |=
            value.is_some_and(|value| value.literal().is_none()) || self.known().command.is_some();
        self.parsed.reading.note(word, why);
        self.parsed.reading.hides_file |= why.contains("names of files") || why.contains("names of the files");
        // A shell runs what it is given by others: `nc -e /bin/sh`.
        let program = value.and_then(Arg::literal).and_then(|text| text.split_whitespace().next());
        let program = program.and_then(|program| program.rsplit('/').next());
        self.parsed.reading.may_run_any |= program.is_some_and(|program| shell::NAMES.contains(&program));
        // `-TTevil`: the value may also begin behind a second letter.
        let text = attached.as_ref().and_then(Arg::literal).unwrap_or_default();
        self.parsed.reading.texts.extend([text, cut::after_first(text)].map(str::to_owned));
        // What such a file says may run any program.
        self.parsed.reading.may_run_any |=
            !self.known().runs_nothing && SETTINGS_ELSEWHERE.iter().any(|reason| why.contains(reason));
        let is_plain = value.and_then(Arg::literal).is_some_and(|value| PLAIN_PROGRAMS.contains(&value));
        self.parsed.reading.carries_code |= !is_plain && OF_CODE.iter().any(|of_code| why.contains(of_code));
        self.parsed.given.push(GivenOption { name: name.to_owned(), values: attached.into_iter().collect() });
        self.parsed.reading.doubt(format!("{name} {why}"));
        self.parsed.is_uncertain = true;
    }

    /// The beginning of a long option stands for it in most programs (`getopt_long`), or is an error. For rules that deny or
    /// ask, it is each option that it may stand for. False if it is the beginning of none.
    fn abbreviated(&mut self, word: &Arg, name: &str, attached: Option<&Arg>) -> bool {
        let known = self.known();
        let mut meant: Vec<(&String, &Takes)> =
            known.options.iter().filter(|(option, _)| option.len() > name.len() && option.starts_with(name)).collect();
        meant.sort_by_key(|(option, _)| *option);
        let Some(((first, takes), others)) = meant.split_first() else { return false };
        self.parsed.reading.doubt(format!("{name} is an abbreviation of {first}, or of another option"));
        // Otherwise it is not certain whether the next word is its value.
        let takes_none = |takes: &Takes| matches!(takes, Takes::Nothing | Takes::Attached | Takes::WriteAttached);
        self.parsed.is_uncertain |=
            others.iter().any(|(_, other)| other != takes && !(takes_none(other) && takes_none(takes)));
        self.take(word, first, takes, attached.cloned());
        let names = others.iter().map(|(option, _)| (*option).clone());
        self.parsed.given.extend(names.map(|name| GivenOption { name, values: Vec::new() }));
        true
    }

    fn unlisted(&mut self, word: &Arg, name: &str, attached: Option<Arg>) {
        let known = self.known();
        if name.starts_with("--") && word.literal().is_some() && self.abbreviated(word, name, attached.as_ref()) {
            return;
        }
        if known.closed {
            self.uncertain = true;
            self.parsed.given.push(GivenOption { name: "?".to_owned(), values: Vec::new() });
            self.parsed.reading.note(word, "option");
            if word.literal().is_none() {
                self.doubt_option(word);
            }
            // It may name a file.
            self.parsed.operands.extend(attached);
            if word.literal().is_none() {
                self.parsed.operands.push(Arg::unknown(&word.raw));
            }
            return;
        }
        // It may become an option that runs a program.
        self.parsed.reading.may_run_any |= word.literal().is_none() && !known.runs_nothing;
        let text = if word.literal().is_some() { name } else { &word.raw };
        self.parsed.reading.note(word, "not known to be harmless");
        self.parsed
            .reading
            .doubt(format!("{text} is not among the options of {} that are known to be harmless", known.name));
        self.parsed.is_uncertain = true;
    }
}

impl Parsed {
    /// Evaluates the command by the table.
    pub(crate) fn into_reading(mut self) -> Reading {
        self.add_operands();
        self.reading.form = self.form();
        if self.reading.form.is_none() {
            self.reading.given = self.options();
        }
        if let Some(folder) = &self.folder {
            let is_itself = |file: &FileUse| file.how == FileAccess::List && file.arg == *folder;
            for file in self.reading.files.iter_mut().filter(|file| file.folder.is_none() && !is_itself(file)) {
                file.folder = Some(folder.clone());
            }
        }
        let Self { known, given, operands, command, mut reading, folder, .. } = self;
        let writes = reading.files.iter().any(|file| file.how == FileAccess::Write);
        let has = |names: &[String]| given.iter().any(|given| names.contains(&given.name));
        let lists = known.lists_with.is_empty() || operands.is_empty() || has(&known.lists_with);
        reading.reads_only = known.reads_only
            && reading.places.is_empty()
            && !writes
            && reading.unsure.is_none()
            && lists
            && !has(&known.changes);
        // Some wrappers run a shell if no command is given.
        reading.is_open |= known.command.is_some() && reading.may_run_any && command.is_empty();
        match folder {
            Some(folder) => reading.command_in(&command, &InFolder::At(&folder)),
            None => reading.command(&command),
        }
        reading
    }

    /// The folder that an option chooses: the command runs there.
    pub(crate) fn entered(&self) -> Option<Arg> {
        self.folder.clone()
    }

    /// The files that the operands name.
    pub(crate) fn add_operands(&mut self) {
        let known = self.known;
        let skips = self.given.iter().any(|given| known.first_unless.contains(&given.name));
        let kinds = if skips && !known.operands.is_empty() { &known.operands[1..] } else { &known.operands[..] };
        let is_recursive = self.given.iter().any(|given| known.recursive.contains(&given.name));
        let has_target = self.has(&["-t", "--target-directory"]) && known.options.get("-t") == Some(&Takes::Write);
        let folder = self.given.iter().rev().find(|given| known.options.get(&given.name) == Some(&Takes::Folder));
        let folder = folder.and_then(|given| given.values.last().cloned());
        let operands = self.operands.clone();
        let mut uncertain =
            operands.iter().enumerate().filter(|(_, operand)| !operand.is_one()).map(|(index, _)| index);
        let first = uncertain.next();
        let uncertain = first.map(|first| (first, uncertain.next_back().unwrap_or(first)));
        for (index, operand) in operands.iter().enumerate() {
            for kind in kinds_of(kinds, (index, operands.len()), uncertain, has_target) {
                let how = match kind {
                    Operand::Text => {
                        self.reading.note(operand, "text");
                        continue;
                    }
                    Operand::Read if is_recursive => FileAccess::Tree,
                    Operand::Read => FileAccess::Read,
                    Operand::Tree => FileAccess::Tree,
                    Operand::List => FileAccess::List,
                    Operand::Write => FileAccess::Write,
                };
                self.reading.note(operand, how.describe());
                // For programs that write, it is a name like others.
                if operand.is("-") && matches!(how, FileAccess::Read | FileAccess::Tree) {
                    continue;
                }
                let is_whole = is_recursive && how == FileAccess::Write && self.known.removes_or_changes();
                let used = FileUse::new(how, operand.clone());
                self.reading.files.push(FileUse { folder: folder.clone(), is_whole, ..used });
            }
        }
        let names_none = kinds.iter().any(|(kind, _)| *kind == Operand::Read)
            && !self.reading.files.iter().any(|file| file.how == FileAccess::Tree);
        if is_recursive && names_none {
            self.reading
                .files
                .push(FileUse { folder: folder.clone(), ..FileUse::new(FileAccess::Tree, Arg::text(".")) });
        }
        let lists_here = kinds.first().is_some_and(|(kind, _)| *kind == Operand::List) && operands.is_empty();
        if lists_here && folder.is_some() {
            self.reading.files.push(FileUse { folder, ..FileUse::new(FileAccess::List, Arg::text(".")) });
        }
    }
}

impl FileAccess {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Read => "file that is read",
            Self::Tree => "file or folder that is read",
            Self::List => "folder that is listed",
            Self::Write => "file that is written",
        }
    }
}

/// The kinds that operand `index` of `count` may have: several if it, or one before it, may be several words. `uncertain`:
/// the first and the last of those. The second of the files in `uniq src/*` is written.
fn kinds_of(
    kinds: &[(Operand, bool)],
    (index, count): (usize, usize),
    uncertain: Option<(usize, usize)>,
    has_target: bool,
) -> Vec<Operand> {
    let kind = kind_of(kinds, index, count, has_target);
    let star = kinds.iter().position(|(_, repeats)| *repeats);
    // Those behind the repeating one are counted from the end.
    let end = count.saturating_sub(star.map_or(0, |star| kinds.len() - star - 1));
    let is_end_certain = uncertain.is_none_or(|(_, last)| last < end);
    let first = uncertain.map(|(first, _)| first);
    let first = match star {
        Some(_) if is_end_certain && index >= end => None,
        Some(star) if is_end_certain => first.filter(|first| *first < star),
        _ => first,
    };
    let Some(first) = first.filter(|first| *first <= index && !has_target) else { return kind.into_iter().collect() };
    let mut possible: Vec<Operand> = Vec::new();
    for kind in kinds.iter().skip(first.min(star.unwrap_or(first))).map(|(kind, _)| *kind).chain(kind) {
        if !possible.contains(&kind) {
            possible.push(kind);
        }
    }
    possible
}

/// The kind of operand `index` of `count`. A repeating kind takes all operands that the kinds after it do not need.
fn kind_of(kinds: &[(Operand, bool)], index: usize, count: usize, has_target: bool) -> Option<Operand> {
    let kinds = match kinds {
        // If an option names a folder, all operands go there.
        [start @ .., (Operand::Write, false)] if has_target => start,
        kinds => kinds,
    };
    let Some(star) = kinds.iter().position(|(_, repeats)| *repeats) else {
        return kinds.get(index).map(|(kind, _)| *kind);
    };
    let behind = kinds.len() - star - 1;
    if index < star {
        Some(kinds[index].0)
    } else if index + behind >= count && count > star {
        kinds.get(kinds.len() - (count - index)).map(|(kind, _)| *kind)
    } else {
        Some(kinds[star].0)
    }
}
