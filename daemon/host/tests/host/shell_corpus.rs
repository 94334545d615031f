//! Checks the needs of command lines, one line of `shell_corpus.txt` after another.

use std::path::Path;

use toold_engine::need::Need;
use toold_engine::policy::targets::begins_command;
use toold_host::environment::Environment;
use toold_host::shell_grammar::Surroundings;
use toold_proto::tool::Category;

fn needs(line: &str, cwd: &Path) -> Vec<Need> {
    let environment = Environment::default().with([("HOME", "/nowhere")]);
    toold_host::shell_grammar::needs(
        line,
        &mut Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut |_| true },
    )
}

/// `LINE => NEED ∥ NEED`; `⏎` and `⇥` stand for a newline and a tab. A need is the words of a command
/// with those that are not literal in `‹›`, behind `?!` when it is unsure what they do, `? text` for unknown effects, `> path` and `< path` for
/// files, `@ host:port` for the network.
fn shown(need: &Need) -> String {
    let target = need.target.replace('\n', "⏎").replace('\t', "⇥");
    match (need.category(), need.words()) {
        (Category::Shell, None) => format!("? {target}"),
        (Category::Shell, Some(words)) => {
            let words = words.iter().map(|word| match word.literal {
                true if word.text.is_empty() || word.text.contains(char::is_whitespace) => format!("[{}]", word.text),
                true => word.text.clone(),
                false => format!("‹{}›", word.text),
            });
            let words = words.collect::<Vec<_>>().join(" ").replace('\n', "⏎").replace('\t', "⇥");
            if need.unsure().is_some() { format!("?! {words}") } else { words }
        }
        (Category::FileRead, _) => format!("< {target}"),
        (Category::FileWrite, _) => format!("> {target}"),
        (Category::Network, _) => format!("@ {target}"),
        (other, _) => format!("{other} {target}"),
    }
}

#[test]
fn every_line_has_the_expected_needs() {
    let corpus = include_str!("shell_corpus.txt");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in corpus.lines().filter(|line| !line.is_empty() && !line.starts_with("## ")) {
        let (line, expected) = entry.split_once(" => ").unwrap_or((entry, ""));
        let source = line.replace('⏎', "\n").replace('⇥', "\t");
        let got: Vec<String> = needs(&source, Path::new("/nowhere/work")).iter().map(shown).collect();
        let got = got.join(" ∥ ");
        count += 1;
        if got != expected.trim() {
            wrong.push(format!("{line} => {got}"));
        }
    }
    assert!(count >= 300, "only {count} lines");
    assert!(wrong.is_empty(), "{} lines of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn redirects_are_judged_where_links_lead() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("work")).unwrap();
    std::fs::create_dir(root.join("out")).unwrap();
    std::os::unix::fs::symlink("../out", root.join("work/link")).unwrap();
    std::os::unix::fs::symlink("../out/new", root.join("work/dangling")).unwrap();
    std::fs::write(root.join("work/.toolignore"), "secret*\n").unwrap();
    let target = |line: &str| {
        let found = needs(line, &root.join("work"));
        let file = found.into_iter().find(|need| need.category() == Category::FileWrite).unwrap();
        (file.target.strip_prefix(root.to_str().unwrap()).unwrap().to_owned(), file.forbidden.is_some())
    };
    assert_eq!(target("echo a > link/x"), ("/out/x".into(), false));
    assert_eq!(target("echo a > link/../x"), ("/x".into(), false));
    assert_eq!(target("echo a > dangling"), ("/out/new".into(), false));
    assert_eq!(target("echo a > new/../y"), ("/work/y".into(), false));
    assert_eq!(target("echo a > secret.txt"), ("/work/secret.txt".into(), true));
}

/// Patterns that begin like this are rejected because they match nothing. That is true only while no command is judged
/// by such words.
#[test]
fn no_command_begins_with_a_variable_or_with_grammar() {
    for line in
        ["FOO=1 ls", "'FOO=1' ls", "F\\OO=1 ls", "'if' x", "\\! ls", "time 'for' x", "env 'if' x", "command 'A=1' ls"]
    {
        for need in needs(line, Path::new("/")) {
            let Some(words) = need.words() else { continue };
            let is_variable = words.len() == 1 && words[0].text.contains('=');
            assert!(is_variable || begins_command(words), "{line:?}: {need:?}");
        }
    }
}

#[test]
fn a_socket_is_judged_as_the_host_that_a_request_names() {
    for (line, target) in [
        ("cat < /dev/tcp/Example.COM/80", "example.com:80"),
        ("cat < /dev/tcp/::1/80", "[::1]:80"),
        ("cat < /dev/tcp/::ffff:10.0.0.1/80", "10.0.0.1:80"),
        ("cat < /dev/udp/0x7f.1/53", "127.0.0.1:53"),
    ] {
        let found = needs(line, Path::new("/"));
        let need = found.iter().find(|need| need.category() == Category::Network).unwrap();
        assert_eq!((need.target.as_str(), &need.forbidden), (target, &None), "{line}");
    }
    for line in ["cat < /dev/tcp/a.b/http", "cat < /dev/tcp/a.b/70000", "cat < /dev/tcp/a.b", "cat < /dev/tcp/a@b/80"] {
        let found = needs(line, Path::new("/"));
        let need = found.iter().find(|need| need.category() == Category::Network).unwrap();
        assert!(need.forbidden.is_some(), "{line}: {need:?}");
    }
}
