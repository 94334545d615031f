use proptest::prelude::*;

use crate::need::{Need, Word};
use crate::policy::ToolGlobs;
use crate::policy::pattern::Pattern;
use crate::policy::targets::{begins_command, check_target};
use toold_proto::tool::{Category, ToolName};

#[track_caller]
fn refused(category: Category, pattern: &str, said: &str) {
    let error = Pattern::parse_to_use(category, pattern).unwrap_err().to_string();
    assert!(error.contains(said), "{category} {pattern:?}: {error}");
}

#[track_caller]
fn taken(category: Category, pattern: &str) {
    if let Err(error) = Pattern::parse_to_use(category, pattern) {
        panic!("{error}");
    }
}

#[test]
fn names_of_mounted_tools_have_a_server() {
    refused(Category::Mcp, "*", "SERVER/TOOL, such as github/search_issues: did you mean \"**\"?");
    refused(Category::Mcp, "github", "did you mean \"github/*\"?");
    refused(Category::Mcp, "github/", "did you mean \"github/*\"?");
    refused(Category::Mcp, "git*", "did you mean \"git*/*\"?");
    refused(Category::Mcp, "mcp__github__search", "did you mean \"github/search\"?");
    refused(Category::Mcp, "github:search", "did you mean \"github/search\"?");
    refused(Category::Mcp, "/search", "did you mean \"search/*\"?");
    for pattern in
        ["**", "*/*", "github/*", "github/search", "remote:build/bash", "remote:*/read", "{a,b}/*", "**/x", "a/b/c"]
    {
        taken(Category::Mcp, pattern);
    }
}

#[test]
fn paths_are_compared_in_one_form() {
    let write = Category::FileWrite;
    refused(write, "/p/src/", "did you mean \"/p/src/**\"?");
    refused(write, "/p//src/*", "did you mean \"/p/src/*\"?");
    refused(write, "/p/../q/**", "did you mean \"/q/**\"?");
    refused(write, "/p/./x", "did you mean \"/p/x\"?");
    refused(write, "*.rs", "did you mean \"**/*.rs\"?");
    refused(write, "**.rs", "did you mean \"**/*.rs\"?");
    refused(write, "/p/*/../x", "it can match nothing");
    refused(write, "/p/{.,..}/x", "it can match nothing");
    refused(write, "/[é]", "it can match nothing");
    for pattern in
        ["/", "/*", "/**", "**", "**/x", "/p/.x", "/p/...", "/p/{..,a}/x", "/p/[.]x", "/p/.*", "/p/..?", "/é"]
    {
        taken(write, pattern);
    }
}

#[test]
fn hosts_are_no_urls() {
    let net = Category::Network;
    refused(net, "https://example.com/*", "did you mean \"example.com\"?");
    refused(net, "https://user:pw@example.com:8443/a?b", "did you mean \"example.com:8443\"?");
    refused(net, "example.com/*", "did you mean \"example.com\"?");
    refused(net, "example.com:70000", "ports are numbers up to 65535: did you mean \"example.com\"?");
    refused(net, "example.com:7000*0", "ports are numbers up to 65535");
    refused(net, "example.com:080", "ports are numbers up to 65535");
    refused(net, ".example.com", "did you mean \"**.example.com\"?");
    refused(net, "a..example.com", "the labels of a host name are never empty");
    refused(net, "10.0.0.0/8", "did you mean \"10.*.*.*\"?");
    refused(net, "[2001:DB8:0::1]:443", "did you mean \"[2001:db8::1]:443\"?");
    refused(net, "[::ffff:10.0.0.1]", "did you mean \"10.0.0.1\"?");
    refused(net, "grün.example", "xn--");
    refused(net, "[example.com]:443", "did you mean \"example.com:443\"?");
    refused(net, "example.com: 443", "did you mean");
    refused(net, "***", "did you mean \"**\"?");
    refused(net, "[*]:443", "did you mean \"**:443\"?");
    refused(net, ":443", "it names no host; * stands for every host");
    refused(net, "{a,b}.example.com", "write a separate rule for each");
    for pattern in [
        "*",
        "*:*",
        "*:443",
        "**",
        "**:443",
        "example.com",
        "Example.COM.",
        "*.example.com",
        "**.example.com:80",
        "[::1]",
        "[::1]:80",
        "[2001:db8::*]",
        "::1",
        "10.0.0.*",
        "xn--grn-ioa.example",
        "searcher",
        "my_host",
        "a:6553*",
    ] {
        taken(net, pattern);
    }
}

#[test]
fn star_in_the_place_of_a_host_is_every_host() {
    for (pattern, is_443_alone) in [("*", false), ("*:*", false), ("**", false), ("*:443", true), ("**:443", true)] {
        let pattern = Pattern::parse_to_use(Category::Network, pattern).unwrap();
        for host in ["localhost", "example.org", "a.b.example.org", "10.0.0.1", "[2001:db8::1]"] {
            let matches =
                |port: &str| pattern.matches(&Need::new(Category::Network, format!("{host}:{port}"))).is_some();
            assert!(matches("443") && matches("8080") != is_443_alone, "{pattern:?} {host}");
        }
    }
    // One that was stored when a * was one label still is.
    let stored = Pattern::parse(Category::Network, "*").unwrap();
    assert!(stored.matches(&Need::new(Category::Network, "example.org:443")).is_none());
}

#[test]
fn a_rule_is_for_one_command() {
    let shell = Category::Shell;
    refused(shell, "git status && ls", "write a separate rule for each of \"git status\" and \"ls\"");
    refused(shell, "cargo test | tail *", "write a separate rule for each of \"cargo test\" and \"tail *\"");
    refused(shell, "FOO=1 cargo *", "variables before a command are checked separately: did you mean \"cargo *\"?");
    refused(shell, "*=* cargo", "variables before a command");
    refused(shell, "for x in *", "\"for\" is shell syntax");
    refused(shell, "! grep *", "did you mean \"grep *\"?");
    refused(shell, "ls;", "did you mean \"ls\"?");
    refused(shell, "ls 'a", "a quote is not closed");
    refused(shell, "echo $(date)", "must be quoted");
    for pattern in
        ["*", "**", "ls", "FOO=1", "FOO=*", "FOO=1 *", "[[ *", "[ *", "env FOO=1 *", "make X=1", "* --version", "i*f"]
    {
        taken(shell, pattern);
    }
}

#[test]
fn patterns_that_say_something_else_than_their_author_means_are_noticed() {
    let notice = |pattern: &str, strict: bool| {
        Pattern::parse_to_use(Category::Shell, pattern)
            .unwrap_or_else(|error| panic!("{error}"))
            .otherwise_meant(strict)
    };
    for (pattern, meant) in [
        ("git push:*", "\"git push *\""),
        ("git:*", "\"git *\""),
        ("ls:*", "\"ls *\""),
        ("npm run:*", "\"npm run *\""),
        ("npm test:*", "\"npm test *\""),
        ("yarn publish:*", "\"yarn publish *\""),
        ("docker compose up:*", "\"docker compose up *\""),
        ("git push*", "\"git push *\""),
        ("git*", "\"git *\""),
        ("Bash git push *", "\"git push *\""),
        ("-rf *", "the name of a program"),
        ("\"git push\" *", "\"git push *\""),
        ("'npm run' build", "\"npm run build\""),
        ("re:git push.*", "regular expression"),
        ("^git push", "regular expression"),
        ("git push .*", "regular expression"),
    ] {
        for strict in [false, true] {
            let words = notice(pattern, strict).unwrap_or_else(|| panic!("{pattern} is not noticed"));
            assert!(words.contains(meant), "{pattern}: {words}");
        }
    }
    for (pattern, meant) in [
        ("yarn", "\"yarn *\""),
        ("rm", "\"rm *\""),
        ("git push", "\"git push *\""),
        ("git push --force", "\"git push --force *\""),
    ] {
        assert!(notice(pattern, true).is_some_and(|words| words.contains(meant)), "{pattern}");
        assert_eq!(notice(pattern, false), None, "{pattern}");
    }
    for (pattern, meant) in [
        ("git\u{a0}push *", "\"git push *\""),
        ("git push\u{2009}*", "U+2009"),
        ("git push \u{2014}force *", "\"git push --force *\""),
        ("rm \u{2013}rf *", "\"rm -rf *\""),
        ("git {push,pull} *", "\"git push *\""),
        ("git [pP]ush *", "\"git push *\""),
        ("/git push/", "regular expression"),
    ] {
        for strict in [false, true] {
            assert!(notice(pattern, strict).is_some_and(|words| words.contains(meant)), "{pattern}");
        }
    }
    for (pattern, meant) in [
        ("git push \"*\"", "\"git push *\""),
        ("*git push*", "\"git push *\""),
        ("git push *--force*", "\"git push --force *\""),
        ("*--force*", "\"* --force *\""),
        ("sudo*", "\"sudo *\""),
        ("sudo:", "\"sudo *\""),
        ("SUDO *", "\"sudo *\""),
        ("Git Push *", "\"git push *\""),
        ("!git push *", "\"git push *\""),
        ("aws * delete*", "\"aws * delete* *\""),
        ("git push origin main, git push origin master", "a rule for each"),
    ] {
        assert!(notice(pattern, true).is_some_and(|words| words.contains(meant)), "{pattern}");
        assert_eq!(notice(pattern, false), None, "{pattern}");
    }
    for pattern in [
        "pip install x[extra] *",
        "find . -name '*.o' -delete",
        "git commit -m 'a – b'",
        "git push *",
        "git *",
        "rm *",
        "**",
        "*",
        "rm -rf /",
        "npm run test:*",
        "yarn test:*",
        "pnpm build:*",
        "rake db:*",
        "scp host:* *",
        "cat src*",
        "python3*",
        "git log --format=%h:*",
        "echo 'a:*'",
        "* --version",
        "FOO=*",
    ] {
        for strict in [false, true] {
            assert_eq!(notice(pattern, strict), None, "{pattern}");
        }
    }
    refused(Category::Shell, "Bash(git push:*)", "did you mean \"git push *\"?");
    refused(Category::Shell, "run_shell_command(ls -la)", "did you mean \"ls -la\"?");
    refused(Category::Network, "WebFetch(domain:example.org)", "did you mean \"example.org\"?");
    refused(Category::Network, "domain:example.org", "did you mean \"example.org\"?");
}

#[test]
fn names_of_tools_are_known_by_their_shape() {
    let globs = |glob: &str| ToolGlobs::new(&[glob.to_owned()]).map(drop);
    for (glob, said) in [
        ("Bash", "did you mean \"bash\""),
        ("git-*", "did you mean \"git_*\""),
        ("mcp.x", "did you mean \"mcp_x\""),
        ("9*", "can match no tool"),
        ("", "can match no tool"),
        ("a/b", "can match no tool"),
    ] {
        let error = globs(glob).unwrap_err();
        assert!(error.contains(said), "{glob:?}: {error}");
    }
    for glob in ["*", "bash", "nosuch*", "{read,write}", "[a-c]*", "?", "**"] {
        globs(glob).unwrap();
    }
}

#[test]
fn suggestions_end() {
    for text in [
        "'", "\\", "a=", "=", "!", "! !", "* =", "/", "//", ":", "::", "@", "..", "../..", "mcp__", "mcp____", "[",
        "]", "a/[", "**/../..",
    ] {
        for category in Category::ALL {
            let _ = Pattern::parse_to_use(category, text);
        }
    }
}

/// A glob as people write them, and now and then a text that it is meant for.
fn glob() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-c.]{1,2}",
        Just("*".to_owned()),
        Just("**".to_owned()),
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just("?".to_owned()),
        Just("{a,b}".to_owned()),
        Just("{..,a}".to_owned()),
        Just("[a-c]".to_owned()),
        Just("[!a]".to_owned()),
        Just("\\*".to_owned()),
        Just("é".to_owned()),
        Just("remote:".to_owned()),
    ];
    (prop::bool::ANY, prop::collection::vec(piece, 0..7))
        .prop_map(|(rooted, pieces)| format!("{}{}", if rooted { "/" } else { "" }, pieces.concat()))
}

fn target(category: Category) -> BoxedStrategy<String> {
    match category {
        Category::FileRead | Category::FileWrite => {
            prop::collection::vec("[a-c.*é]{1,3}", 0..4).prop_map(|names| format!("/{}", names.join("/"))).boxed()
        }
        Category::Mcp => "(remote:)?[a-c.*é]{1,3}/[a-c./é]{1,3}".boxed(),
        Category::Agent | Category::Plugin => "[a-c./*é]{1,4}".boxed(),
        Category::Network => {
            let host = prop_oneof![
                "[a-c0-9-]{1,2}(\\.[a-c0-9-]{1,2}){0,3}",
                any::<[u16; 8]>().prop_map(|address| format!("[{}]", core::net::Ipv6Addr::from(address))),
                any::<[bool; 8]>().prop_map(|bits| format!("[{}]", core::net::Ipv6Addr::from(bits.map(u16::from)))),
            ];
            (host, prop::option::of(any::<u16>()))
                .prop_map(|(host, port)| match port {
                    Some(port) => format!("{host}:{port}"),
                    None if host.starts_with('[') => format!("{host}:80"),
                    None => host,
                })
                .boxed()
        }
        Category::Shell => prop::collection::vec("(a|b=|=|for|!|\\*| |if|x=1){1,2}", 1..4)
            .prop_map(|words| words.join("\u{1}"))
            .boxed(),
    }
}

fn pattern(category: Category) -> BoxedStrategy<String> {
    match category {
        Category::Shell => "((a|b=|=|for|!|\\*|'|if|x=1|&&|\\\\ ){1,2} ?){1,3}".boxed(),
        Category::Network => {
            "(\\*|\\*\\*|[a-c0-9-]{1,2}|\\.|\\[|\\]|:|::|/|é|[0-9]{1,5}|f){1,6}(:[0-9*]{1,5})?".boxed()
        }
        _ => glob().boxed(),
    }
}

fn need_of(category: Category, target: &str) -> Need {
    let words =
        |target: &str| target.split('\u{1}').map(|text| Word { text: text.to_owned(), literal: true }).collect();
    Need::new(category, target.replace('\u{1}', " ")).with_command(|command| command.words = Some(words(target)))
}

/// Whether a tool can ask for this.
fn is_valid(need: &Need) -> bool {
    match need.words() {
        // A variable alone is a need of its own.
        Some(words) => begins_command(words) || words.len() == 1 && words[0].text.contains('='),
        None => is_target(need.category(), &need.target),
    }
}

/// Written differently from the shapes, which are under test.
fn is_target(category: Category, target: &str) -> bool {
    match category {
        Category::FileRead | Category::FileWrite => {
            target == "/"
                || toold_proto::cut::after_first(target).split('/').all(|name| !matches!(name, "" | "." | ".."))
        }
        Category::Mcp => target.split_once('/').is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty()),
        Category::Agent | Category::Plugin => !target.is_empty(),
        Category::Network | Category::Shell => check_target(category, target).is_ok(),
    }
}

#[test]
fn targets_are_known_by_their_shape() {
    for (category, target, expected) in [
        (Category::FileRead, "/", true),
        (Category::FileRead, "/a/.b/..c/...", true),
        (Category::FileRead, "a", false),
        (Category::FileRead, "/a/", false),
        (Category::FileRead, "/a/../b", false),
        (Category::Mcp, "github/search", true),
        (Category::Mcp, "remote:build/a/b", true),
        (Category::Mcp, "search", false),
        (Category::Mcp, "/search", false),
        (Category::Network, "example.com:443", true),
        (Category::Network, "[2001:db8::1]:443", true),
        (Category::Network, "searcher", true),
        (Category::Network, "example.com:http", false),
        (Category::Network, "example.com:70000", false),
        (Category::Network, "https://example.com", false),
        (Category::Network, "a b", false),
        (Category::Plugin, "any text", true),
        (Category::Plugin, "", false),
        (Category::Shell, "ls", true),
        (Category::Shell, " ", false),
    ] {
        let checked = check_target(category, target);
        assert_eq!(checked.is_ok(), expected, "{category} {target:?}: {checked:?}");
    }
}

fn case() -> impl Strategy<Value = (Category, String, Vec<String>)> {
    prop::sample::select(&Category::ALL[..])
        .prop_flat_map(|category| (Just(category), pattern(category), prop::collection::vec(target(category), 24)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_pattern_that_matches_a_need_is_never_refused((category, pattern, targets) in case()) {
        let Ok(read) = Pattern::parse(category, &pattern) else { return Ok(()) };
        // A lone * would match `localhost`, and is refused since it is never meant so.
        let host = pattern.trim().split(':').next().unwrap_or_default();
        let host = host.trim_end_matches('.').trim_matches(['[', ']']);
        let is_lone_star = !host.is_empty() && host.chars().all(|c| c == '*');
        prop_assume!(category != Category::Network || !is_lone_star);
        let needs = targets.iter().map(|target| need_of(category, target)).filter(is_valid);
        let hit = needs.into_iter().find(|need| read.matches(need).is_some());
        if let (Some(need), Err(error)) = (hit, read.check(category)) {
            prop_assert!(false, "{} matches {:?}, and yet: {error}", category, need.target);
        }
    }

    #[test]
    fn pattern_meant_for_a_need_is_never_rejected((category, _, targets) in case()) {
        for need in targets.iter().map(|target| need_of(category, target)).filter(is_valid) {
            for suggestion in crate::policy::suggest::suggestions(&need, None) {
                if let Err(error) = Pattern::parse_to_use(category, &suggestion.pattern) {
                    prop_assert!(false, "made for {:?}: {error}", need.target);
                }
            }
        }
    }

    #[test]
    fn any_text_can_be_checked(category in prop::sample::select(&Category::ALL[..]), text in "\\PC{0,30}") {
        let _ = Pattern::parse_to_use(category, &text);
    }

    #[test]
    fn a_glob_over_tools_that_matches_one_is_never_refused(glob in glob(), name in "[a-c][a-c0-9_]{0,3}") {
        let (Ok(compiled), Ok(name)) = (globset::Glob::new(&glob), ToolName::parse(&name)) else { return Ok(()) };
        if compiled.compile_matcher().is_match(name.as_str()) {
            prop_assert!(ToolGlobs::new(std::slice::from_ref(&glob)).is_ok(), "{glob} matches {name}");
        }
    }
}
