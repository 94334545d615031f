//! `psql`, `mysql` and `sqlite3`: a statement is known if it is one literal query, or a command of the client that only
//! shows something. Everything else that a statement could do is a doubt, whether it stands in the words or on the standard
//! input.

use super::known::find;
use super::named_files::secrets_in;
use super::options::{Parsed, parse};
use super::written_files::named_by;
use super::{CommandContext, CommandOutput, FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;

/// Words with which a query begins.
const BEGINNINGS: &[&str] = &["select", "explain", "show", "describe", "desc", "with", "table", "values", "pragma"];

/// Words that change something, also within a query.
const CHANGES: &[&str] = &[
    "into",
    "insert",
    "update",
    "delete",
    "replace",
    "merge",
    "drop",
    "alter",
    "create",
    "truncate",
    "grant",
    "revoke",
    "copy",
    "call",
    "do",
    "set",
    "reset",
    "lock",
    "outfile",
    "dumpfile",
    "attach",
    "detach",
    "vacuum",
    "reindex",
    "load",
    "import",
    "execute",
    "prepare",
    "listen",
    "notify",
    "begin",
    "commit",
    "rollback",
    "kill",
    "flush",
    "install",
    "procedure",
    "handler",
    "rename",
    "optimize",
    "repair",
    "shutdown",
    "refresh",
];

/// Words that may stand before a parenthesis and call no function.
const NO_FUNCTIONS: &[&str] = &[
    "in",
    "and",
    "or",
    "not",
    "exists",
    "over",
    "from",
    "select",
    "where",
    "on",
    "as",
    "by",
    "distinct",
    "any",
    "all",
    "some",
    "when",
    "then",
    "else",
    "case",
    "join",
    "union",
    "except",
    "intersect",
    "limit",
    "offset",
    "filter",
    "partition",
    "using",
    "values",
    "with",
    "having",
    "between",
    "like",
    "is",
    "explain",
    "group",
    "order",
    "varchar",
    "numeric",
    "decimal",
    "char",
];

/// Functions that only compute.
const FUNCTIONS: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "total",
    "abs",
    "round",
    "ceil",
    "floor",
    "coalesce",
    "ifnull",
    "nullif",
    "lower",
    "upper",
    "length",
    "char_length",
    "trim",
    "ltrim",
    "rtrim",
    "substr",
    "substring",
    "concat",
    "concat_ws",
    "cast",
    "date",
    "time",
    "datetime",
    "strftime",
    "julianday",
    "now",
    "date_trunc",
    "date_part",
    "extract",
    "to_char",
    "age",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "string_agg",
    "array_agg",
    "group_concat",
    "json_agg",
    "json_extract",
    "json_object",
    "jsonb_array_length",
    "json_array_length",
    "jsonb_object_keys",
    "greatest",
    "least",
    "unixepoch",
    "typeof",
    "quote",
    "hex",
    "instr",
    "pg_size_pretty",
    "pg_relation_size",
    "pg_total_relation_size",
    "pg_database_size",
    "current_database",
    "version",
    "database",
    "sqlite_version",
];

/// Pragmas of SQLite that show something when no value is given.
const PRAGMAS: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "foreign_key_list",
    "foreign_key_check",
    "database_list",
    "integrity_check",
    "quick_check",
    "compile_options",
    "collation_list",
    "page_count",
    "page_size",
    "freelist_count",
    "encoding",
    "user_version",
    "journal_mode",
    "foreign_keys",
];

/// Commands of `psql` that only show something, without the letters `S`, `+` and `x` at the end.
const PSQL_SHOWS: &[&str] = &[
    "\\d",
    "\\dt",
    "\\di",
    "\\dv",
    "\\dm",
    "\\ds",
    "\\dn",
    "\\df",
    "\\du",
    "\\dg",
    "\\dT",
    "\\dx",
    "\\dp",
    "\\dy",
    "\\dD",
    "\\dC",
    "\\dE",
    "\\db",
    "\\l",
    "\\z",
    "\\conninfo",
    "\\sv",
    "\\sf",
    "\\h",
    "\\?",
    "\\encoding",
    "\\copyright",
];

/// Commands of `sqlite3` that only show something.
const SQLITE_SHOWS: &[&str] = &[
    ".tables",
    ".schema",
    ".indexes",
    ".indices",
    ".databases",
    ".dbinfo",
    ".fullschema",
    ".headers",
    ".header",
    ".mode",
    ".show",
    ".help",
    ".dump",
    ".nullvalue",
    ".width",
    ".stats",
    ".timer",
    ".version",
    ".quit",
    ".exit",
    ".sha3sum",
    ".bail",
    ".changes",
];

/// Hosts that are this machine.
const THIS_MACHINE: &[&str] = &["localhost", "127.0.0.1", "::1", "[::1]", ""];

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    Some(match name {
        "psql" => psql(words, site)?,
        "mysql" | "mariadb" => mysql(name, words, site)?,
        "sqlite3" => sqlite(words, site)?,
        _ => return None,
    })
}

/// Words of statements and of the clients' own commands by which they name files.
const OPENING: &[&str] = &[
    "readfile",
    "writefile",
    "fsdir",
    "load_extension",
    "edit",
    "attach",
    "vacuum",
    "outfile",
    "dumpfile",
    "infile",
    "load_file",
    "copy",
    "source",
    "tee",
    "pg_read_file",
    "lo_import",
    "lo_export",
];

/// Adds the doubt about the first statement that is not known.
fn judge(reading: &mut Reading, statements: &[Arg], site: &CommandContext, is_known: impl Fn(&str) -> bool) {
    for statement in statements {
        reading.note(statement, "statement");
        match statement.literal() {
            None => {
                // One that begins as a command of the client may run a program.
                let start = statement.start().trim_start();
                reading.may_run_any |= start.is_empty() || start.starts_with(['.', '\\']);
                reading.doubt("the shell expands a statement, and the result is unknown");
            }
            Some(text) if !is_known(text) => {
                reading.doubt("a statement may change data, or do something else");
                reading.files.extend(files_in(text, site));
            }
            Some(_) => {}
        }
    }
}

/// The files that functions and commands of the clients may read or write, in a language that is not read here.
fn files_in(text: &str, site: &CommandContext) -> Vec<FileUse> {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if !words.any(|word| OPENING.contains(&word)) && !lines_of(text).any(|line| line.starts_with(['.', '\\'])) {
        return Vec::new();
    }
    let home = site.environment.get("HOME").and_then(|home| home.to_str());
    let separates = |c: char| c.is_whitespace() || "'\"`(),;|".contains(c);
    let paths = text.split(separates).filter(|word| word.contains('/') && !word.contains("://"));
    let written = paths.map(|path| {
        let file = match path.strip_prefix("~/").zip(home) {
            Some((below, home)) => Arg::text(&format!("{home}/{below}")),
            None => Arg::text(path),
        };
        FileUse { is_operand: false, ..FileUse::new(FileAccess::Write, file) }
    });
    secrets_in(text).chain(written).collect()
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start)
}

/// Judges the statements on the standard input. Where they are not certain, even all words do not show what the command does.
fn add_input(reading: &mut Reading, site: &CommandContext, is_known: impl Fn(&str) -> bool) {
    let was_certain = reading.unsure.is_none();
    match (site.input.text(), site.input) {
        (Some(text), _) => match statements_in(text) {
            Some(statements) => judge(reading, &statements, site, is_known),
            None => {
                reading.doubt("where the statements on its standard input end is not certain");
                reading.files.extend(files_in(text, site));
            }
        },
        (None, CommandOutput::Content(file)) => reading.doubt(format!("it runs the statements of {}", file.raw)),
        (None, _) => reading.doubt("the statements on its standard input are unknown"),
    }
    reading.is_open |= was_certain && reading.unsure.is_some();
    // Queries run nothing.
    reading.runs_input = reading.unsure.is_some();
}

/// Each statement: a line that begins as a command of a client does, or lines up to one that ends with a semicolon. `None` if
/// a client may see other ones.
fn statements_in(text: &str) -> Option<Vec<Arg>> {
    let mut statements = Vec::new();
    let mut waiting = String::new();
    for line in text.lines() {
        let begins = line.trim_start();
        let is_command = begins.starts_with(['.', '\\', '/']) || begins.trim_end().eq_ignore_ascii_case("go");
        match waiting.is_empty() {
            true if begins.is_empty() => {}
            true if is_command => statements.push(Arg::text(line)),
            // Whether it is one depends on where the statement before it ends.
            false if is_command => return None,
            _ => {
                waiting.push_str(line);
                waiting.push('\n');
                if line.trim_end().ends_with(';') {
                    statements.push(Arg::text(std::mem::take(&mut waiting).trim_end()));
                }
            }
        }
    }
    if !waiting.is_empty() {
        statements.push(Arg::text(waiting.trim_end()));
    }
    Some(statements)
}

fn psql(words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let parsed = parse(find("psql")?, words);
    let statements: Vec<Arg> = parsed.values(&["-c", "--command"]).cloned().collect();
    let read = named_by(words, "-f --file");
    let lists = parsed.has(&["-l", "--list", "-V", "--version", "-?", "--help"]);
    let hosts: Vec<Arg> = parsed.values(&["-h", "--host"]).cloned().collect();
    let databases: Vec<Arg> = parsed.values(&["-d", "--dbname"]).chain(&parsed.operands).cloned().collect();
    let writes: Vec<Arg> = parsed.values(&["-o", "--output"]).cloned().collect();
    let mut reading = parsed.into_reading();
    reading
        .files
        .extend(read.into_iter().filter(|file| !file.is("-")).map(|file| FileUse::new(FileAccess::Read, file)));
    let is_known = |text: &str| is_query(text) || shows(text, PSQL_SHOWS);
    judge(&mut reading, &statements, site, is_known);
    if let Some(odd) = writes.iter().find(|value| value.literal().is_none_or(|text| text.trim_start().starts_with('|')))
    {
        reading.files.retain(|file| file.arg != *odd);
        return Some(reading.runs_any(format!("{} writes a file, or runs a command", odd.raw)));
    }
    let is_here = |host: &Arg| host.literal().is_some_and(|text| THIS_MACHINE.contains(&text) || text.starts_with('/'));
    if let Some(host) = hosts.iter().find(|host| !is_here(host)) {
        reading.doubt(format!("it connects to {}", host.raw));
    }
    if let Some(odd) = databases.iter().find(|database| !is_local_database(database)) {
        reading.doubt(format!("it may connect to another machine by {}", odd.raw));
    }
    if statements.is_empty() && !lists {
        add_input(&mut reading, site, is_known);
    }
    Some(reading)
}

/// A name, or an address of this machine. `service=` and others may name another one.
fn is_local_database(database: &Arg) -> bool {
    let Some(text) = database.literal() else { return false };
    let address = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"));
    match address {
        None => !text.contains('=') && !text.contains("://"),
        Some(rest) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let host = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
            let host = host.map_or(authority.rsplit('@').next().unwrap_or_default(), |(host, _)| host);
            THIS_MACHINE.contains(&host) && !path.contains('?') && !rest.contains('?')
        }
    }
}

/// The client reads commands of its own in each line.
fn mysql(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let statements: Vec<Arg> = parsed.values(&["-e", "--execute"]).cloned().collect();
    let shows_version = parsed.has(&["-V", "--version", "-?", "--help"]);
    let hosts: Vec<Arg> = parsed.values(&["-h", "--host"]).cloned().collect();
    let mut reading = parsed.into_reading();
    let is_known = |text: &str| {
        let text = text.trim_end().strip_suffix("\\G").unwrap_or(text);
        !text.contains('\n') && is_query(text)
    };
    judge(&mut reading, &statements, site, is_known);
    // It reads commands of its own in each line of a statement.
    reading.may_run_any |= statements.iter().any(|statement| statement.literal().is_none());
    if let Some(host) = hosts.iter().find(|host| !THIS_MACHINE.iter().any(|known| host.is(known))) {
        reading.doubt(format!("it connects to {}", host.raw));
    }
    if statements.is_empty() && !shows_version {
        add_input(&mut reading, site, is_known);
    }
    Some(reading)
}

/// `sqlite3 FILE STATEMENT...`
fn sqlite(words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let parsed = parse(find("sqlite3")?, words);
    let option = |parsed: &Parsed| parsed.values(&["-cmd"]).cloned().collect::<Vec<_>>();
    let statements = [option(&parsed), parsed.operands.iter().skip(1).cloned().collect()].concat();
    let shows_version = parsed.has(&["-version", "-help"]);
    let takes_input = parsed.operands.len() < 2 && !shows_version;
    let is_readonly = parsed.has(&["-readonly", "--readonly"]);
    let mut reading = parsed.into_reading();
    for file in named_by(words, "-init --init") {
        reading.files.retain(|known| known.arg != file);
        reading.files.push(FileUse::new(FileAccess::Read, file));
    }
    // The names of no file, and of a file by its address.
    reading.files.retain(|file| !(file.how == FileAccess::Write && (file.arg.is(":memory:") || file.arg.is(""))));
    if reading.files.iter().any(|file| file.arg.start().starts_with("file:")) {
        reading.doubt("an address may name any file, and options of SQLite");
    }
    let is_known = |text: &str| is_query(text) || shows(text, SQLITE_SHOWS);
    judge(&mut reading, &statements, site, is_known);
    if takes_input {
        add_input(&mut reading, site, is_known);
    }
    // Without the option, even a query makes the file if it does not exist.
    if is_readonly && reading.unsure.is_none() {
        reading.files.iter_mut().for_each(|file| file.how = FileAccess::Read);
    }
    Some(reading)
}

/// A command of the client that only shows something, with plain words.
fn shows(text: &str, known: &[&str]) -> bool {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else { return false };
    let first = first.trim_end_matches('+').trim_end_matches('S').trim_end_matches('+');
    let is_plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "_.%*-\"".contains(c));
    text == text.trim() && !text.contains('\n') && known.contains(&first) && words.all(is_plain)
}

/// One statement that only reads: known words, known functions, and no form in which a part could hide.
fn is_query(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';').trim_end();
    if text.contains(['\\', '\0']) || text.contains("/*") || text.contains("--") {
        return false;
    }
    let Some(tokens) = tokens(text) else { return false };
    let word = |at: usize| match tokens.get(at) {
        Some(SqlToken::Word(word)) => word.as_str(),
        _ => "",
    };
    if !BEGINNINGS.contains(&word(0)) {
        return false;
    }
    if word(0) == "pragma" {
        return PRAGMAS.contains(&word(1)) && !tokens.contains(&SqlToken::Other('='));
    }
    tokens.iter().enumerate().all(|(at, token)| match token {
        SqlToken::Word(name) => {
            let is_called = tokens.get(at + 1) == Some(&SqlToken::Other('('));
            // `with t as (...)` and `t(a, b)` behind `with` name no function.
            !CHANGES.contains(&name.as_str())
                && (!is_called || NO_FUNCTIONS.contains(&name.as_str()) || FUNCTIONS.contains(&name.as_str()))
        }
        // A quoted name may be one of a function.
        SqlToken::Name => tokens.get(at + 1) != Some(&SqlToken::Other('(')),
        SqlToken::Text => true,
        SqlToken::Other(c) => !"$`;#@{}".contains(*c),
    })
}

#[derive(Debug, PartialEq, Eq)]
enum SqlToken {
    /// In lower case.
    Word(String),
    /// Between double quotes.
    Name,
    Text,
    Other(char),
}

/// `None` if a quote is not closed.
fn tokens(text: &str) -> Option<Vec<SqlToken>> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                chars.by_ref().find(|next| *next == c)?;
                tokens.push(if c == '"' { SqlToken::Name } else { SqlToken::Text });
            }
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = c.to_lowercase().collect::<String>();
                while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '_') {
                    word.extend(next.to_lowercase());
                }
                tokens.push(SqlToken::Word(word));
            }
            c => tokens.push(SqlToken::Other(c)),
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queries_of_known_parts_are_known() {
        for text in [
            "select count(*) from users",
            "SELECT id, name FROM users WHERE name = 'drop table' LIMIT 5;",
            "select * from t where a in (1, 2) and b not in (select c from d)",
            "select coalesce(max(created_at), now()) from events group by 1",
            "with a as (select 1) select * from a",
            "explain select 1",
            "show tables",
            "describe users",
            "pragma table_info(users)",
        ] {
            assert!(is_query(text), "{text}");
        }
        for text in [
            "",
            "select pg_terminate_backend(1)",
            "select pg_read_file('/etc/passwd')",
            "select writefile('x', 'y')",
            "select load_extension('x')",
            "select \"load_extension\"('x')",
            "select * into new from old",
            "select 1; drop table users",
            "select 1 /*! into outfile 'x' */",
            "select 1 -- x",
            "select $$x$$",
            "select E'\\'; drop",
            "select 'open",
            "with x as (delete from users returning *) select * from x",
            "explain analyze delete from users",
            "select * from users into outfile '/tmp/x'",
            "delete from users",
            "drop table users",
            "pragma journal_mode = delete",
            "pragma writable_schema",
            "copy users to program 'x'",
            ".shell id",
            "\\! id",
        ] {
            assert!(!is_query(text), "{text}");
        }
    }

    #[test]
    fn only_commands_that_show_something_are_known() {
        for text in ["\\dt", "\\d+ users", "\\dtS+", "\\l", "\\df public.*"] {
            assert!(shows(text, PSQL_SHOWS), "{text}");
        }
        for text in ["\\! id", "\\o x", "\\copy t to x", "\\dt | sh", "\\i x", "\\g |x", "\\dt\n\\! id"] {
            assert!(!shows(text, PSQL_SHOWS), "{text}");
        }
        for text in [".tables", ".schema users", ".mode csv"] {
            assert!(shows(text, SQLITE_SHOWS), "{text}");
        }
        for text in
            [".shell id", ".system id", ".output |id", ".load x", ".read x", ".import x y", ".open x", ".once |x"]
        {
            assert!(!shows(text, SQLITE_SHOWS), "{text}");
        }
    }
}
