//! Whether zsh makes of a line what bash makes of it.
//!
//! What is known to be the same is listed, and everything else differs: options that a person has set (`EXTENDED_GLOB`,
//! `GLOB_DOTS`) count as set. A test runs lines in a real zsh.

use toold_proto::cut;

use super::heredocs::{self, LiftedKind};

/// Parameters of zsh that have a meaning of their own, or a value without being set, in the language of bash: zshparam(1),
/// zshmodules(1) and zshcompwid(1) for zsh 5.9. What bash has as well is not among them.
const PARAMETERS: &[&str] = &[
    "ARGC",
    "BAUD",
    "CDPATH",
    "COLUMNS",
    "CPUTYPE",
    "CORRECT_IGNORE",
    "CORRECT_IGNORE_FILE",
    "CURRENT",
    "DIRSTACKSIZE",
    "EGID",
    "ENV",
    "ERRNO",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FUNCNEST",
    "GID",
    "HISTCHARS",
    "HISTCMD",
    "HISTFILE",
    "HISTSIZE",
    "HOST",
    "KEYBOARD_HACK",
    "KEYTIMEOUT",
    "LINES",
    "LISTMAX",
    "LOGCHECK",
    "MACHTYPE",
    "MAIL",
    "MAILCHECK",
    "MAILPATH",
    "MANPATH",
    "MATCH",
    "MBEGIN",
    "MEND",
    "MODULE_PATH",
    "NULLCMD",
    "OPTARG",
    "OPTIND",
    "OSTYPE",
    "POSTEDIT",
    "PPID",
    "PREFIX",
    "PROMPT",
    "PROMPT2",
    "PROMPT3",
    "PROMPT4",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PSVAR",
    "READNULLCMD",
    "REPLY",
    "REPORTMEMORY",
    "REPORTTIME",
    "RPROMPT",
    "RPROMPT2",
    "RPS1",
    "RPS2",
    "SAVEHIST",
    "SHLVL",
    "SPROMPT",
    "STTY",
    "SUFFIX",
    "TIMEFMT",
    "TMOUT",
    "TMPPREFIX",
    "TMPSUFFIX",
    "TRY_BLOCK_ERROR",
    "TRY_BLOCK_INTERRUPT",
    "TTY",
    "TTYIDLE",
    "USERNAME",
    "VENDOR",
    "WATCH",
    "WATCHFMT",
    "WORDCHARS",
    "ZBEEP",
    "ZDOTDIR",
    "ZLE_LINE_ABORTED",
    "ZLE_REMOVE_SUFFIX_CHARS",
    "ZLE_RPROMPT_INDENT",
    "ZLE_SPACE_SUFFIX_CHARS",
    "ZSH_ARGZERO",
    "ZSH_EVAL_CONTEXT",
    "ZSH_EXECUTION_STRING",
    "ZSH_NAME",
    "ZSH_PATCHLEVEL",
    "ZSH_SCRIPT",
    "ZSH_SUBSHELL",
    "ZSH_VERSION",
    "aliases",
    "argv",
    "builtins",
    "cdpath",
    "chpwd_functions",
    "commands",
    "compstate",
    "dirstack",
    "dis_aliases",
    "dis_builtins",
    "dis_functions",
    "dis_functions_source",
    "dis_galiases",
    "dis_patchars",
    "dis_reswords",
    "dis_saliases",
    "epochtime",
    "errnos",
    "fignore",
    "fpath",
    "funcfiletrace",
    "funcsourcetrace",
    "funcstack",
    "functions",
    "functions_source",
    "functrace",
    "galiases",
    "histchars",
    "history",
    "historywords",
    "jobdirs",
    "jobstates",
    "jobtexts",
    "keymaps",
    "langinfo",
    "mailpath",
    "manpath",
    "mapfile",
    "match",
    "mbegin",
    "mend",
    "module_path",
    "modules",
    "nameddirs",
    "options",
    "parameters",
    "patchars",
    "path",
    "periodic_functions",
    "pipestatus",
    "precmd_functions",
    "preexec_functions",
    "prompt",
    "psvar",
    "reply",
    "reswords",
    "saliases",
    "signals",
    "status",
    "sysparams",
    "termcap",
    "terminfo",
    "userdirs",
    "usergroups",
    "watch",
    "widgets",
    "words",
    "zsh_directory_name_functions",
    "zsh_eval_context",
    "zsh_scheduled_events",
    "zshaddhistory_functions",
    "zshexit_functions",
];

/// Commands of zsh that bash lacks or that mean something else there, and those that set variables whose names are not
/// looked at here.
const COMMANDS: &[&str] = &[
    "alias",
    "always",
    "autoload",
    "bindkey",
    "chdir",
    "compcall",
    "compctl",
    "coproc",
    "declare",
    "disable",
    "disown",
    "echotc",
    "echoti",
    "emulate",
    "enable",
    "end",
    "fc",
    "float",
    "foreach",
    "function",
    "functions",
    "getln",
    "getopts",
    "hash",
    "history",
    "integer",
    "let",
    "limit",
    "local",
    "log",
    "logout",
    "mapfile",
    "nocorrect",
    "noglob",
    "print",
    "private",
    "pushln",
    "r",
    "readarray",
    "readonly",
    "rehash",
    "repeat",
    "sched",
    "select",
    "setopt",
    "shopt",
    "trap",
    "ttyctl",
    "typeset",
    "ulimit",
    "unalias",
    "unfunction",
    "unhash",
    "unlimit",
    "unset",
    "unsetopt",
    "vared",
    "whence",
    "where",
    "zcompile",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zprof",
    "zpty",
    "zregexparse",
    "zsocket",
    "zstat",
    "zstyle",
    "zsystem",
    "ztcp",
    "-",
    "eval",
    "source",
    ".",
];

/// Builtins that change the shell. As a program, which is what zsh runs behind `command`, they do nothing.
const CHANGING: &[&str] =
    &["cd", "pushd", "popd", "export", "read", "set", "shift", "return", "break", "continue", "exit", "umask", "wait"];

/// Functions that zsh calls by itself, besides `TRAP...`: zshmisc(1), "Special Functions".
const HOOKS: &[&str] = &[
    "chpwd",
    "command_not_found_handler",
    "periodic",
    "precmd",
    "preexec",
    "zsh_directory_name",
    "zshaddhistory",
    "zshexit",
];

/// How zsh reads a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ZshReading {
    /// As bash does.
    Alike,
    /// As bash does, but for the files that its wildcards match: with `GLOB_DOTS`, also the hidden files that match in this second
    /// line, in which wildcards at the start of a name stand behind a dot.
    AlikeButWildcards(String),
    Differs,
}

pub(super) fn reading_of(line: &str) -> ZshReading {
    let Ok(lifted) = heredocs::lift(line) else { return ZshReading::Differs };
    let mut scanner = ZshScanner::new(&lifted.text);
    let bodies = lifted.bodies().all(|kind| match kind {
        LiftedKind::Heredoc(heredoc) if heredoc.expands => ZshScanner::new(&heredoc.body).quoted_text().is_some(),
        LiftedKind::Heredoc(_) | LiftedKind::HereString | LiftedKind::ReadWrite | LiftedKind::Descriptor => true,
        LiftedKind::NamedDescriptor | LiftedKind::Translated => false,
    });
    match scanner.script() {
        Some(()) if bodies && scanner.wildcards.is_empty() => ZshReading::Alike,
        Some(()) if bodies => ZshReading::AlikeButWildcards(with_dots(&lifted.text, &scanner.wildcards)),
        Some(()) | None => ZshReading::Differs,
    }
}

/// The line with a dot where these wildcards begin a name, and may match one.
fn with_dots(line: &str, wildcards: &[usize]) -> String {
    let (mut dotted, mut at) = (String::new(), 0);
    for wildcard in wildcards {
        let (before, behind) = (cut::between(line, at..*wildcard), cut::from(line, *wildcard));
        dotted.push_str(before);
        if !before.ends_with(|c: char| c.is_whitespace() || c == '/') {
            at = *wildcard;
            continue;
        }
        dotted.push('.');
        let ends = match behind.chars().next() {
            Some('?') => 1,
            Some('[') => behind.find(']').map_or(0, |end| end + 1),
            _ => 0,
        };
        at = wildcard + ends;
    }
    dotted + cut::from(line, at.min(line.len()))
}

/// Whether zsh may make other names of files of the words, in a line that it reads otherwise: with operators of patterns (`.en^`),
/// modifiers (`$x:h`), indices and flags of variables, `=name`, or the texts of its tables.
pub(super) fn changes_names(line: &str) -> bool {
    const TEXTS: &[&str] = &[
        "**",
        "$~",
        "$=",
        "$^",
        "$+",
        "${(",
        "${~",
        "${=",
        "${^",
        "${:",
        "${${",
        "aliases[",
        "commands[",
        "functions[",
        "mapfile[",
        "autoload",
        "emulate",
        "setopt",
        "zmodload",
        "fc -",
    ];
    if TEXTS.iter().any(|text| line.contains(text)) {
        return true;
    }
    let is_modified = |behind: &str| {
        let rest = behind.trim_start_matches('{').trim_start_matches(is_name);
        let starts = behind.starts_with(|c: char| c == '{' || is_name(c));
        starts
            && (rest.starts_with('[')
                || rest.strip_prefix(':').is_some_and(|rest| rest.starts_with(char::is_alphabetic)))
    };
    if line.split('$').skip(1).any(is_modified) {
        return true;
    }
    let is_git = line.trim_start().starts_with("git ");
    line.split_whitespace().any(|word| {
        let is_text = word.contains(['\'', '"']) || word.contains("://");
        let word = word.trim_start_matches(['\'', '"', '(']);
        let inside = cut::after_first(word);
        let is_pattern = |c: char| c == '#' || !is_git && matches!(c, '^' | '~');
        let is_braces = word.split('{').skip(1).any(|behind| {
            let inside = behind.split('}').next().unwrap_or_default();
            inside.len() > 1 && inside.chars().all(is_name) && !word.contains("${")
        });
        word.starts_with('=') && inside.starts_with(char::is_alphabetic)
            || !is_text && (word.starts_with('^') && !is_git || inside.contains(is_pattern))
            || is_braces
    })
}

/// The line with `>!`, `>>!`, `&>!` and the like, which overwrite a file in spite of `noclobber`, in the spelling of bash; `None`
/// where it has none. They count in quotes, too, since these may hold commands.
pub(super) fn with_redirects_of_bash(line: &str) -> Option<String> {
    let (mut written, mut rest) = (String::new(), line);
    while let Some((before, behind)) = rest.split_once('>') {
        written.push_str(before);
        let more = behind.len() - behind.trim_start_matches(['>', '&']).len();
        let (operator, behind) = behind.split_at_checked(more)?;
        let is_both = before.ends_with('&');
        match behind.strip_prefix(['!', '|']) {
            Some(behind) => {
                written.push_str(match (operator.contains('&'), operator.contains('>')) {
                    (true, true) => "&>>",
                    (true, false) => "&>",
                    (false, true) => ">>",
                    (false, false) if is_both => ">",
                    (false, false) => ">|",
                });
                rest = behind;
            }
            None => {
                written.push('>');
                written.push_str(operator);
                rest = behind;
            }
        }
    }
    written.push_str(rest);
    (written != line).then_some(written)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What the current word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordRole {
    /// It may be a command, a keyword or an assignment.
    Command,
    /// The same behind `command`, where zsh runs programs alone.
    Program,
    Operand,
    /// An operand of a command that sets the variables that its operands name.
    Setter,
    /// An argument of `set`.
    Options,
    /// Behind `for`.
    Loop,
    /// One of the words that a loop goes through.
    Listed,
    /// Behind `printf`: `-v` names a variable, and numbers are expressions, which set variables.
    Format,
    /// Behind a command whose operand is an expression.
    Number,
    /// Behind `[[`.
    Test,
    /// Behind `<` or `>`.
    Target,
}

/// The state that is restored behind a parenthesis that closes.
struct OpenGroup<'t> {
    closes: char,
    role: WordRole,
    word: String,
    start: usize,
    test: Option<Vec<&'t str>>,
}

struct ZshScanner<'t> {
    text: &'t str,
    rest: &'t str,
    before: Option<char>,
    /// Parentheses and quotes that are open, with the role to go on with.
    open: Vec<OpenGroup<'t>>,
    /// Where the current word starts.
    start: usize,
    /// The places of wildcards in the line.
    wildcards: Vec<usize>,
    /// The words of `[`, `test` or `[[`.
    test: Option<Vec<&'t str>>,
    /// The variable of the loop whose words are read.
    looped: &'t str,
    /// The variables that are set, with their values as they are written.
    set: Vec<(&'t str, &'t str)>,
    /// The variables whose values are words without quotes.
    unquoted: Vec<&'t str>,
}

/// `None` where zsh differs, or may differ.
type Alike<T = ()> = Option<T>;

impl<'t> ZshScanner<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            rest: text,
            before: None,
            open: Vec::new(),
            start: 0,
            wildcards: Vec::new(),
            test: None,
            looped: "",
            set: Vec::new(),
            unquoted: Vec::new(),
        }
    }

    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = cut::from(self.rest, next.len_utf8());
        self.before = Some(next);
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                self.before = text.chars().last();
                true
            }
            None => false,
        }
    }

    fn name(&mut self) -> &'t str {
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.before = name.chars().last().or(self.before);
        name
    }

    fn starts_word(&self) -> bool {
        self.before.is_none_or(|c| c.is_whitespace() || ";|&()<>`".contains(c))
    }

    /// Whether the word is at its end, where `rest` begins.
    fn ends_word(rest: &str) -> bool {
        rest.chars().next().is_none_or(|c| c.is_whitespace() || ";|&)\"'".contains(c))
    }

    fn script(&mut self) -> Alike {
        let mut role = WordRole::Command;
        // The text of the current word, as far as it has no quotes and no expansions.
        let mut word = String::new();
        loop {
            if self.starts_word() && word.is_empty() {
                self.begin(&mut role)?;
            }
            let Some(c) = self.peek() else { break };
            match c {
                ' ' | '\t' => {
                    role = self.after(role, &word)?;
                    self.next();
                    word.clear();
                }
                '\n' | ';' | '&' | '|' => {
                    let _ = self.after(role, &word)?;
                    word.clear();
                    self.operator()?;
                    role = match role {
                        WordRole::Test if self.test.is_some() => WordRole::Test,
                        _ => WordRole::Command,
                    };
                }
                '\'' => {
                    self.next();
                    let (_, rest) = self.rest.split_once('\'')?;
                    self.rest = rest;
                    // With `RC_QUOTES`, two of them are one that is no quote.
                    (!rest.starts_with('\'')).then_some(())?;
                    self.quoted_part(role, &mut word)?;
                }
                '"' => {
                    self.next();
                    self.double_quotes()?;
                    self.quoted_part(role, &mut word)?;
                }
                // The line goes on.
                '\\' if word.is_empty() && self.take("\\\n") => {}
                '\\' => {
                    self.next();
                    self.next()?;
                    self.quoted_part(role, &mut word)?;
                }
                '$' => {
                    self.next();
                    let is_value = word.contains('=') && matches!(role, WordRole::Command | WordRole::Setter);
                    let is_odd = match role {
                        WordRole::Format | WordRole::Options | WordRole::Loop => true,
                        WordRole::Setter => !is_value,
                        WordRole::Number => self.rest != "?" && !self.rest.starts_with("?)") && !self.takes_status(),
                        _ => false,
                    };
                    if is_odd {
                        return None;
                    }
                    if self.take("(") && !self.rest.starts_with('(') {
                        self.open(role, &mut word);
                        role = WordRole::Command;
                        continue;
                    }
                    let name = self.expansion(false)?;
                    if !is_value && role != WordRole::Test {
                        self.unquoted.push(name);
                    }
                    word.push('\u{1}');
                }
                '(' => {
                    self.next();
                    match role {
                        WordRole::Command if word.is_empty() && !self.rest.starts_with('(') => {
                            self.open(WordRole::Operand, &mut word);
                        }
                        // A function.
                        WordRole::Command
                            if word.chars().all(is_name)
                                && !word.starts_with("TRAP")
                                && !HOOKS.contains(&word.as_str())
                                && self.take(")") =>
                        {
                            word.clear();
                        }
                        _ => return None,
                    }
                }
                ')' => {
                    let _ = self.after(role, &word)?;
                    self.next();
                    let opened = self.open.pop().filter(|opened| opened.closes == ')')?;
                    (role, word, self.start, self.test) = (opened.role, opened.word, opened.start, opened.test);
                    word.push('\u{1}');
                }
                '<' | '>' => {
                    self.redirect(role)?;
                    if self.before == Some('(') {
                        self.open(role, &mut word);
                        role = WordRole::Command;
                        continue;
                    }
                    word.clear();
                    role = WordRole::Target;
                }
                '`' => return None,
                c => {
                    self.next();
                    self.plain(c, role, &word)?;
                    word.push(c);
                }
            }
        }
        let _ = self.after(role, &word)?;
        (self.open.is_empty() && !self.splits_otherwise()).then_some(())
    }

    /// `?` is all of the word behind `$`.
    fn takes_status(&self) -> bool {
        self.rest.strip_prefix('?').is_some_and(Self::ends_word)
    }

    fn open(&mut self, role: WordRole, word: &mut String) {
        let (word, test) = (std::mem::take(word), self.test.take());
        self.open.push(OpenGroup { closes: ')', role, word, start: self.start, test });
    }

    /// Whether a value is a word that bash splits, or takes for a pattern, and that zsh leaves as it is, or takes for a name of a
    /// folder with `GLOB_SUBST`.
    fn splits_otherwise(&self) -> bool {
        let is_odd = |(_, value): &&(&str, &str)| !is_one_word(value);
        let mut odd: Vec<&str> = self.set.iter().filter(is_odd).map(|(name, _)| *name).collect();
        // A value may have another one in it.
        for _ in 0..self.set.len().min(MAX_VALUES) {
            let takes = |value: &str| odd.iter().any(|name| value.contains('$') && value.contains(name));
            let more: Vec<&str> = self
                .set
                .iter()
                .filter(|(name, value)| !odd.contains(name) && takes(value))
                .map(|(name, _)| *name)
                .collect();
            if more.is_empty() {
                break;
            }
            odd.extend(more);
        }
        self.unquoted.iter().any(|name| odd.contains(name)) || self.set.len() > MAX_VALUES
    }

    /// At the start of a word: comments, and places where zsh expands.
    fn begin(&mut self, role: &mut WordRole) -> Alike {
        if self.rest.starts_with('#') && *role != WordRole::Target {
            self.rest = cut::from(self.rest, self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        self.start = self.at();
        if *role == WordRole::Format && !self.rest.starts_with([' ', '\t']) {
            is_plain_format(self.rest).then_some(())?;
        }
        let mut chars = self.rest.chars();
        match (chars.next(), chars.next()) {
            (Some('='), Some(next)) if !next.is_whitespace() && *role != WordRole::Test => None,
            (Some('~'), Some(next)) if next != '/' && !next.is_whitespace() && *role != WordRole::Test => {
                ";|&)".contains(next).then_some(())
            }
            (Some('%' | '^'), _) => None,
            _ => Some(()),
        }
    }

    /// A character that no quote protects.
    fn plain(&mut self, c: char, role: WordRole, word: &str) -> Alike {
        let is_revision = || {
            let last = word.rsplit(['.', '/']).next().unwrap_or_default();
            last.ends_with("HEAD") || last.ends_with('@') || word.trim_end_matches(['^', '~']).ends_with("HEAD")
        };
        let is_operand = matches!(role, WordRole::Operand | WordRole::Listed | WordRole::Test);
        let is_value = word.contains('=') && matches!(role, WordRole::Command | WordRole::Setter);
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' if role == WordRole::Target => None,
            '*' if self.rest.starts_with('*') => None,
            '[' if matches!(word, "" | "[") && self.rest.starts_with([' ', '[']) => Some(()),
            '[' if role == WordRole::Command && !word.is_empty() => None,
            '*' | '?' | '[' if is_operand || role == WordRole::Command && !word.contains('=') => {
                self.wildcards.push(self.at() - 1);
                Some(())
            }
            '*' | '?' | '[' => None,
            // With `BRACE_CCL`, each character between the braces is a word. One alone stays one. A command may take what is in
            // the braces for options and names.
            '{' if !self.rest.starts_with([' ', '\t', '\n', '}']) => {
                let inside = self.rest.split_once('}').map_or(self.rest, |(inside, _)| inside);
                let is_list = inside.chars().count() < 2
                    || inside.contains([',', '$', '\'', '"']) && !inside.contains('=')
                    || inside.contains("..");
                (is_list && (is_operand || is_value || role == WordRole::Command) && self.test.is_none()).then_some(())
            }
            '=' if role == WordRole::Test => Some(()),
            '=' if self.rest.starts_with(['=', '(', '~'])
                && !(is_assignment(role, word) && self.rest.starts_with("~/")) =>
            {
                None
            }
            // A word that begins here if what is before it is empty: `$x=ls`.
            '=' if word.ends_with([':', '=']) || !word.is_empty() && word.chars().all(|c| c == '\u{1}') => None,
            '=' if role == WordRole::Command && is_special(word) => None,
            '=' => Some(()),
            '#' if !word.is_empty() => None,
            '~' if is_value && word.ends_with(['=', ':']) => Some(()),
            '^' | '~' if !word.is_empty() => {
                let is_end = self.rest.chars().next().is_none_or(|c| c.is_ascii_digit() || "^~.".contains(c));
                (is_revision() && (is_end || Self::ends_word(self.rest))).then_some(())
            }
            _ => Some(()),
        }
    }

    /// Behind a part of a word in quotes.
    fn quoted_part(&self, role: WordRole, word: &mut String) -> Alike {
        let names_variable = matches!(role, WordRole::Setter | WordRole::Loop) && !word.contains('=');
        // A quoted part of a command's name or of a variable's is not looked at here.
        let is_odd = names_variable
            || matches!(role, WordRole::Command | WordRole::Program | WordRole::Options | WordRole::Number);
        word.push('\u{1}');
        (!is_odd || role == WordRole::Command && word.contains('=')).then_some(())
    }

    fn operator(&mut self) -> Alike {
        let c = self.next()?;
        match c {
            '&' if self.rest.starts_with(['!', '|']) => None,
            '&' if self.rest.starts_with('>') => Some(()),
            ';' if self.rest.starts_with(['|', ';', '&']) => None,
            _ => {
                while self.peek() == Some(c) {
                    self.next();
                }
                Some(())
            }
        }
    }

    /// `<` or `>`, up to its target or the parenthesis of a process substitution.
    fn redirect(&mut self, role: WordRole) -> Alike {
        let is_behind_command = !matches!(role, WordRole::Command | WordRole::Test);
        let operators = ["<<<", "<(", ">(", "<&", ">>", ">|", ">&", "<", ">"];
        let operator = operators.into_iter().find(|operator| self.take(operator))?;
        if operator.ends_with('(') {
            return Some(());
        }
        // `<1-5>` are numbers, `>!` overwrites, and zsh runs a program where no command stands before `<`.
        let is_number = operator == "<" && self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let is_odd = is_number || self.rest.starts_with(['!', '|', '>', '&']);
        (is_behind_command && !is_odd).then_some(())
    }

    fn double_quotes(&mut self) -> Alike {
        loop {
            match self.next()? {
                '"' => return Some(()),
                '\\' => drop(self.next()?),
                '`' => return None,
                '$' => drop(self.expansion(true)?),
                _ => {}
            }
        }
    }

    /// The body of a heredoc that the shell expands.
    fn quoted_text(&mut self) -> Alike {
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '`' => return None,
                '$' => drop(self.expansion(true)?),
                _ => {}
            }
        }
        Some(())
    }

    /// Behind `$`: the variable, or an empty text where it is none with a name.
    fn expansion(&mut self, is_quoted: bool) -> Alike<&'t str> {
        let Some(c) = self.peek() else { return Some("") };
        match c {
            '(' if self.before == Some('(') || self.rest.starts_with("((") => self.arithmetic()?,
            '(' => {
                self.next();
                self.inner_script()?;
            }
            '{' => return self.braces(is_quoted),
            '\'' if !is_quoted => {
                self.next();
                self.escapes()?;
            }
            '?' | '!' | '$' | '@' | '*' | '-' => {
                self.next();
                self.behind_name()?;
            }
            '#' => {
                self.next();
                (!self.rest.starts_with(is_name)).then_some(())?;
            }
            c if is_name(c) => {
                let name = if c.is_ascii_digit() { self.next().map(|_| "") } else { Some(self.name()) }?;
                (!is_special(name)).then_some(())?;
                self.behind_name()?;
                return Some(name);
            }
            '"' if is_quoted => {}
            '"' | '\'' | '+' | '~' | '=' | '^' | '[' | ':' => return None,
            _ => {}
        }
        Some("")
    }

    /// `$'...'`, with escapes that mean the same in both shells.
    fn escapes(&mut self) -> Alike {
        loop {
            match self.next()? {
                '\'' => return Some(()),
                '\\' => {
                    let c = self.next()?;
                    // bash ends the text at a null character.
                    let digits = self.rest.chars().take_while(char::is_ascii_hexdigit);
                    let is_null = digits.take(2).all(|digit| digit == '0');
                    let is_known = match c {
                        'x' => !is_null,
                        '1'..='7' => true,
                        c => "abefnrtv\\'\"".contains(c),
                    };
                    is_known.then_some(())?;
                }
                _ => {}
            }
        }
    }

    /// An index or a modifier behind the name of a variable: `$x[1]`, `$x:t`.
    fn behind_name(&self) -> Alike {
        let mut chars = self.rest.chars();
        match (chars.next(), chars.next()) {
            (Some('['), _) => None,
            (Some(':'), Some(next)) if next.is_alphabetic() || next == '&' => None,
            _ => Some(()),
        }
    }

    /// `$(...)` in double quotes: a script of its own.
    fn inner_script(&mut self) -> Alike {
        let start = self.at();
        let mut inner = Self::new(self.rest);
        // The end is found by reading: the scanner stops behind the parenthesis that closes it.
        let end = inner.end_of_inner()?;
        let (script, rest) = self.rest.split_at(end);
        let script = script.strip_suffix(')')?;
        self.rest = rest;
        self.before = Some(')');
        let mut scanner = Self::new(script);
        scanner.script()?;
        // Their exact places do not count: none of them begins a word of the line.
        self.wildcards.extend(scanner.wildcards.iter().map(|_| start));
        self.set.extend(scanner.set);
        self.unquoted.extend(scanner.unquoted);
        Some(())
    }

    /// Where the parenthesis that is open ends, in bytes behind here.
    fn end_of_inner(&mut self) -> Alike<usize> {
        let length = self.rest.len();
        let mut depth = 1;
        while depth > 0 {
            match self.next()? {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\\' => drop(self.next()?),
                '\'' => self.rest = self.rest.split_once('\'')?.1,
                '"' => self.skip_double_quotes()?,
                _ => {}
            }
        }
        Some(length - self.rest.len())
    }

    fn skip_double_quotes(&mut self) -> Alike {
        loop {
            match self.next()? {
                '"' => return Some(()),
                '\\' => drop(self.next()?),
                '$' if self.take("(") => drop(self.end_of_inner()?),
                _ => {}
            }
        }
    }

    /// `$((...))`: numbers, variables that are no special ones, and operators that both shells have.
    fn arithmetic(&mut self) -> Alike {
        let start = self.rest.trim_start_matches('(');
        let (inside, rest) = start.split_once("))")?;
        let is_plain = |c: char| is_name(c) || " +-*/%<>=!&|?:,$".contains(c);
        let names = inside.split(|c| !is_name(c)).filter(|name| !name.is_empty());
        if !inside.chars().all(is_plain) || names.into_iter().any(is_special) {
            return None;
        }
        self.rest = rest;
        self.before = Some(')');
        Some(())
    }

    /// `${NAME}`, with few operators and plain texts behind them.
    fn braces(&mut self, is_quoted: bool) -> Alike<&'t str> {
        self.next();
        self.take("#");
        let name = self.name();
        if name.is_empty() || is_special(name) {
            return None;
        }
        let (behind, rest) = self.rest.split_once('}')?;
        let others = if is_quoted { "./,@+- " } else { "./,@+-" };
        let is_plain =
            |text: &str, more: &str| text.chars().all(|c| is_name(c) || others.contains(c) || more.contains(c));
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ':');
        let text = |operator: &str, more: &str| behind.strip_prefix(operator).is_some_and(|text| is_plain(text, more));
        let is_known = behind.is_empty()
            || [":-", "-", ":+", "+"].iter().any(|operator| text(operator, ""))
            || ["##", "#", "%%", "%"].iter().any(|operator| text(operator, "*"))
            || behind.strip_prefix(':').is_some_and(is_number);
        self.rest = rest;
        self.before = Some('}');
        (is_known && !behind.contains("**")).then_some(())?;
        self.behind_name()?;
        Some(name)
    }

    /// The role of the next word behind this one, which ends here; `None` if the word means something else to zsh.
    fn after(&mut self, role: WordRole, word: &str) -> Alike<WordRole> {
        if word.is_empty() {
            return Some(role);
        }
        let written = cut::between(self.text, self.start..self.at());
        if let Some(test) = &mut self.test {
            test.push(written);
            if matches!(word, "]" | "]]") || !matches!(self.peek(), Some(' ' | '\t')) && role != WordRole::Test {
                tests_alike(&self.test.take()?).then_some(())?;
            }
        }
        if is_assignment(role, word) {
            let (name, value) = written.split_once('=')?;
            self.set.push((name.trim_end_matches('+'), value));
        }
        match role {
            // `zf_rm` and the like of zsh/files.
            WordRole::Command | WordRole::Program if COMMANDS.contains(&word) || word.starts_with("zf_") => None,
            WordRole::Program if CHANGING.contains(&word) => None,
            WordRole::Program if word == "-p" => Some(WordRole::Program),
            WordRole::Command | WordRole::Program => Some(match word {
                "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" | "}" | "time" | "builtin"
                | "exec" | "nohup" => WordRole::Command,
                "command" => WordRole::Program,
                "case" | "in" => return None,
                "for" => WordRole::Loop,
                "read" | "export" => WordRole::Setter,
                "set" => WordRole::Options,
                "printf" => WordRole::Format,
                "shift" | "return" | "break" | "continue" => WordRole::Number,
                "[" | "test" | "[[" => {
                    self.test = Some(Vec::new());
                    if word == "[[" { WordRole::Test } else { WordRole::Operand }
                }
                // Variables for the command behind them.
                word if word.contains('=') && !word.starts_with('=') => WordRole::Command,
                _ => WordRole::Operand,
            }),
            WordRole::Loop => {
                self.looped = written;
                (!is_special(word) && word.chars().all(is_name)).then_some(WordRole::Listed)
            }
            WordRole::Listed => {
                self.set.push((self.looped, written));
                Some(WordRole::Listed)
            }
            WordRole::Setter => {
                let (name, is_option) = match word.strip_prefix('-') {
                    Some(letters) => (letters, true),
                    None => (word.split('=').next().unwrap_or_default(), false),
                };
                let is_known = name.chars().all(is_name) && if is_option { name != "v" } else { !is_special(name) };
                is_known.then_some(WordRole::Setter)
            }
            WordRole::Options => {
                let is_known = matches!(
                    word,
                    "--" | "-e" | "-u" | "-x" | "-eu" | "-ex" | "-eux" | "-euo" | "-o" | "-eo" | "pipefail"
                );
                is_known.then_some(if word == "--" { WordRole::Operand } else { WordRole::Options })
            }
            WordRole::Number => word.chars().all(|c| c.is_ascii_digit() || c == '\u{1}').then_some(role),
            WordRole::Test if word == "]]" => Some(WordRole::Operand),
            WordRole::Format | WordRole::Target => Some(WordRole::Operand),
            WordRole::Operand | WordRole::Test => Some(role),
        }
    }
}

/// More values than a line of a person has.
const MAX_VALUES: usize = 100;

fn is_assignment(role: WordRole, word: &str) -> bool {
    matches!(role, WordRole::Command | WordRole::Setter)
        && word.split_once('=').is_some_and(|(name, _)| name.trim_end_matches('+').chars().all(is_name))
}

/// Whether the value, as it is written, is one word for both shells where it stands without quotes. The output of a command that
/// is not known makes no command certain.
fn is_one_word(value: &str) -> bool {
    let is_output =
        value.starts_with("$(") && !["'", "\"", "\\", "echo", "printf"].iter().any(|text| value.contains(text));
    is_output || value.chars().all(|c| is_name(c) || "./:@%,+-\"'$".contains(c))
}

/// Whether a format of `printf` that begins here takes only texts. Numbers are expressions for zsh, even if a variable has them.
fn is_plain_format(rest: &str) -> bool {
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let (format, behind) = match quote {
        Some(quote) => match cut::after_first(rest).split_once(quote) {
            Some(parts) => parts,
            None => return false,
        },
        None => rest.split_at(rest.find(|c: char| c.is_whitespace() || ";|&)<>".contains(c)).unwrap_or(rest.len())),
    };
    let has_words = {
        let behind = behind.trim_start_matches([' ', '\t']);
        !behind.is_empty() && !behind.starts_with(['\n', ';', '|', '&', ')', '>'])
    };
    let takes_text = |conversion: &str| {
        let conversion = conversion.trim_start_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
        conversion.starts_with(['s', 'b', 'q', 'c'])
    };
    let conversions = format.replace("%%", "");
    let is_literal = match quote {
        Some('\'') => true,
        Some(_) => !format.contains(['$', '`']),
        None => !format.contains(['$', '`', '\'', '"', '*', '?', '[', '{', '\\']),
    };
    let is_known = is_literal && ZshScanner::ends_word(behind);
    !format.starts_with('-') && (!has_words || is_known && conversions.split('%').skip(1).all(takes_text))
}

/// Whether `[`, `test` or `[[` with these words takes none of them for an expression, nor for the name of a variable: `-t path=1`.
fn tests_alike(words: &[&str]) -> bool {
    let is_plain = |word: &str| !word.contains(['$', '`', '{']);
    let is_operator = |word: &str| is_plain(word) && (word.len() == 2 && word.starts_with('-') || is_comparison(word));
    words.iter().enumerate().all(|(at, word)| {
        let (before, behind) = (at.checked_sub(1).and_then(|at| words.get(at)), words.get(at + 1));
        match *word {
            "-v" | "-R" => false,
            "-t" => behind.is_some_and(|descriptor| descriptor.chars().all(|c| c.is_ascii_digit())),
            word => {
                is_plain(word)
                    || before.is_some_and(|word| is_operator(word))
                    || behind.is_some_and(|word| is_comparison(word))
            }
        }
    })
}

fn is_comparison(word: &str) -> bool {
    ["=", "==", "!=", "=~", "<", ">", "-ef", "-nt", "-ot", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"].contains(&word)
}

fn is_special(name: &str) -> bool {
    PARAMETERS.contains(&name.trim_end_matches('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_both_shells_read_alike_are_known() {
        for line in [
            "ls -la",
            "git status && npm test",
            "git log --oneline -5 HEAD~3..HEAD",
            "git show HEAD^ --stat",
            "rg path src | head -5",
            "x=1; echo $x",
            "grep -n 'path' a.txt 2>/dev/null",
            "cat a.txt 2>&1 | tail -3 > out.txt",
            "for f in a b; do cat \"$f\"; done",
            "if [ -f a ]; then cat a; fi",
            "[[ $x == y ]] && echo yes",
            "cd src && (make test)",
            "echo \"$(git rev-parse HEAD) ${x:-none} ${#x} ${x%.txt}\"",
            "n=$(wc -l < a.txt); echo $((n + 1))",
            "git commit -m \"$(cat <<'EOF'\nIt's done\nEOF\n)\"",
            "ls -la && \\\n  head -3 a.txt",
            "[ \"$(git branch --show-current)\" = main ] && [ \"$n\" -gt 3 ]",
            "[ -t 1 ] && [ -n \"$x\" ]",
            "for f in a b; do echo \"$f:$(wc -l < $f)\" \"$f:$f\"; done",
            "printf \"%s: %-5s\\n\" \"$x\" \"$y\"",
            "printf '{\"a\": \"%s\"}\\n' \"$x\"",
            "n=$(wc -l < a.txt); echo $n",
            "command -v git && command ls",
            "shift 2; exit $?",
            "echo 'it'\\''s'",
            "(cd ~; ls)",
            "cat <<EOF\n$x\nEOF",
            "set -euo pipefail\n# a comment\nmake",
            "export A=\"x y\"; ls",
            "read -r line < a",
            "printf '%s\\n' \"$x\"",
            "printf \"%s\" a",
            "FOO=bar npm test",
            "ls ~/src ~",
            "echo a:b=c $PATH:/bin",
        ] {
            assert_eq!(reading_of(line), ZshReading::Alike, "{line}");
        }
        for line in ["ls *.rs", "cat src/?.txt", "rm [ab].log"] {
            assert!(matches!(reading_of(line), ZshReading::AlikeButWildcards(_)), "{line}");
        }
    }

    #[test]
    fn whatever_else_differs() {
        for line in [
            "path=./bin; ls",
            "path+=(./bin); ls",
            "x=$(pwd) path=./bin; ls",
            "read pa{t,}h < p",
            "export {path=./bin,x}",
            "printf {-v,path} x",
            "printf $x path x",
            "printf \"$x\" path x",
            "printf %d path=1",
            "printf '%5d %s' \"$n\" x",
            "shift path=1",
            "return $x",
            "[ -t path=1 ]",
            "[ $o path=1 ]",
            "[ -v x ]",
            "[[ a && -t path=1 ]]",
            "x='~/a'; cat $x",
            "x=\"a b\"; cat $x",
            "y='a b'; x=\"$y\"; cat $x",
            "for x in 'a b'; do cat $x; done",
            "cat {=ls,a}",
            "cat $e=ls",
            "cat 'a''b'",
            "diff --from-file=~/a b",
            "bash -c $'ls\\C-jid'",
            "cat $'a\\0b'",
            "command cd sub; cat x",
            "chpwd() { ls; }; cd sub",
            "TRAPEXIT() { ls; }",
            "for path in a; do ls; done",
            "read path < p",
            "read -r path < p; ls",
            "read -r 'pa'th < p",
            "read $n < p",
            "printf -v path x; ls",
            "printf '-v' path x; ls",
            "printf \"-v\" path x",
            "printf \\-v path x",
            "READNULLCMD=x; < f",
            "< f",
            "=ls",
            "ls =x",
            "x==ls",
            "x=a:=ls",
            "print ${(e)x}",
            "autoload -U x",
            "typeset path",
            "ls > f >! g",
            "aliases[ls]=x; ls",
            "cat $x:t",
            "cat \"$x:t\"",
            "cat $x[1]",
            "cat ${x:t}",
            "cat ${x[1]}",
            "cat $argv",
            "cat $#x",
            "cat $~x",
            "cat $=x",
            "cat $^x",
            "cat $+x",
            "cat **/x",
            "cat *(.)",
            "cat .en^",
            "cat .en#v",
            "cat ^x",
            "cat a~b",
            "cat ~x/f",
            "cat <1-5>",
            "cat x<1-5>",
            "echo a &! ls",
            "echo a &| ls",
            "cat =(ls)",
            "cat $\"x\"",
            "echo > *.txt",
            "echo > {a,b}",
            "`ls`",
            "repeat 2 ls",
            "foreach x (a b) ls; end",
            "chdir ..; cat x",
            "case x in a) ls;; esac",
            "set -A path a",
            "setopt x",
            "emulate sh",
            "echo \"$(cat $x:t)\"",
            "cat <<EOF\n$x:t\nEOF",
            "cat 'a",
            "echo $((path))",
            "echo ${x:=y}",
            "echo %1",
            "\"print\" -z x",
            "p'rint' x",
            "unset path",
            "f() { local path; }",
            "exec > f; ls",
            "hash ls=x",
            "trap 'x' EXIT",
        ] {
            assert_eq!(reading_of(line), ZshReading::Differs, "{line}");
        }
    }
}
