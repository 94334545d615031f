//! `list` and `glob`.

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::json;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::house::House;

fn tree() -> House {
    let house = House::strict();
    std::fs::create_dir(house.root.join(".git")).unwrap();
    house.write(".gitignore", "target/\n*.log\n");
    house.write("Cargo.toml", "x".repeat(1500));
    house.write("src/main.rs", "fn main() {}");
    house.write("src/deep/er/still/leaf.rs", "");
    house.write("src2/other.rs", "");
    house.write("target/debug/out.rs", "");
    house.write("run.log", "");
    house.write(".github/ci.yml", "a");
    symlink("src", house.root.join("link")).unwrap();
    house
}

#[tokio::test]
async fn a_tree_is_shown_with_sizes_and_counts() {
    let house = tree();
    let text = house.ok("list", json!({"depth": 2})).await;
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
[7 files in 6 folders; 3 entries not shown: raise depth]";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn upper_levels_come_first_when_there_is_too_much() {
    let house = House::strict();
    for n in 0..20 {
        house.write(&format!("a/f{n:02}"), "");
    }
    house.write("b/file", "");
    let text = house.ok("list", json!({"max_results": 3})).await;
    assert_eq!(
        text,
        "./\n  a/  (20 files, not all shown)\n    f00  0 B\n  b/  (1 file, not all shown)\n\
         [21 files in 2 folders; 20 entries not shown: raise max_results or list a folder of it]"
    );
    assert_eq!(house.bad("list", json!({"path": "b/file"})).await, "b/file is no folder");
}

#[tokio::test]
async fn globs_mean_what_they_mean_to_git() {
    let house = tree();
    for (pattern, expected) in [
        ("*.rs", vec!["src/deep/er/still/leaf.rs", "src/main.rs", "src2/other.rs"]),
        ("src/**", vec!["src/deep/er/still/leaf.rs", "src/main.rs"]),
        ("**/deep/**/*.rs", vec!["src/deep/er/still/leaf.rs"]),
        ("src/*.rs", vec!["src/main.rs"]),
        ("*.{toml,yml}", vec!["Cargo.toml"]),
        ("/*.toml", vec!["Cargo.toml"]),
        ("**/*.log", vec!["[no files match]"]),
        (".github/**", vec![".github/ci.yml"]),
        ("-e", vec!["[no files match]"]),
    ] {
        let text = house.ok("glob", json!({"pattern": pattern})).await;
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort();
        assert_eq!(lines, expected, "{pattern}");
    }
    for pattern in ["./src/*.rs".to_owned(), format!("{}/src/*.rs", house.root.display())] {
        assert_eq!(house.ok("glob", json!({"pattern": pattern})).await, "src/main.rs");
    }
    let text = house.ok("glob", json!({"pattern": "*.rs", "include_ignored": true})).await;
    assert!(text.contains("target/debug/out.rs"), "{text}");
    let text = house.ok("glob", json!({"pattern": "*.yml", "include_ignored": true})).await;
    assert_eq!(text, ".github/ci.yml");
    let text = house.ok("glob", json!({"pattern": "*.rs", "path": "src"})).await;
    assert!(text.contains("src/main.rs") && !text.contains("src2"), "{text}");
    assert!(house.bad("glob", json!({"pattern": "{a"})).await.starts_with("can't use the glob"));
}

#[tokio::test]
async fn the_newest_come_first_and_are_cut_after_ordering() {
    let house = House::strict();
    for n in 0..50u64 {
        let path = house.write(&format!("f{:02}", (n * 7) % 50), "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + n);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let text = house.ok("glob", json!({"pattern": "f*", "max_results": 2})).await;
    assert_eq!(text, "f43\nf36\n[the newest 2 of 50 files: narrow the pattern, or raise max_results]");
}

#[tokio::test]
async fn what_may_not_be_read_is_neither_named_nor_counted() {
    let house = House::new();
    house.write(".toolignore", "private/\n");
    house.write("private/a", "");
    house.write("secret.pem", "");
    house.write("denied/a", "");
    house.write("ok", "");
    house.rule(Category::FileRead, &format!("{}/denied/**", house.root.display()), Verdict::Deny);
    let text = house.ok("glob", json!({"pattern": "[a-z]*"})).await;
    assert_eq!(text, "ok");
    let text = house.ok("list", json!({})).await;
    assert!(!text.contains("private") && !text.contains("pem") && !text.contains("    a"), "{text}");
    assert!(text.ends_with("[2 files in 0 folders]"), "{text}");
    assert!(house.bad("list", json!({"path": "private"})).await.starts_with("not allowed"));
    assert!(house.bad("glob", json!({"path": "private", "pattern": "*"})).await.starts_with("not allowed"));
}
