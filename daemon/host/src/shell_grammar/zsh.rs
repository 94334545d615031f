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

/// How zsh reads a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZshReading {
    /// As bash does.
    Alike,
    /// As bash does, but for the files that its wildcards match.
    AlikeButWildcards,
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
        Some(()) if bodies && !scanner.has_wildcard => ZshReading::Alike,
        Some(()) if bodies => ZshReading::AlikeButWildcards,
        Some(()) | None => ZshReading::Differs,
    }
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
    Operand,
    /// An operand of a command that sets the variables that its operands name.
    Setter,
    /// An argument of `set`.
    Options,
    /// Behind `for`.
    Loop,
    /// Behind `printf`: `-v` names a variable.
    Format,
    /// Behind `[[`.
    Test,
    /// Behind `<` or `>`.
    Target,
}

struct ZshScanner<'t> {
    rest: &'t str,
    before: Option<char>,
    /// Parentheses and quotes that are open, with the role to go on with.
    open: Vec<(char, WordRole)>,
    has_wildcard: bool,
}

/// `None` where zsh differs, or may differ.
type Alike<T = ()> = Option<T>;

impl<'t> ZshScanner<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text, before: None, open: Vec::new(), has_wildcard: false }
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
                    self.next();
                    role = after(role, &word)?;
                    word.clear();
                }
                '\n' | ';' | '&' | '|' => {
                    let _ = after(role, &word)?;
                    word.clear();
                    self.operator()?;
                    role = WordRole::Command;
                }
                '\'' | '"' | '\\' if role == WordRole::Format && cut::after_first(self.rest).starts_with('-') => {
                    return None;
                }
                '\'' => {
                    self.next();
                    let (_, rest) = self.rest.split_once('\'')?;
                    self.rest = rest;
                    self.quoted_part(role, &mut word)?;
                }
                '"' => {
                    self.next();
                    self.double_quotes()?;
                    self.quoted_part(role, &mut word)?;
                }
                '\\' => {
                    self.next();
                    self.next()?;
                    self.quoted_part(role, &mut word)?;
                }
                '$' => {
                    self.next();
                    if role == WordRole::Target || role == WordRole::Setter && !word.contains('=') {
                        return None;
                    }
                    if self.take("(") && !self.rest.starts_with('(') {
                        self.open.push((')', role));
                        role = WordRole::Command;
                        word.clear();
                        continue;
                    }
                    self.expansion(false)?;
                    word.push('\u{1}');
                }
                '(' => {
                    self.next();
                    match role {
                        WordRole::Command if word.is_empty() && !self.rest.starts_with('(') => {
                            self.open.push((')', WordRole::Operand));
                        }
                        // A function.
                        WordRole::Command if word.chars().all(is_name) && self.take(")") => word.clear(),
                        _ => return None,
                    }
                }
                ')' => {
                    let _ = after(role, &word)?;
                    self.next();
                    let (_, before) = self.open.pop().filter(|(kind, _)| *kind == ')')?;
                    role = before;
                    word = "\u{1}".to_owned();
                }
                '<' | '>' => {
                    self.redirect(role)?;
                    if self.before == Some('(') {
                        self.open.push((')', role));
                        (role, word) = (WordRole::Command, String::new());
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
        let _ = after(role, &word)?;
        self.open.is_empty().then_some(())
    }

    /// At the start of a word: comments, and places where zsh expands.
    fn begin(&mut self, role: &mut WordRole) -> Alike {
        if self.rest.starts_with('#') && *role != WordRole::Target {
            self.rest = cut::from(self.rest, self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        let mut chars = self.rest.chars();
        match (chars.next(), chars.next()) {
            (Some('='), Some(next)) if !next.is_whitespace() && *role != WordRole::Test => None,
            (Some('~'), Some(next)) if next != '/' && !next.is_whitespace() && *role != WordRole::Test => None,
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
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' if role == WordRole::Target => None,
            '*' if self.rest.starts_with('*') => None,
            '[' if matches!(word, "" | "[") && self.rest.starts_with([' ', '[']) => Some(()),
            '[' if role == WordRole::Command && !word.is_empty() => None,
            '*' | '?' | '[' if !word.contains('=') || role == WordRole::Operand => {
                self.has_wildcard = true;
                Some(())
            }
            '*' | '?' | '[' => None,
            // With `BRACE_CCL`, each character between the braces is a word. One alone stays one.
            '{' if !self.rest.starts_with([' ', '\t', '\n', '}']) => {
                let inside = self.rest.split_once('}').map_or(self.rest, |(inside, _)| inside);
                (inside.chars().count() < 2 || inside.contains([',', '$', '\'', '"']) || inside.contains(".."))
                    .then_some(())
            }
            '=' if role == WordRole::Test => Some(()),
            '=' if self.rest.starts_with(['=', '(', '~']) && !self.rest.starts_with("~/") => None,
            '=' if word.ends_with([':', '=']) => None,
            '=' if role == WordRole::Command && is_special(word) => None,
            '=' => Some(()),
            '#' if !word.is_empty() => None,
            '^' | '~' if !(word.is_empty() || c == '~' && word.ends_with(['=', ':'])) => {
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
        let is_odd = names_variable || matches!(role, WordRole::Command | WordRole::Options);
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
                '$' => self.expansion(true)?,
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
                '$' => self.expansion(true)?,
                _ => {}
            }
        }
        Some(())
    }

    /// Behind `$`.
    fn expansion(&mut self, is_quoted: bool) -> Alike {
        let Some(c) = self.peek() else { return Some(()) };
        match c {
            '(' if self.before == Some('(') || self.rest.starts_with("((") => self.arithmetic(),
            '(' => {
                self.next();
                self.inner_script()
            }
            '{' => self.braces(),
            '\'' if !is_quoted => {
                self.next();
                loop {
                    match self.next()? {
                        '\'' => return Some(()),
                        '\\' => drop(self.next()?),
                        _ => {}
                    }
                }
            }
            '?' | '!' | '$' | '@' | '*' | '-' => {
                self.next();
                self.behind_name()
            }
            '#' => {
                self.next();
                (!self.rest.starts_with(is_name)).then_some(())
            }
            c if is_name(c) => {
                let name = if c.is_ascii_digit() { self.next().map(|_| "") } else { Some(self.name()) };
                (!is_special(name?)).then_some(())?;
                self.behind_name()
            }
            '"' if is_quoted => Some(()),
            '"' | '\'' | '+' | '~' | '=' | '^' | '[' | ':' => None,
            _ => Some(()),
        }
    }

    /// An index or a modifier behind the name of a variable: `$x[1]`, `$x:t`.
    fn behind_name(&self) -> Alike {
        let mut chars = self.rest.chars();
        match (chars.next(), chars.next()) {
            (Some('['), _) => None,
            (Some(':'), Some(next)) if !"/ \t\n\"".contains(next) && !next.is_ascii_digit() => None,
            _ => Some(()),
        }
    }

    /// `$(...)` in double quotes: a script of its own.
    fn inner_script(&mut self) -> Alike {
        let mut inner = Self::new(self.rest);
        // The end is found by reading: the scanner stops behind the parenthesis that closes it.
        let end = inner.end_of_inner()?;
        let (script, rest) = self.rest.split_at(end);
        let script = script.strip_suffix(')')?;
        self.rest = rest;
        self.before = Some(')');
        let mut scanner = Self::new(script);
        scanner.script()?;
        self.has_wildcard |= scanner.has_wildcard;
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
    fn braces(&mut self) -> Alike {
        self.next();
        self.take("#");
        let name = self.name();
        if name.is_empty() || is_special(name) {
            return None;
        }
        let (behind, rest) = self.rest.split_once('}')?;
        let is_plain =
            |text: &str, more: &str| text.chars().all(|c| is_name(c) || "./,@ +-".contains(c) || more.contains(c));
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ':');
        let text = |operator: &str, more: &str| behind.strip_prefix(operator).is_some_and(|text| is_plain(text, more));
        let is_known = behind.is_empty()
            || [":-", "-", ":+", "+"].iter().any(|operator| text(operator, ""))
            || ["##", "#", "%%", "%"].iter().any(|operator| text(operator, "*"))
            || behind.strip_prefix(':').is_some_and(is_number);
        self.rest = rest;
        self.before = Some('}');
        (is_known && !behind.contains("**")).then_some(())?;
        self.behind_name()
    }
}

fn is_special(name: &str) -> bool {
    PARAMETERS.contains(&name.trim_end_matches('+'))
}

/// The role of the next word behind this one; `None` if the word means something else to zsh.
fn after(role: WordRole, word: &str) -> Alike<WordRole> {
    if word.is_empty() {
        return Some(role);
    }
    match role {
        // `zf_rm` and the like of zsh/files.
        WordRole::Command if COMMANDS.contains(&word) || word.starts_with("zf_") => None,
        WordRole::Command => Some(match word {
            "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" | "}" | "time" | "command"
            | "builtin" | "exec" | "nohup" => WordRole::Command,
            "case" | "in" => return None,
            "for" => WordRole::Loop,
            "read" | "export" => WordRole::Setter,
            "set" => WordRole::Options,
            "printf" => WordRole::Format,
            "[[" => WordRole::Test,
            // Variables for the command behind them.
            word if word.contains('=') && !word.starts_with('=') => WordRole::Command,
            _ => WordRole::Operand,
        }),
        WordRole::Loop => (!is_special(word) && word.chars().all(is_name)).then_some(WordRole::Operand),
        WordRole::Setter => {
            let name = word.split('=').next().unwrap_or_default();
            (!is_special(name) && name != "-v").then_some(WordRole::Setter)
        }
        WordRole::Options => {
            let is_known =
                matches!(word, "--" | "-e" | "-u" | "-x" | "-eu" | "-ex" | "-eux" | "-euo" | "-o" | "-eo" | "pipefail");
            is_known.then_some(if word == "--" { WordRole::Operand } else { WordRole::Options })
        }
        WordRole::Format => (!word.starts_with('-')).then_some(WordRole::Operand),
        WordRole::Test if word == "]]" => Some(WordRole::Operand),
        WordRole::Target => Some(WordRole::Operand),
        role => Some(role),
    }
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
            assert_eq!(reading_of(line), ZshReading::AlikeButWildcards, "{line}");
        }
    }

    #[test]
    fn whatever_else_differs() {
        for line in [
            "path=./bin; ls",
            "path+=(./bin); ls",
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
            "echo > $x",
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
