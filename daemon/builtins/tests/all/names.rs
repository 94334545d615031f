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

const NONE: &str = "[no files match, of 4 files; left out: .github/ (hidden), .gitignore (hidden), run.log (ignored), target/ (ignored); include_ignored=true takes them in]";

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
