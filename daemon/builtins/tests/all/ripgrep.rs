//! Compares `grep` and `glob` with the `rg` program, with the same questions on the same tree.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use toold_engine::Settings;

use crate::builtin_test::BuiltinTest;

const QUERIES: u64 = 200;

/// A small deterministic random generator, so that a failing test can be repeated.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

const WORDS: [&str; 16] = [
    "alpha",
    "Beta",
    "gamma",
    "ALPHA",
    "naïve",
    "日本",
    "foo_bar",
    "foo.bar",
    "x = 1;",
    "fn main()",
    "  indent",
    "tab\t",
    "(paren",
    "[x]",
    "\u{1f600}",
    "ΣΑΣ",
];

fn test() -> BuiltinTest {
    let test = BuiltinTest::strict();
    test.engine.settings.store(Arc::new(Settings { max_result_text: 64 << 20, ..Settings::default() }));
    let mut random = TestRandom(7);
    std::fs::create_dir(test.root.join(".git")).unwrap();
    test.write(".gitignore", "ignored/\n*.tmp\n!keep.tmp\n");
    test.write("sub/.ignore", "not-here*\n");
    test.write("sub/.rgignore", "!not-here.txt\nREADME.md\n");
    test.write("src/.rgignore", "!d.tmp\n*.js\n");
    let folders = ["", "src/", "src/deep/er/", "sub/", "ignored/", ".hidden/", "src2/", "with space/", "ünï/"];
    let names = ["a.rs", "b.py", "c.md", "d.tmp", "keep.tmp", "not-here.txt", "e", ".dot", "f.js", "README.md"];
    for folder in folders {
        for name in names {
            let mut text = String::new();
            for _ in 0..random.below(40) {
                for _ in 0..random.below(5) {
                    text.push_str(WORDS[random.below(WORDS.len())]);
                    text.push(' ');
                }
                text.push_str(if random.one_in(9) { "\r\n" } else { "\n" });
            }
            if random.one_in(4) {
                text.push_str("alpha without an end");
            }
            let mut bytes = text.into_bytes();
            if random.one_in(12) {
                // Not so many that the text is in another encoding, which `rg` would not read.
                bytes.extend_from_slice(b"\xff\xfe invalid alpha \xc3\xbc\xc3\xbc\n");
            }
            if random.one_in(12) {
                let at = random.below(bytes.len() + 1);
                bytes.insert(at, 0);
            }
            test.write(&format!("{folder}{name}"), bytes);
        }
    }
    let utf16: Vec<u8> = "\u{feff}alpha\nBeta\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    test.write("utf16.txt", utf16);
    test.write("bom.txt", "\u{feff}alpha\n");
    test.write("empty", "");
    symlink("src", test.root.join("linked")).unwrap();
    symlink("a.rs", test.root.join("linked.rs")).unwrap();
    symlink("nowhere", test.root.join("dangling")).unwrap();
    test
}

fn rg(test: &BuiltinTest, arguments: &[String]) -> Vec<String> {
    let output = Command::new("rg")
        // Decoded: a pattern matches U+FFFD where bytes are not valid, as in what `read` shows.
        .args(["--no-config", "--color=never", "--sort=path", "--crlf", "--encoding=utf-8"])
        .args(arguments)
        .current_dir(&test.root)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("this test compares with ripgrep: install the program `rg`, such as by `apt-get install ripgrep`");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Messages of `rg` for people, not matches.
    let said =
        |line: &&str| !line.contains("WARNING: stopped searching binary file") && !line.starts_with("Binary file");
    text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line)).filter(said).map(str::to_owned).collect()
}

/// A question, in the form of the tool and of `rg`.
fn question(random: &mut TestRandom) -> (Value, Vec<String>) {
    let patterns = [
        "alpha",
        "Beta|gamma",
        r"\bfoo",
        r"foo.bar",
        r"^\s+\w",
        r"\w+$",
        "^$",
        "[A-Z]+",
        r"\d",
        "naïve",
        r"\p{Greek}",
        "日",
        "(?i)sas",
        "e",
        ".",
        r"alpha\s",
        r"\(",
        "$",
        "x = 1;",
        "nothing like this",
        r"a{2}|l{1,2}",
        r"\S+ \S+ \S+",
    ];
    let fixed = ["foo.bar", "(paren", "[x]", "fn main()", "\u{1f600}", "."];
    let mut arguments = json!({"max_results": 10_000});
    let mut flags = vec!["--with-filename".to_owned(), "--no-heading".to_owned()];
    let pattern = if random.one_in(4) {
        arguments["fixed"] = json!(true);
        flags.push("--fixed-strings".to_owned());
        random.pick(&fixed)
    } else {
        random.pick(&patterns)
    };
    let mut pattern = pattern.to_owned();
    if random.one_in(3) {
        arguments["ignore_case"] = json!(true);
        flags.push("--ignore-case".to_owned());
    }
    if random.one_in(5) {
        arguments["multiline"] = json!(true);
        flags.push("--multiline".to_owned());
        if arguments["fixed"].is_null() && random.one_in(2) {
            // `\n` alone stands for `\r\n` too in the tool.
            pattern =
                random.pick(&[r"alpha.*\r?\n.*a", r"\r?\n\r?\n", r"a\s+b", r"(?s)alpha[^\r]{0,30}gamma"]).to_owned();
        }
    }
    match random.below(4) {
        0 => {
            arguments["output_mode"] = json!("files");
            flags.push("--files-with-matches".to_owned());
        }
        1 => {
            arguments["output_mode"] = json!("count");
            flags.push("--count".to_owned());
        }
        _ => {
            flags.push("--line-number".to_owned());
            // Not both: versions of `rg` differ in which one wins.
            let sides =
                if random.one_in(2) { vec![("context", "-C")] } else { vec![("before", "-B"), ("after", "-A")] };
            for (name, flag) in sides {
                if random.one_in(2) {
                    let lines = random.below(4);
                    arguments[name] = json!(lines);
                    flags.push(format!("{flag}{lines}"));
                }
            }
        }
    }
    if random.one_in(4) {
        let glob =
            random.pick(&["*.rs", "src/**", "**/*.md", "!*.py", "*.{js,md}", "/a.rs", "src2/*", "*e*", "keep.*"]);
        arguments["include"] = json!(glob);
        flags.push(format!("--glob={glob}"));
    }
    if random.one_in(6) {
        let file_type = random.pick(&["rust", "py", "md", "js"]);
        arguments["type"] = json!(file_type);
        flags.push(format!("--type={file_type}"));
    }
    arguments["pattern"] = json!(pattern);
    flags.extend(["-e".to_owned(), pattern]);
    if random.one_in(4) {
        let path = random.pick(&["src", "sub", "with space", "ünï", "src/deep"]);
        arguments["path"] = json!(path);
        flags.extend(["--".to_owned(), path.to_owned()]);
    }
    (arguments, flags)
}

/// Whether a line of the modes `files` and `count` is about a file with a NUL byte.
fn is_binary(test: &BuiltinTest, line: &str) -> bool {
    let path = line.rsplit_once(':').map_or(line, |(path, _)| path);
    path != "utf16.txt" && std::fs::read(test.root.join(path)).unwrap().contains(&0)
}

#[tokio::test]
async fn grep_finds_what_ripgrep_finds() {
    let test = test();
    let mut random = TestRandom(42);
    let mut with_matches = 0;
    for number in 0..QUERIES {
        let (arguments, flags) = question(&mut random);
        let mut expected = rg(&test, &flags);
        let text = test.ok("grep", arguments.clone()).await;
        let is_note = |line: &&str| line.starts_with("[no matches") || line.starts_with("[binary, and searched only");
        let mut found: Vec<&str> = text.lines().filter(|line| !is_note(line)).collect();
        if ["files", "count"].iter().any(|mode| arguments["output_mode"] == **mode) {
            // `rg` forgets the matches before a NUL byte here, and shows them otherwise.
            expected.retain(|line| !is_binary(&test, line));
            found.retain(|line| !is_binary(&test, line));
        }
        let first = expected.iter().map(String::as_str).zip(&found).find(|(expected, found)| expected != *found);
        assert_eq!(first, None, "question {number}: {arguments}\nrg {flags:?}");
        assert_eq!(
            expected.len(),
            found.len(),
            "question {number}: {arguments}\nrg {flags:?}\n{expected:#?}\n{found:#?}"
        );
        with_matches += u64::from(!found.is_empty());
    }
    assert!(with_matches > QUERIES / 2, "{with_matches}");
}

#[tokio::test]
async fn glob_finds_what_ripgrep_lists() {
    let test = test();
    let globs = [
        "*",
        "*.rs",
        "**/*.rs",
        "src/**",
        "src/*",
        "src",
        "/*.md",
        "*.{py,js}",
        "[a-c].*",
        "**/deep/**",
        "!*.rs",
        "?",
        "*/*/*",
        "with space/*",
        "ünï/**",
        "not-here*",
        "*.tmp",
        "ignored/**",
        "er/*.rs",
        "**",
        "**/er/*",
    ];
    for glob in globs {
        // A glob of `rg` overrides ignore files; the tool's does not. Of links, the tool finds those to files.
        let files = || vec!["--files".to_owned(), "--follow".to_owned()];
        let unignored = rg(&test, &files());
        let mut expected = rg(&test, &[files(), vec![format!("--glob={glob}")]].concat());
        expected.retain(|path| unignored.contains(path) && !path.starts_with("linked/"));
        let text = test.ok("glob", json!({"pattern": glob, "max_results": 10_000})).await;
        let mut found: Vec<&str> = text.lines().filter(|line| !line.starts_with("[no files match")).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{glob}");
    }
}
