//! Patterns that an ask suggests to the person, from narrow to wide.
//!
//! Each can be read as a pattern, matches the need that it was made for, and matches nothing that
//! it does not show.

use std::path::Path;

use toold_proto::effect::Effect;
use toold_proto::permission::{Scope, Suggestion};
use toold_proto::tool::Category;

use crate::need::{JudgedCommand, Need, Word};
use crate::policy::pattern::words::{escape_word, names_of_files};
use crate::policy::pattern::{LINE, Pattern, READING_TOOLS, escape_glob};

/// Effects of which a wildcard would allow more than was seen: another process, another machine, other rights.
const ONE_BY_ONE: [Effect; 6] =
    [Effect::Privilege, Effect::Secret, Effect::Destroy, Effect::System, Effect::Process, Effect::Send];

/// Longer lines are not offered: nobody reads them in an ask.
const LONGEST_LINE: usize = 1_000;

/// The pattern that matches this need and no other, or only the commands of the same line where the shell expands words; `None`
/// when there is none, as for a program whose name is not known.
pub fn exact_pattern(need: &Need) -> Option<String> {
    let pattern = match need.category() {
        Category::Shell => {
            let words = need.words().filter(|words| words.iter().all(|word| word.literal));
            let exact =
                words.map(|words| words.iter().map(|word| escape_word(&word.text)).collect::<Vec<_>>().join(" "));
            return exact.filter(|exact| fits(need, exact)).or_else(|| whole_line(need));
        }
        // No host has this name, and as a pattern it would match any.
        Category::Network if need.target.contains('*') => return None,
        Category::Network => need.target.clone(),
        // As it is, it would be the pattern of more than this tool.
        Category::Mcp if need.target.ends_with(READING_TOOLS) => escape_glob(&need.target).replace(':', "\\:"),
        Category::FileRead | Category::FileWrite | Category::Mcp | Category::Agent | Category::Plugin => {
            escape_glob(&need.target)
        }
    };
    fits(need, &pattern).then_some(pattern)
}

/// The pattern of the line that the command is a part of.
fn whole_line(need: &Need) -> Option<String> {
    let line = need.line.as_deref().map(str::trim).filter(|line| !line.is_empty() && line.len() <= LONGEST_LINE)?;
    let pattern = format!("{LINE}{line}");
    fits(need, &pattern).then_some(pattern)
}

/// From narrow to wide. Empty if no pattern but `**` matches.
pub fn suggestions(need: &Need, home: Option<&Path>) -> Vec<Suggestion> {
    let wider = match need.category() {
        Category::Shell => need.command().map(commands).unwrap_or_default(),
        Category::FileRead | Category::FileWrite => folders(&need.target, home),
        Category::Network => hosts(&need.target),
        Category::Mcp => tools_of_server(need),
        Category::Agent | Category::Plugin => Vec::new(),
    };
    let mut patterns: Vec<String> = exact_pattern(need).into_iter().collect();
    for pattern in wider {
        if !patterns.contains(&pattern) && fits(need, &pattern) {
            patterns.push(pattern);
        }
    }
    let suggestion = |pattern: String| {
        let covers = match need.category() {
            Category::Shell => need.command().and_then(|command| covered_commands(command, &pattern)),
            category => covered_tools(category, &pattern),
        };
        Suggestion { scope: Scope::Session, pattern, covers }
    };
    patterns.into_iter().map(suggestion).collect()
}

/// The tools of the same server that only read, if this is one, and all of them. Everything of another daemon is no offer.
fn tools_of_server(need: &Need) -> Vec<String> {
    let server = need.target.split_once('/').map(|(server, _)| server).filter(|server| !server.contains(':'));
    let Some(server) = server.map(escape_glob) else { return Vec::new() };
    let reading = need.reads_only().then(|| format!("{server}/{READING_TOOLS}"));
    reading.into_iter().chain([format!("{server}/*")]).collect()
}

/// The tools that a pattern of more than one tool covers, in words.
fn covered_tools(category: Category, pattern: &str) -> Option<String> {
    let (server, tools) = pattern.split_once('/').filter(|_| category == Category::Mcp)?;
    match tools {
        READING_TOOLS => Some(format!("the tools of {server} that only read, as {server} itself says")),
        "*" => Some(format!("all tools, resources and prompts of {server}")),
        _ => None,
    }
}

/// The commands that a pattern covers besides the one that it was made for, in words, where it does not show them: those of a line
/// whose words change, and those of a script or a module, which somebody may change.
fn covered_commands(command: &JudgedCommand, pattern: &str) -> Option<String> {
    if pattern.starts_with(LINE) {
        return Some("exactly this line, whatever its variables and wildcards stand for then".to_owned());
    }
    pattern.strip_suffix(" *")?;
    match command.effects.name.as_slice() {
        [_, option, module, ..] if option == "-m" => Some(format!("the module {module}, with any words behind it")),
        [_, script, rest @ ..] if script.contains(['.', '/']) => {
            let verb = rest.first().map(|verb| format!(" {verb}")).unwrap_or_default();
            Some(format!("the script {script}{verb}, also when it has changed, with any words behind it"))
        }
        [program] if program.contains('/') => {
            Some(format!("the program {program}, also when it has changed, with any words behind it"))
        }
        _ => None,
    }
}

fn fits(need: &Need, pattern: &str) -> bool {
    Pattern::parse(need.category(), pattern).is_ok_and(|pattern| pattern.matches(need).is_some())
}

/// From narrow to wide: the command as it is written, if it has wildcards for names of files; with its file operands as patterns;
/// its whole operation with any further words.
fn commands(command: &JudgedCommand) -> Vec<String> {
    let Some(words) = command.words.as_deref() else { return Vec::new() };
    let one_by_one = ONE_BY_ONE.iter().any(|effect| command.effects.operation.contains(*effect));
    let mut patterns = Vec::new();
    if !one_by_one && words.iter().any(|word| !word.literal) {
        patterns.extend(joined(words, |_, word| escape_word(&word.text)));
    }
    if !command.operands.is_empty() {
        patterns.extend(joined(words, |at, word| match command.operands.contains(&at) {
            true => like(&word.text),
            false => escape_word(&word.text),
        }));
    }
    let name = operation(command, words);
    // With any words, a program that fetches would be about any host.
    let fetches = command.effects.operation.contains(Effect::Fetch);
    // Nor do the words show what a program runs that reads it from its standard input: `ssh web1`.
    let is_wide = one_by_one || command.runs_input || name.len() == 1 && (names_only_files(command) || fetches);
    // Words that are all of the command are an operation where the tables say so, and never if they are the bare program.
    // More words than those of a group and a verb may be operands of what runs elsewhere.
    // `python3 -m pytest`
    let is_module = |(at, word): (usize, &Word)| at == 1 && word.literal && word.text == "-m";
    let is_operation = matches!(name.len(), 2 | 3)
        && command.effects.name.len() == words.len()
        && words.iter().enumerate().all(|(at, word)| is_plain(word) || is_module((at, word)));
    if !is_wide && !name.is_empty() && (words.len() > name.len() || words.len() == name.len() && is_operation) {
        let name: Vec<String> = name.iter().map(|word| escape_word(word)).collect();
        patterns.push(format!("{} *", name.join(" ")));
    }
    patterns
}

/// The words as a pattern, in which wildcards for names of files stay what they are; `None` if the shell changes anything else.
fn joined(words: &[Word], literal: impl Fn(usize, &Word) -> String) -> Option<String> {
    let word = |(at, word): (usize, &Word)| if word.literal { Some(literal(at, word)) } else { names_of_files(word) };
    Some(words.iter().enumerate().map(word).collect::<Option<Vec<_>>>()?.join(" "))
}

/// The words that choose what the command does, and maybe options between them. Of a program in no table, those before the
/// first option, path or value, and none if that leaves its name alone: `mytool *` would be about commands that nobody has
/// seen.
fn operation<'a>(command: &'a JudgedCommand, words: &'a [Word]) -> Vec<&'a str> {
    if let Some(head) = command.head {
        let head = words.get(..head).filter(|head| head.iter().all(|word| word.literal)).unwrap_or_default();
        return head.iter().map(|word| word.text.as_str()).collect();
    }
    let known = &command.effects.name;
    if let Some(program) = known.first() {
        // An interpreter alone does whatever its words say: `python3 -c ...`.
        let is_bare = known.len() == 1 && (program.starts_with('/') || !program.contains('/'));
        return known.iter().filter(|_| !is_bare).map(String::as_str).collect();
    }
    let Some((program, rest)) = words.split_first().filter(|(program, _)| program.literal) else { return Vec::new() };
    let named: Vec<&str> = rest.iter().take_while(|word| is_plain(word)).map(|word| word.text.as_str()).collect();
    if named.is_empty() { Vec::new() } else { [&[program.text.as_str()], named.as_slice()].concat() }
}

/// A word that may name an operation.
fn is_plain(word: &Word) -> bool {
    word.literal
        && word.text.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b))
}

/// A command of files alone, such as `cp a b`: with any further words it would be about any files.
fn names_only_files(command: &JudgedCommand) -> bool {
    !command.reads_only && !command.operands.is_empty()
}

/// Files of the same folder and kind. The name of an option stays: `of=x.img`.
fn like(word: &str) -> String {
    let is_option = |name: &&str| !name.contains('/');
    let option = word.split_once('=').map(|(name, _)| name).filter(is_option);
    let file = option.and_then(|name| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or(word);
    let option = option.map(|name| escape_word(&format!("{name}="))).unwrap_or_default();
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
    let ending = name.rsplit_once('.').filter(|(start, _)| !start.is_empty()).map(|(_, ending)| ending);
    let folder = if folder.is_empty() { String::new() } else { escape_word(&format!("{folder}/")) };
    match ending {
        Some(ending) => format!("{option}{folder}*{}", escape_word(&format!(".{ending}"))),
        None if folder.is_empty() => escape_word(word),
        None => format!("{option}{folder}*"),
    }
}

fn folders(target: &str, home: Option<&Path>) -> Vec<String> {
    let Some(folder) = Path::new(target).parent() else { return Vec::new() };
    let too_wide = folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder));
    match folder.to_str() {
        Some(folder) if !too_wide => vec![format!("{}/*", escape_glob(folder)), format!("{}/**", escape_glob(folder))],
        Some(_) | None => Vec::new(),
    }
}

fn hosts(target: &str) -> Vec<String> {
    let Some((host, _)) = target.rsplit_once(':').filter(|(host, _)| !host.contains('*')) else { return Vec::new() };
    let mut patterns = vec![host.to_owned()];
    let is_address = host.starts_with('[') || host.chars().all(|c| c.is_ascii_digit() || c == '.');
    if let Some((_, parent)) = host.split_once('.').filter(|(_, parent)| !is_address && parent.contains('.')) {
        patterns.push(format!("*.{parent}"));
    }
    patterns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::effects::{AddedEffect, CommandEffects};
    use crate::need::NeedKind;

    fn shell(words: &[&str]) -> Need {
        let word = |text: &&str| match text.strip_prefix('§') {
            Some(wild) => Word { text: wild.to_owned(), literal: false },
            None => Word { text: (*text).to_owned(), literal: !text.starts_with('$') },
        };
        let known = JudgedCommand { words: Some(words.iter().map(word).collect()), ..JudgedCommand::default() };
        Need::of_command(words.join(" "), known)
    }

    /// A command of the operation with these effects.
    fn does(name: &[&str], effects: &[Effect], words: &[&str]) -> Need {
        let name = name.iter().map(|word| (*word).to_owned()).collect();
        let operation = effects.iter().copied().collect();
        let effects = CommandEffects { operation, name, ..CommandEffects::default() };
        shell(words).with_command(|command| (command.head, command.effects) = (Some(effects.name.len()), effects))
    }

    #[track_caller]
    fn check(need: &Need, expected: &[&str]) {
        let patterns: Vec<String> =
            suggestions(need, Some(Path::new("/home/u"))).into_iter().map(|s| s.pattern).collect();
        assert_eq!(patterns, expected);
    }

    #[test]
    fn suggestions_go_from_narrow_to_wide() {
        check(&shell(&["git", "commit", "-m", "a b"]), &["git commit -m 'a b'", "git commit *"]);
        check(&shell(&["git", "status"]), &["git status"]);
        check(&shell(&["mytool", "-f", "x"]), &["mytool -f x"]);
        check(&shell(&["cloud", "s3", "ls", "s3://b"]), &["cloud s3 ls s3://b", "cloud s3 ls *"]);
        check(
            &does(&["npm", "run", "build"], &[Effect::Build], &["npm", "run", "build", "--", "-v"]),
            &["npm run build -- -v", "npm run build *"],
        );
        check(&does(&["rm"], &[Effect::Write], &["rm", "x"]), &["rm x", "rm *"]);
        // No table of options says what its words are.
        let code = does(&["python3"], &[Effect::Build], &["python3", "-c", "x"]);
        check(&code.with_command(|command| command.head = None), &["python3 -c x"]);
        check(&does(&["cargo", "build"], &[Effect::Build], &["cargo", "build"]), &["cargo build", "cargo build *"]);
        check(&does(&["make"], &[Effect::Build], &["make"]), &["make"]);
        let tests = does(&["python3", "-m", "pytest"], &[Effect::Build], &["python3", "-m", "pytest"]);
        check(&tests.with_command(|command| command.head = None), &["python3 -m pytest", "python3 -m pytest *"]);
        check(&does(&["curl"], &[Effect::Fetch], &["curl", "-s", "http://x"]), &["curl -s http://x"]);
        check(&does(&["sudo"], &[Effect::Privilege], &["sudo", "ls"]), &["sudo ls"]);
        check(&does(&["git", "push"], &[Effect::Publish], &["git", "push", "o", "m"]), &["git push o m", "git push *"]);
        let push = does(&["git", "push"], &[Effect::Publish], &["git", "push", "-f", "o"]);
        let force = AddedEffect { effect: Effect::Destroy, words: vec!["-f".into(), "--force".into()] };
        check(&push.with_command(|command| command.effects.added.push(force)), &["git push -f o"]);
        let files = |words: &[&str], operands: &[usize]| {
            does(&words[..1], &[Effect::Write], words).with_command(|command| command.operands = operands.to_vec())
        };
        check(&files(&["cp", "src/a.rs", "b c/d.rs"], &[1, 2]), &["cp src/a.rs 'b c/d.rs'", "cp src/*.rs 'b c/'*.rs"]);
        check(
            &files(&["dd", "if=a.img", "of=b/c.img"], &[1, 2]),
            &["dd if=a.img of=b/c.img", "dd if=*.img of=b/*.img"],
        );
        check(
            &files(&["wc", "-l", "src/a"], &[2]).with_command(|command| command.reads_only = true),
            &["wc -l src/a", "wc -l src/*", "wc *"],
        );
        check(&shell(&["ls", "-la"]), &["ls -la"]);
        check(&shell(&["ls"]), &["ls"]);
        check(&shell(&["cat", "$x"]), &[]);
        let of_line = |line: &str, need: Need| Need { line: Some(line.to_owned()), ..need };
        let each = of_line("for f in *.txt; do wc \"$f\"; done\n", shell(&["wc", "$f"]));
        check(&each, &["$ for f in *.txt; do wc \"$f\"; done"]);
        check(&of_line("ls x; pwd", shell(&["ls", "x"])), &["ls x"]);
        let any_file = each.clone().with_command(|command| command.hides_file = true);
        check(&any_file, &[]);
        check(&each.clone().with_command(|command| command.may_run_any = true), &[]);
        check(&each.with_command(|command| command.runs_input = true), &[]);
        let unread = Need::new(Category::Shell, "a\\\nb").with_command(|command| command.hides_file = true);
        check(&of_line("a\\\nb", unread), &["$ a\\\nb"]);
        check(&does(&["rm"], &[Effect::Write], &["rm", "§?.log"]), &["rm *.log", "rm *"]);
        check(&does(&["rm"], &[Effect::Destroy], &["rm", "-r", "§out/*"]), &[]);
        check(&shell(&["eslint", "-q", "§src/*.js"]), &["eslint -q src/*.js"]);
        check(&files(&["cp", "§*.rs", "b/d.rs"], &[1, 2]), &["cp *.rs b/d.rs", "cp *.rs b/*.rs"]);
        check(&shell(&["$x", "ls"]), &[]);
        check(&Need::new(Category::Shell, "ls $(("), &[]);
        check(&Need::new(Category::FileWrite, "/p/src/a.rs"), &["/p/src/a.rs", "/p/src/*", "/p/src/**"]);
        check(&Need::new(Category::FileWrite, "/p/[x]/{a"), &["/p/\\[x\\]/\\{a", "/p/\\[x\\]/*", "/p/\\[x\\]/**"]);
        check(&Need::new(Category::FileRead, "/home/u/a"), &["/home/u/a"]);
        check(&Need::new(Category::FileRead, "/a"), &["/a"]);
        check(
            &Need::new(Category::Network, "api.example.com:443"),
            &["api.example.com:443", "api.example.com", "*.example.com"],
        );
        check(&Need::new(Category::Network, "example.com:443"), &["example.com:443", "example.com"]);
        check(&Need::new(Category::Network, "10.0.0.1:80"), &["10.0.0.1:80", "10.0.0.1"]);
        check(&Need::new(Category::Mcp, "a*b"), &["a\\*b"]);
        check(&Need::new(Category::Mcp, "docs/search"), &["docs/search", "docs/*"]);
        let reads = |target: &str| Need::of_kind(NeedKind::Mcp { reads_only: true }, target);
        check(&reads("docs/search"), &["docs/search", "docs/mcp:read", "docs/*"]);
        check(&reads("remote:build/bash"), &["remote:build/bash"]);
        // A tool that is named like the pattern.
        check(&Need::new(Category::Mcp, "docs/mcp:read"), &["docs/mcp\\:read", "docs/*"]);
    }

    #[test]
    fn an_offer_says_what_else_it_covers() {
        let covers = |need: &Need| suggestions(need, None).into_iter().map(|offer| offer.covers).collect::<Vec<_>>();
        for (name, words, said) in [
            (
                &["python3", "-m", "pytest"][..],
                &["python3", "-m", "pytest", "-q"][..],
                "the module pytest, with any words",
            ),
            (&["node", "x.js", "up"], &["node", "x.js", "up", "-f"], "the script x.js up, also when it has changed"),
            (&["bash", "deploy.sh"], &["bash", "deploy.sh", "-n"], "the script deploy.sh, also when it has changed"),
            (&["./run"], &["./run", "x"], "the program ./run, also when it has changed"),
        ] {
            let need = does(name, &[Effect::Build], words).with_command(|command| command.head = None);
            let offers = covers(&need);
            assert_eq!((offers.len(), &offers[0]), (2, &None), "{name:?}");
            assert!(offers[1].as_deref().is_some_and(|covered| covered.starts_with(said)), "{name:?}: {offers:?}");
        }
        assert_eq!(covers(&does(&["git", "commit"], &[Effect::History], &["git", "commit", "-q"])), [None, None]);
    }

    #[test]
    fn a_line_covers_its_own_commands_alone() {
        let need = |line: &str| Need { line: Some(line.to_owned()), ..shell(&["wc", "$f"]) };
        let pattern = Pattern::parse_to_use(Category::Shell, "$  for f in *; do wc $f; done ").unwrap();
        assert!(pattern.is_exact());
        assert!(pattern.matches(&need(" for f in *; do wc $f; done\n")).is_some());
        for other in ["for f in *; do wc $f; done; ls", "for f in  *; do wc $f; done", "wc $f"] {
            assert!(pattern.matches(&need(other)).is_none() && pattern.may_match(&need(other)).is_none(), "{other}");
        }
        assert!(pattern.matches(&shell(&["wc", "$f"])).is_none());
        let each_time = Need { always_asked: true, ..need("for f in *; do wc $f; done") };
        assert!(pattern.matches(&each_time).is_none() && pattern.may_match(&each_time).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_exact_pattern_matches_its_need_and_no_other(
            words in prop::collection::vec("[\\PC\n\t]{0,6}", 1..5),
            other in prop::collection::vec("[\\PC\n\t]{0,6}", 1..5),
        ) {
            let all_literal = |words: &[String]| {
                let words = words.iter().map(|text| Word { text: text.clone(), literal: true }).collect();
                Need::of_command("x", JudgedCommand { words: Some(words), ..JudgedCommand::default() })
            };
            let need = all_literal(&words);
            let exact = Pattern::parse(Category::Shell, &exact_pattern(&need).unwrap()).unwrap();
            prop_assert!(exact.matches(&need).is_some());
            prop_assert_eq!(exact.matches(&all_literal(&other)).is_some(), words == other);
        }

        #[test]
        fn the_exact_pattern_of_a_path_matches_it_alone(path in "/[\\PC]{1,12}", other in "/[\\PC]{1,12}") {
            let need = Need::new(Category::FileWrite, path.clone());
            prop_assume!(!path.ends_with('/'));
            let exact = Pattern::parse(Category::FileWrite, &exact_pattern(&need).unwrap()).unwrap();
            prop_assert_eq!(exact.matches(&Need::new(Category::FileWrite, other.clone())).is_some(), path == other);
        }
    }
}
