//! `list` and `glob`.

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::json;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::builtin_test::BuiltinTest;

fn tree() -> BuiltinTest {
    let test = BuiltinTest::strict();
    std::fs::create_dir(test.root.join(".git")).unwrap();
    test.write(".gitignore", "target/\n*.log\n");
    test.write("Cargo.toml", "x".repeat(1500));
    test.write("src/main.rs", "fn main() {}");
    test.write("src/deep/er/still/leaf.rs", "");
    test.write("src2/other.rs", "");
    test.write("target/debug/out.rs", "");
    test.write("run.log", "");
    test.write(".github/ci.yml", "a");
    symlink("src", test.root.join("link")).unwrap();
    test
}

#[tokio::test]
async fn a_tree_is_shown_with_sizes_and_counts() {
    let test = tree();
    let text = test.ok("list", json!({"depth": 2})).await;
    let expected = "./
  .git/  (ignored)
  .github/  (1 file)
    ci.yml  1 B
  .gitignore  14 B
  Cargo.toml  1.5 KB
  link -> src
  src/  (2 files)
    deep/  (1 file, not all shown)
    main.rs  12 B
  src2/  (1 file)
    other.rs  0 B
  target/  (ignored)
[7 files in 6 folders; 1 ignored file; 3 entries not shown: raise depth]";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn upper_levels_come_first_when_there_is_too_much() {
    let test = BuiltinTest::strict();
    for n in 0..20 {
        test.write(&format!("a/f{n:02}"), "");
    }
    test.write("b/file", "");
    let text = test.ok("list", json!({"max_results": 3})).await;
    assert_eq!(
        text,
        "./\n  a/  (20 files, not all shown)\n    f00  0 B\n  b/  (1 file, not all shown)\n\
         [21 files in 2 folders; 20 entries not shown: raise max_results or list a folder of it]"
    );
    assert_eq!(test.bad("list", json!({"path": "b/file"})).await, "b/file is a file, and not a folder: use `read`");
}

const NONE: &str = "[no files match, of 4 files; left out: .github/ (hidden), .gitignore (hidden), link (a link), run.log (ignored), target/ (ignored); include_ignored=true takes in those that are ignored or hidden; to look into others, name one in `path`; files that need an approval are not searched]";

#[tokio::test]
async fn globs_match_as_in_git() {
    let test = tree();
    for (pattern, expected) in [
        ("*.rs", vec!["src/deep/er/still/leaf.rs", "src/main.rs", "src2/other.rs"]),
        ("src/**", vec!["src/deep/er/still/leaf.rs", "src/main.rs"]),
        ("**/deep/**/*.rs", vec!["src/deep/er/still/leaf.rs"]),
        ("src/*.rs", vec!["src/main.rs"]),
        ("*.{toml,yml}", vec!["Cargo.toml"]),
        ("/*.toml", vec!["Cargo.toml"]),
        ("**/*.log", vec![NONE]),
        (".github/**", vec![".github/ci.yml"]),
        ("-e", vec![NONE]),
    ] {
        let text = test.ok("glob", json!({"pattern": pattern})).await;
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort();
        assert_eq!(lines, expected, "{pattern}");
    }
    for pattern in ["./src/*.rs".to_owned(), format!("{}/src/*.rs", test.root.display())] {
        assert_eq!(test.ok("glob", json!({"pattern": pattern})).await, "src/main.rs");
    }
    let text = test.ok("glob", json!({"pattern": "*.rs", "include_ignored": true})).await;
    assert!(text.contains("target/debug/out.rs"), "{text}");
    let text = test.ok("glob", json!({"pattern": "*.yml", "include_ignored": true})).await;
    assert_eq!(text, ".github/ci.yml");
    let text = test.ok("glob", json!({"pattern": "*.rs", "path": "src"})).await;
    assert!(text.contains("src/main.rs") && !text.contains("src2"), "{text}");
    assert!(test.bad("glob", json!({"pattern": "{a"})).await.starts_with("can't use the glob"));
}

#[tokio::test]
async fn links_are_found_by_their_names_and_linked_folders_are_named_when_nothing_is_found() {
    for many in [0, 500] {
        let test = BuiltinTest::strict();
        let outside = test.root.parent().unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret.md"), "needle").unwrap();
        test.write("AGENTS.md", "other\n");
        test.write("real/a.rs", "needle\n");
        test.write(".git/config", "[core]\n");
        // In a larger tree, several threads search.
        (0..many).for_each(|n| drop(test.write(&format!("many/{n}"), "")));
        std::fs::create_dir(test.root.join("pk")).unwrap();
        for (target, name) in [
            ("AGENTS.md", "CLAUDE.md"),
            ("../real", "pk/linked"),
            ("nowhere.md", "dangling.md"),
            ("ring.md", "ring.md"),
            ("../outside/secret.md", "secret.md"),
            ("../outside", "out"),
        ] {
            symlink(target, test.root.join(name)).unwrap();
        }
        let links = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("{name} (a link)")).collect();
            format!(
                "; left out: {}; to look into one, name it in `path`; files that need an approval are not searched]",
                names.join(", ")
            )
        };
        let all = links(&["dangling.md", "out", "pk/linked", "ring.md", "secret.md"]);
        for (pattern, path, expected) in [
            ("CLAUDE.md", ".", "CLAUDE.md".to_owned()),
            ("**/CLAUDE.*", ".", "CLAUDE.md".to_owned()),
            ("*.md", ".", "AGENTS.md CLAUDE.md".to_owned()),
            ("pk/linked/a.rs", ".", "pk/linked/a.rs".to_owned()),
            ("out/secret.md", ".", format!("[no files match, of {} files{all}", many + 2)),
            ("secret.*", ".", format!("[no files match, of {} files{all}", many + 2)),
            ("*.rs", "pk", format!("[no files match, of 0 files{}", links(&["pk/linked"]))),
            ("*.rs", "pk/linked", "real/a.rs".to_owned()),
            ("!*.rs", "pk", format!("[no files match, of 0 files{}", links(&["pk/linked"]))),
        ] {
            let found = test.ok("glob", json!({"pattern": pattern, "path": path})).await;
            let mut lines: Vec<&str> = found.lines().collect();
            lines.sort();
            assert_eq!(lines.join(" "), expected, "{pattern} in {path}");
        }
        for (arguments, none) in [
            (json!({"pattern": "needle", "path": "pk"}), ""),
            (json!({"pattern": "needle", "path": "pk", "include": "*.rs"}), "; no file fits `include`"),
            (json!({"pattern": "needle", "path": "pk", "type": "rust"}), "; no file is of this `type`"),
            (
                json!({"pattern": "needle", "path": "pk", "type": "rust", "include": "*"}),
                "; no file fits `include` and `type`",
            ),
        ] {
            let expected = format!("[no matches in 0 files{none}{}", links(&["pk/linked"]));
            assert_eq!(test.ok("grep", arguments).await, expected);
        }
        assert_eq!(test.ok("grep", json!({"pattern": "needle", "path": "pk/linked"})).await, "real/a.rs:1:needle");
        let left = "; left out: .git/ (Git's own)";
        for (tool, arguments) in [
            ("grep", json!({"pattern": "core", "include_ignored": true})),
            ("glob", json!({"pattern": ".git/**"})),
            ("glob", json!({"pattern": "conf*", "include_ignored": true})),
        ] {
            let text = test.ok(tool, arguments).await;
            assert!(text.contains(left), "{text}");
        }
        assert_eq!(test.ok("grep", json!({"pattern": "core", "path": ".git"})).await, ".git/config:1:[core]");
        assert_eq!(test.ok("glob", json!({"pattern": "conf*", "path": ".git"})).await, ".git/config");
        assert_eq!(test.ok("glob", json!({"pattern": ".git/config"})).await, ".git/config");
    }
}

#[tokio::test]
async fn names_are_taken_back_as_tools_print_them() {
    let test = BuiltinTest::new();
    let names = ["p,q.txt", "deep/a,b", "deep/line\nend", "deep/!x", "#n#", "back\\slash\t"];
    for name in names {
        test.write(name, name);
    }
    for pattern in ["p,q.txt", "a,b", "deep/*,back*", "p*,q.t?t"] {
        assert_ne!(test.ok("glob", json!({"pattern": pattern})).await.lines().count(), 0, "{pattern}");
    }
    for (pattern, found) in [("a,b", "deep/a,b"), ("#n#", "#n#"), ("#*", "#n#")] {
        assert_eq!(test.ok("glob", json!({"pattern": pattern})).await, found);
    }
    let printed = test.ok("glob", json!({"pattern": "*"})).await;
    assert_eq!(printed.lines().count(), names.len(), "{printed}");
    for name in printed.lines() {
        let text = test.ok("read", json!({"path": name})).await;
        assert!(text.starts_with("1: "), "{name}: {text}");
        assert_eq!(test.ok("grep", json!({"pattern": ".", "path": name, "output_mode": "files"})).await, name);
        assert_eq!(test.ok("glob", json!({"pattern": name})).await, name);
    }
    // The name of a file counts before what it may stand for.
    let literal = r#""deep/line\nend""#;
    test.write(literal, "itself");
    assert_eq!(test.read(literal).await, "1: itself");
    test.ok("edit", json!({"path": literal, "old": "itself", "new": "other"})).await;
    assert_eq!(test.content("deep/line\nend"), "deep/line\nend");
}

#[tokio::test]
async fn the_newest_come_first_and_are_cut_after_ordering() {
    let test = BuiltinTest::strict();
    for n in 0..50u64 {
        let path = test.write(&format!("f{:02}", (n * 7) % 50), "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + n);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let text = test.ok("glob", json!({"pattern": "f*", "max_results": 2})).await;
    assert_eq!(text, "f43\nf36\n[the newest 2 of 50 files: narrow the pattern, or raise max_results]");
}

#[tokio::test]
async fn unreadable_files_are_neither_named_nor_counted() {
    let test = BuiltinTest::new();
    test.write(".toolignore", "private/\n");
    test.write("private/a", "");
    test.write("secret.pem", "");
    test.write("denied/a", "");
    test.write("ok", "");
    test.rule(Category::FileRead, &format!("{}/denied/**", test.root.display()), Verdict::Deny);
    let text = test.ok("glob", json!({"pattern": "[a-z]*"})).await;
    assert_eq!(text, "ok");
    let text = test.ok("list", json!({})).await;
    assert!(!text.contains("private") && !text.contains("pem") && !text.contains("    a"), "{text}");
    assert!(text.ends_with("[2 files in 0 folders]"), "{text}");
    assert!(test.bad("list", json!({"path": "private"})).await.starts_with("not allowed"));
    assert!(test.bad("glob", json!({"path": "private", "pattern": "*"})).await.starts_with("not allowed"));
}

#[tokio::test]
async fn names_that_are_no_line_of_text_are_shown_with_escapes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let test = BuiltinTest::new();
    test.write("odd/plain", "needle");
    test.write("odd/new\nline", "needle");
    std::fs::write(test.root.join("odd").join(OsStr::from_bytes(b"bad\xff")), "needle").unwrap();
    std::fs::create_dir(test.root.join("odd").join(OsStr::from_bytes(b"folder\xff"))).unwrap();
    test.write(".toolignore", "secret*\n");
    std::fs::write(test.root.join("odd").join(OsStr::from_bytes(b"secret\xff")), "needle").unwrap();
    for path in ["odd", "."] {
        let listed = test.ok("list", json!({"path": path})).await;
        for name in ["\"bad\\377\"  (its name is not UTF-8", "\"new\\nline\"  6 B", "\"folder\\377\""] {
            assert!(listed.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {listed}");
        }
        assert!(!listed.contains("secret"), "{listed}");
    }
    for many in [0, 500] {
        // In a larger tree, several threads search.
        (0..many).for_each(|n| drop(test.write(&format!("many/{n}"), "")));
        let found = test.ok("glob", json!({"pattern": "odd/*"})).await;
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort();
        let left = "[1 place could not be read: ";
        assert!(lines.iter().any(|line| line.starts_with(left) && line.contains("not UTF-8")), "{found}");
        lines.retain(|line| !line.starts_with(left));
        assert_eq!(lines, ["\"odd/bad\\377\"", "\"odd/new\\nline\"", "odd/plain"]);
        let found = test.ok("grep", json!({"pattern": "needle"})).await;
        assert!(found.contains("\"odd/new\\nline\":1:needle\n"), "{found}");
        assert!(found.contains("[2 places could not be searched: ") && !found.contains("secret"), "{found}");
    }
}

#[tokio::test]
async fn what_can_find_nothing_says_so() {
    let test = BuiltinTest::strict();
    test.write("a.rs", "needle\n");
    assert!(std::process::Command::new("mkfifo").arg(test.root.join("pipe")).status().unwrap().success());
    symlink("nowhere", test.root.join("dangling")).unwrap();
    for (tool, arguments, expected) in [
        ("list", json!({"path": "pipe"}), "pipe is a named pipe, and not a folder"),
        ("glob", json!({"path": "pipe", "pattern": "*"}), "pipe is a named pipe, and not a folder to look in"),
        ("grep", json!({"path": "pipe", "pattern": "x"}), "pipe is a named pipe, and neither a file nor a folder"),
        ("glob", json!({"pattern": "../*"}), "a glob with `..` matches nothing: name the folder in `path`"),
        ("grep", json!({"pattern": "x", "include": "a/../*.rs"}), "a glob with `..` matches nothing"),
        ("read", json!({"path": "dangling"}), "dangling is a link to nowhere, which does not exist"),
        ("list", json!({"path": "dangling"}), "dangling is a link to nowhere, which does not exist"),
        ("glob", json!({"path": "dangling", "pattern": "*"}), "dangling is a link to nowhere, which does not exist"),
        ("grep", json!({"path": "dangling", "pattern": "x"}), "dangling is a link to nowhere, which does not exist"),
        (
            "read",
            json!({"path": "file:///etc/none"}),
            "file:///etc/none is a URL: give the path alone, such as /etc/none",
        ),
        ("write", json!({"path": "file:///tmp/x", "content": "x"}), "file:///tmp/x is a URL: give the path alone"),
        ("list", json!({"path": "file:///tmp"}), "file:///tmp is a URL: give the path alone"),
        ("read", json!({"path": "a.rs", "offset": 9}), "a.rs has 1 line: there is no line 9"),
        (
            "read",
            json!({"path": "a.rs "}),
            "there is no file a.rs : did you mean a.rs (its name has no space at its end)?",
        ),
        (
            "edit",
            json!({"path": "to-come.txt", "old": "a", "new": "b"}),
            "there is no file to-come.txt: find it with `glob`, or make it with `write`",
        ),
    ] {
        let text = test.bad(tool, arguments).await;
        assert!(text.starts_with(expected), "{text}");
    }
    let text = test.ok("glob", json!({"pattern": "/etc/*.conf"})).await;
    assert!(
        text.starts_with("[no files match, of 1 file; a leading / stands for the folder that is searched"),
        "{text}"
    );
    test.write("src/deep/a", "");
    for (folder, glob) in [("src", "src/**"), ("./src/deep/", "./src/deep/**")] {
        let text = test.ok("glob", json!({"pattern": folder})).await;
        assert!(text.contains(&format!("; for the files in this folder give {glob};")), "{text}");
        assert_eq!(test.ok("glob", json!({"pattern": glob})).await, "src/deep/a");
    }
    let text = test.ok("glob", json!({"pattern": "src/*/"})).await;
    assert!(text.contains("; a glob that ends with / fits no file: `list` shows folders"), "{text}");
    let text = test.ok("glob", json!({"pattern": "~/*.rs"})).await;
    assert!(text.contains("; ~ stands for no folder here: name yours in `path`"), "{text}");
    // A file with the name of a glob hides no others.
    test.write("*.rs", "");
    assert_eq!(test.ok("grep", json!({"pattern": "needle", "include": "*.rs"})).await, "a.rs:1:needle");
}
