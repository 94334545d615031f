//! What command lines need, one line of `shell_corpus.txt` after another.

use std::path::Path;

use toold_engine::need::Need;
use toold_host::shell_grammar::needs;
use toold_proto::tool::Category;

/// `LINE => NEED ∥ NEED`; `⏎` and `⇥` stand for a newline and a tab. A need is the words of a command
/// with those that are not literal in `‹›`, `? text` for what cannot be told, `> path` and `< path` for
/// files, `@ host:port` for the network.
fn shown(need: &Need) -> String {
    let target = need.target.replace('\n', "⏎").replace('\t', "⇥");
    match (need.category, &need.words) {
        (Category::Shell, None) => format!("? {target}"),
        (Category::Shell, Some(words)) => {
            let words = words.iter().map(|word| match word.literal {
                true if word.text.is_empty() || word.text.contains(char::is_whitespace) => format!("[{}]", word.text),
                true => word.text.clone(),
                false => format!("‹{}›", word.text),
            });
            words.collect::<Vec<_>>().join(" ").replace('\n', "⏎").replace('\t', "⇥")
        }
        (Category::FileRead, _) => format!("< {target}"),
        (Category::FileWrite, _) => format!("> {target}"),
        (Category::Network, _) => format!("@ {target}"),
        (other, _) => format!("{other} {target}"),
    }
}

#[test]
fn every_line_needs_what_it_does() {
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
        let file = found.into_iter().find(|need| need.category == Category::FileWrite).unwrap();
        (file.target.strip_prefix(root.to_str().unwrap()).unwrap().to_owned(), file.forbidden.is_some())
    };
    assert_eq!(target("echo a > link/x"), ("/out/x".into(), false));
    assert_eq!(target("echo a > link/../x"), ("/x".into(), false));
    assert_eq!(target("echo a > dangling"), ("/out/new".into(), false));
    assert_eq!(target("echo a > new/../y"), ("/work/y".into(), false));
    assert_eq!(target("echo a > secret.txt"), ("/work/secret.txt".into(), true));
}
