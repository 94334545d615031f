//! Whether a pattern can match any possible target, and a suggestion for one that cannot.

use toold_proto::cut;
use toold_proto::tool::Category;

use crate::policy::pattern::emptiness::can_match;
use crate::policy::pattern::{Pattern, PatternKind};
use crate::policy::targets::{TargetShape, shape_of};

/// # Errors
/// Why it can match nothing.
pub(super) fn check(category: Category, pattern: &Pattern) -> Result<(), String> {
    match &pattern.kind {
        PatternKind::Any | PatternKind::Line(_) | PatternKind::ReadingTools(_) => Ok(()),
        PatternKind::Words(words) => words.check(),
        PatternKind::Host(host) => host.check(),
        PatternKind::Glob { glob, folder } => {
            let Some(shape) = shape_of(category) else { return Ok(()) };
            let mut globs = [Some(glob), folder.as_ref()].into_iter().flatten();
            match globs.any(|glob| can_match(glob.glob().regex(), shape)) {
                true => Ok(()),
                false => Err(format!("it can match nothing: targets of {category} are {}", shape.describe())),
            }
        }
    }
}

/// A glob over names of tools.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_tool_glob(glob: &globset::Glob) -> Result<(), String> {
    if can_match(glob.regex(), TargetShape::ToolName) {
        return Ok(());
    }
    let text = glob.glob();
    let near = globset::Glob::new(&text.to_lowercase().replace(['-', '.', ' '], "_"));
    let near = near.ok().filter(|near| near.glob() != text && can_match(near.regex(), TargetShape::ToolName));
    let near = near.map(|near| format!(": did you mean {:?}?", near.glob())).unwrap_or_default();
    Err(format!("{text:?} can match no tool: tool names are {}{near}", TargetShape::ToolName.describe()))
}

/// The names that agents have for their tools that read or change files.
const FILE_TOOLS: &[&str] = &["Read", "Edit", "Write", "MultiEdit", "NotebookEdit"];

/// The pattern inside of a rule of an agent for files: `~/.ssh/**` of `Read(~/.ssh/**)`.
pub(in crate::policy) fn of_agent_tool(text: &str) -> Option<&str> {
    let (tool, inside) = text.trim().strip_suffix(')')?.split_once('(')?;
    FILE_TOOLS.contains(&tool).then_some(inside)
}

/// The names that agents have for their tools that run commands.
const AGENT_TOOLS: &[&str] = &["Bash", "Shell", "run_shell_command", "shell", "bash", "execute"];

/// Programs whose first word names an operation.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "dnf",
    "docker",
    "dotnet",
    "gcloud",
    "gh",
    "git",
    "glab",
    "go",
    "helm",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Their first words that are no names of scripts, which may contain colons.
const RUNNER_WORDS: &[&str] = &["add", "ci", "dlx", "exec", "install", "publish", "remove", "run", "run-script", "x"];

/// Why a pattern of commands that is valid may not mean what its author meant; with the pattern that does.
pub(super) fn otherwise_meant(text: &str, is_strict: bool) -> Option<String> {
    let program_with_blank = ['"', '\''].into_iter().find_map(|quote| {
        let (name, behind) = text.strip_prefix(quote)?.split_once(quote)?;
        name.contains(' ').then(|| format!("{name}{behind}"))
    });
    if let Some(meant) = program_with_blank {
        return Some(format!("its first word has a blank, and names of programs have none: did you mean {meant:?}?"));
    }
    if let Some(notice) = other_character(text) {
        return Some(notice);
    }
    let is_regex = text.ends_with(" .*") || text.len() > 1 && text.starts_with('/') && text.ends_with('/');
    if is_regex || ["^", "/^", "re:", "regex:"].iter().any(|start| text.starts_with(start)) {
        return Some(
            "it is read as words, in which `*` stands for any text, and not as a regular expression".to_owned(),
        );
    }
    // One that allows may be that of an answer.
    let last = text.rsplit([' ', '\t']).next().unwrap_or_default();
    if is_strict && matches!(last, "'*'" | "\"*\"" | "\\*") {
        let meant = format!("{} *", cut::before(text, text.len() - last.len()).trim_end());
        return Some(format!("a `*` in quotes stands for itself: did you mean {meant:?}?"));
    }
    // A quoted word was written with care.
    if text.contains(['\'', '"', '\\']) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (first, last) = (*words.first()?, *words.last()?);
    let program = first.rsplit('/').next().unwrap_or_default();
    let has_operation = WITH_SUBCOMMANDS.contains(&program);
    if AGENT_TOOLS.iter().any(|tool| first == *tool && tool.starts_with(char::is_uppercase)) {
        let rest = text.split_once(first)?.1.trim();
        return Some(format!("{first} is the name of a tool of agents, not of a program: did you mean {rest:?}?"));
    }
    if first.starts_with('-') {
        return Some("it begins with an option, and commands begin with the name of a program".to_owned());
    }
    if let Some(meant) = words.iter().find_map(|word| without_list(text, word)) {
        return Some(format!(
            "only `*` is a wildcard, so that each of its forms is a rule of its own, such as {meant:?}"
        ));
    }
    if is_strict && let Some(notice) = hardly_a_command(&words, text) {
        return Some(notice);
    }
    let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if let Some(start) = last.strip_suffix(":*").filter(|start| is_plain(start) && !start.is_empty()) {
        let is_script = words.len() > 2 && words.get(1).is_some_and(|word| word.starts_with("run"))
            || matches!(program, "yarn" | "pnpm" | "bun") && !RUNNER_WORDS.contains(&start);
        let means_prefix = words.len() == 1 || has_operation && !is_script;
        return means_prefix.then(|| {
            format!(
                "{last} is one word with a colon; a `*` of its own stands for any further words: did you mean {:?}?",
                as_words(text)
            )
        });
    }
    if let Some(start) = last.strip_suffix('*').filter(|start| is_plain(start) && !start.is_empty())
        && (words.len() == 1 && WITH_SUBCOMMANDS.contains(&start)
            || words.len() == 2 && has_operation
            || is_strict && words.len() > 2 && has_operation)
    {
        let before = words.get(..words.len() - 1).unwrap_or_default().join(" ");
        let meant = if words.len() > 2 { format!("{text} *") } else { format!("{before} {start} *") };
        return Some(format!(
            "{last} is one word, and may not cover those after it: did you mean {:?}?",
            meant.trim_start()
        ));
    }
    // One that allows exactly these words is narrow, one that denies them is hardly ever meant so.
    if is_strict && !text.contains('*') && words.iter().all(is_plain) {
        return Some(format!(
            "it is about this command without further words: for those too, write {:?}",
            format!("{text} *")
        ));
    }
    None
}

/// Characters that only look like those of a command, as texts have that were copied from elsewhere.
fn other_character(text: &str) -> Option<String> {
    let plain = |c: char| match c {
        '\u{2010}' | '\u{2011}' | '\u{2013}' | '\u{2212}' => Some("-"),
        '\u{2014}' => Some("--"),
        '\u{2018}' | '\u{2019}' => Some("'"),
        '\u{201c}' | '\u{201d}' => Some("\""),
        c if c != ' ' && c != '\t' && c.is_whitespace() => Some(" "),
        _ => None,
    };
    // In quotes, they were written with care.
    let odd = text.split(['\'', '"']).step_by(2).flat_map(str::chars).find(|c| plain(*c).is_some())?;
    let meant: String = text.chars().map(|c| plain(c).map_or_else(|| c.to_string(), str::to_owned)).collect();
    Some(format!("U+{:04X} in it is another character than that of commands: did you mean {meant:?}?", odd as u32))
}

/// `git {push,pull} *` and `git [pP]ush *` with the first of their forms.
fn without_list(text: &str, word: &str) -> Option<String> {
    let list = word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    if let Some((before, (inside, behind))) = list.filter(|(_, (inside, _))| inside.contains(',')) {
        return Some(text.replace(word, &format!("{before}{}{behind}", inside.split(',').next()?)));
    }
    let (before, (inside, behind)) =
        word.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)))?;
    let mut letters = inside.chars();
    let (first, second) = (letters.next()?, letters.next()?);
    let is_either = letters.next().is_none() && first != second && first.eq_ignore_ascii_case(&second);
    is_either.then(|| text.replace(word, &format!("{before}{}{behind}", first.to_ascii_lowercase())))
}

/// Words of a rule that denies or asks by which it is about hardly any command.
fn hardly_a_command(words: &[&str], text: &str) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let begins_within = |word: &&&str| word.len() > 1 && word.starts_with('*') && **word != "**";
    let name = first.trim_end_matches('*');
    if words.iter().any(|word| word.starts_with("*-")) || begins_within(&first) && !rest.is_empty() {
        let plain = words.iter().map(|word| word.trim_matches('*')).filter(|word| !word.is_empty());
        let start = if first.trim_start_matches('*').starts_with('-') { "* " } else { "" };
        let meant = format!("{start}{} *", plain.collect::<Vec<_>>().join(" "));
        return Some(format!("a `*` within a word stands for a part of that word: did you mean {meant:?}?"));
    }
    if rest.is_empty() && (name != *first || first.ends_with(':')) {
        let name = name.trim_end_matches(':');
        let is_program = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
        return is_program
            .then(|| format!("{first} is the name of a program: did you mean {:?}?", format!("{name} *")));
    }
    if first.starts_with(['!', '#']) {
        let meant = text.trim_start_matches(['!', '#', ' ']);
        return Some(format!(
            "it begins with {:?}, and commands begin with the name of a program: did you mean {meant:?}?",
            first.chars().next().unwrap_or_default()
        ));
    }
    let small = text.to_ascii_lowercase();
    let program = small.split_whitespace().next().unwrap_or_default();
    let is_known = WITH_SUBCOMMANDS.contains(&program) || ["curl", "rm", "ssh", "sudo", "wget"].contains(&program);
    if is_known && program != *first {
        return Some(format!("the names of programs are in small letters: did you mean {small:?}?"));
    }
    let is_list = rest.iter().any(|word| word.len() > 1 && word.ends_with(','));
    is_list.then(|| "a pattern describes one command: write a rule for each part of the list".to_owned())
}

/// `git push *` for `git push:*`.
fn as_words(text: &str) -> String {
    match text.strip_suffix(":*") {
        Some(start) => format!("{start} *"),
        None => text.to_owned(),
    }
}

/// `: did you mean X?`, or nothing without a close match. Only patterns that can match something
/// are suggested.
pub(super) fn perhaps(category: Category, text: &str) -> String {
    let candidates = match category {
        Category::FileRead | Category::FileWrite => paths(text),
        Category::Mcp => mcp_tools(text),
        Category::Network => hosts(text),
        Category::Shell => return commands(text),
        Category::Agent | Category::Plugin => Vec::new(),
    };
    let fits = |candidate: &&String| *candidate != text && is_of_use(category, candidate);
    candidates.iter().find(fits).map(|found| format!(": did you mean {found:?}?")).unwrap_or_default()
}

fn is_of_use(category: Category, text: &str) -> bool {
    Pattern::read(category, text).is_ok_and(|pattern| check(category, &pattern).is_ok())
}

fn paths(text: &str) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| !last.contains(['*', '?', '[', '{'])) => _ = names.pop(),
            name => names.push(name),
        }
    }
    let plain = format!("/{}", names.join("/"));
    let below = if text.ends_with('/') { format!("{plain}/**") } else { plain.clone() };
    let anywhere = format!("**/{}", text.trim_start_matches(['*', '/']));
    let named = format!("**/*{}", text.trim_start_matches(['*', '/']));
    match text.starts_with('*') {
        true => vec![named, anywhere],
        false => vec![below, plain],
    }
}

fn mcp_tools(text: &str) -> Vec<String> {
    let text = text.trim();
    // As some agents name the tools of servers.
    let by_agents = text.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let by_agents = by_agents.map(|(server, tool)| format!("{server}/{tool}"));
    let whole = text.chars().all(|c| c == '*' || c == '/').then(|| "**".to_owned());
    let apart = text.split_once([':', '.']).map(|(server, tool)| format!("{server}/{tool}"));
    let of_server = format!("{}/*", text.trim_matches('/'));
    whole.into_iter().chain(by_agents).chain(apart).chain([of_server]).collect()
}

fn hosts(text: &str) -> Vec<String> {
    let text = text.trim();
    // As an agent names them: `WebFetch(domain:example.org)`.
    let inside = text.strip_suffix(')').and_then(|text| text.split_once('(')).map_or(text, |(_, inside)| inside);
    if let Some(host) = inside.strip_prefix("domain:") {
        return vec![host.to_owned()];
    }
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let (host, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A network: as many whole parts as its prefix has.
    let prefix = behind.strip_prefix('/').and_then(|prefix| prefix.parse::<usize>().ok());
    let is_address = host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok());
    let network = prefix.filter(|prefix| is_address && prefix % 8 == 0 && *prefix <= 24).map(|prefix| {
        let parts = host.split('.').enumerate().map(|(at, part)| if at < prefix / 8 { part } else { "*" });
        parts.collect::<Vec<_>>().join(".")
    });
    let (inside, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, port)) => (inside, port),
        None => (host, ""),
    };
    let bare = inside.parse::<core::net::Ipv6Addr>().ok().map(|address| match address.to_ipv4_mapped() {
        Some(inner) => format!("{inner}{port}"),
        None => format!("[{address}]{port}"),
    });
    let unwrapped = format!("{inside}{port}");
    let below = host.strip_prefix('.').map(|below| format!("**.{below}"));
    let without_port = host.rsplit_once(':').map(|(host, _)| host.to_owned());
    let port_of_every = unwrapped.strip_prefix('*').map(|rest| rest.trim_start_matches(['*', '.']));
    let every = port_of_every.filter(|port| port.is_empty() || port.starts_with(':'));
    let every = every.map(|port| format!("**{}", port.trim_end_matches(":*")));
    let all = network.into_iter().chain(every).chain(bare).chain(below).chain([host.to_owned(), unwrapped]);
    all.chain(without_port).filter(|host| !host.is_empty()).collect()
}

/// The commands of a line, each of which needs a rule of its own.
fn commands(text: &str) -> String {
    // As some agents name a tool with its command.
    let inside = text.trim().strip_suffix(')').and_then(|text| text.split_once('('));
    if let Some((tool, inside)) = inside
        && AGENT_TOOLS.contains(&tool)
    {
        let meant = as_words(inside);
        return if is_of_use(Category::Shell, &meant) { format!(": did you mean {meant:?}?") } else { String::new() };
    }
    let parts = text.split([';', '|', '&', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let without_variables = |part: &str| {
        let words = part.split_whitespace();
        words.skip_while(|word| word.contains('=') || *word == "!").collect::<Vec<_>>().join(" ")
    };
    let parts: Vec<String> = parts.map(without_variables).collect();
    let reads = |part: &String| is_of_use(Category::Shell, part);
    if parts.is_empty() || !parts.iter().all(reads) || parts == [text] {
        return String::new();
    }
    let shown: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
    match shown.as_slice() {
        [one] => format!(": did you mean {one}?"),
        several => format!(": write a separate rule for each of {}", several.join(" and ")),
    }
}

#[cfg(test)]
mod tests;
