use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use serde_json::{Value, json};
use toold_engine::call::CallError;
use toold_proto::level::Level;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::builtin_test::BuiltinTest;

fn tree() -> BuiltinTest {
    let test = BuiltinTest::strict();
    test.write("a.rs", "fn one() {}\nfn two() {}\n\nfn three() {}\n");
    test.write("src/b.py", "def one():\n    pass\n");
    test.write("src/c.md", "One thing\nand one more\n");
    test
}

#[track_caller]
fn check(text: String, expected: &[&str]) {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn matches_come_with_path_and_line_sorted() {
    let test = tree();
    let text = test.ok("grep", json!({"pattern": "one"})).await;
    check(text, &["a.rs:1:fn one() {}", "src/b.py:1:def one():", "src/c.md:2:and one more"]);
    let text = test.ok("grep", json!({"pattern": "ONE", "ignore_case": true, "path": "src"})).await;
    check(text, &["src/b.py:1:def one():", "src/c.md:1:One thing", "src/c.md:2:and one more"]);
    check(
        test.ok("grep", json!({"pattern": "nowhere"})).await,
        &["[no matches in 3 files; files that need an approval are not searched]"],
    );
    check(test.ok("grep", json!({"pattern": "two", "path": "a.rs"})).await, &["a.rs:2:fn two() {}"]);
}

#[tokio::test]
async fn files_can_be_chosen_by_glob_and_type() {
    let test = tree();
    check(test.ok("grep", json!({"pattern": "one", "include": "*.py"})).await, &["src/b.py:1:def one():"]);
    check(test.ok("grep", json!({"pattern": "one", "include": "src/*.md"})).await, &["src/c.md:2:and one more"]);
    check(test.ok("grep", json!({"pattern": "one", "type": "rust"})).await, &["a.rs:1:fn one() {}"]);
    assert!(test.bad("grep", json!({"pattern": "one", "type": "nope"})).await.contains("no file type nope"));
    assert!(test.bad("grep", json!({"pattern": "("})).await.starts_with("can't use the pattern"));
}

#[tokio::test]
async fn other_modes_return_files_and_counts() {
    let test = tree();
    check(
        test.ok("grep", json!({"pattern": "fn|one", "output_mode": "files"})).await,
        &["a.rs", "src/b.py", "src/c.md"],
    );
    check(
        test.ok("grep", json!({"pattern": "fn|one", "output_mode": "count"})).await,
        &["a.rs:3", "src/b.py:1", "src/c.md:1"],
    );
}

#[tokio::test]
async fn context_is_shown_as_ripgrep_shows_it() {
    let test = tree();
    check(
        test.ok("grep", json!({"pattern": "two|pass", "context": 1})).await,
        &["a.rs-1-fn one() {}", "a.rs:2:fn two() {}", "a.rs-3-", "--", "src/b.py-1-def one():", "src/b.py:2:    pass"],
    );
}

#[tokio::test]
async fn a_match_may_span_lines() {
    let test = tree();
    check(
        test.ok("grep", json!({"pattern": "thing\\nand", "multiline": true})).await,
        &["src/c.md:1:One thing", "src/c.md:2:and one more"],
    );
    check(
        test.ok("grep", json!({"pattern": "e() {", "fixed": true})).await,
        &["a.rs:1:fn one() {}", "a.rs:4:fn three() {}"],
    );
}

#[tokio::test]
async fn pages_are_cut_after_ordering() {
    let test = BuiltinTest::strict();
    for n in 0..100 {
        test.write(&format!("d{:02}/f", n), "match 1\nno\nmatch 2\n");
    }
    let page = |offset: u64| json!({"pattern": "match", "max_results": 3, "offset": offset});
    check(
        test.ok("grep", page(0)).await,
        &["d00/f:1:match 1", "d00/f:3:match 2", "d01/f:1:match 1", "[matches 1 to 3 of 200; continue with offset=3]"],
    );
    check(
        test.ok("grep", page(3)).await,
        &["d01/f:3:match 2", "d02/f:1:match 1", "d02/f:3:match 2", "[matches 4 to 6 of 200; continue with offset=6]"],
    );
    check(test.ok("grep", page(199)).await, &["d99/f:3:match 2"]);
    let result = test.call("grep", json!({"pattern": "match", "output_mode": "files", "max_results": 2})).await;
    check(result.text(), &["d00/f", "d01/f", "[files 1 to 2 of 100; continue with offset=2]"]);
}

#[tokio::test]
async fn a_file_is_searched_as_a_text_wherever_read_shows_it_as_one() {
    let test = BuiltinTest::new();
    // Behind the beginning that tells a binary file, in the part that is read at once with it, and behind that.
    for lines in [1_200, 20_000] {
        let name = format!("late{lines}");
        test.write(&name, format!("match\n{}\0\nmatch\n", "a line\n".repeat(lines)));
        assert!(test.ok("read", json!({"path": name})).await.starts_with("1: match"));
        let shown = [format!("{name}:1:match"), format!("{name}:{}:match", lines + 3)];
        for search in [json!({"pattern": "match", "include": name}), json!({"pattern": "match", "path": name})] {
            check(test.ok("grep", search).await, &[&shown[0], &shown[1]]);
        }
        let counted = test.ok("grep", json!({"pattern": "match", "include": name, "output_mode": "count"})).await;
        check(counted, &[&format!("{name}:2")]);
    }
}

#[tokio::test]
async fn binary_files_that_were_not_searched_are_named() {
    let test = BuiltinTest::new();
    for at in 0..7 {
        test.write(&format!("b{at}"), b"\0match\n");
    }
    test.write("text", "a line\n");
    let text = test.ok("grep", json!({"pattern": "match"})).await;
    let expected =
        "[no matches in 8 files; 7 of them binary: b0, b1, b2, b3, b4 and 2 more; to search one, name it in `path`; ";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(test.ok("grep", json!({"pattern": "match", "path": "b1"})).await, "b1: binary file matches");
    let text = test.ok("grep", json!({"pattern": "none\\|match", "include": "text"})).await;
    assert!(text.contains("`\\|` stands for the character |: alternatives are written as `a|b`"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_too_long_to_be_decoded_is_named() {
    let test = BuiltinTest::new();
    let line = |word: &[u8]| [word, b" and a line of some length, so that it does not take too many\n"].concat();
    test.write("long", line(b"caf\xe9").repeat((64 << 20) / 60));
    let wide: Vec<u8> = "\u{feff}tea\n".repeat(10).encode_utf16().flat_map(u16::to_le_bytes).collect();
    test.write("wide", wide.repeat((64 << 20) / 100 + 100));
    let text = test.ok("grep", json!({"pattern": "café|tea"})).await;
    let named: Vec<&str> =
        ["long: in windows-1252", "wide: in UTF-16LE"].into_iter().filter(|it| text.contains(it)).collect();
    assert_eq!(named.len(), 2, "{text}");
    assert!(text.contains("longer than 64 MiB, so that only ASCII is found in it: convert it to UTF-8"), "{text}");
}

#[tokio::test]
async fn all_of_a_named_file_is_searched_wherever_its_first_nul_byte_is() {
    let test = BuiltinTest::new();
    let lines = 40_000;
    // At both sides of the beginning that tells a binary file, and of what is read at once.
    for nul in [0, 1, 1000, 1170, 1171, 2000, 9362, 9363, 20_000, lines] {
        let (mut text, mut numbers) = (Vec::new(), Vec::new());
        for number in 1..=lines {
            let line: &[u8] = match number {
                _ if number == nul + 1 => b"x\0x\n",
                _ if number % 1000 == 3 => b"needle\n",
                _ => b"a line\n",
            };
            text.extend_from_slice(line);
            numbers.extend((line == b"needle\n").then_some(number));
        }
        test.write("file", &text);
        let is_binary = test.call("read", json!({"path": "file", "limit": 1})).await.is_error;
        assert_eq!(is_binary, nul <= 1170, "NUL behind line {nul}");
        let shown = numbers.iter().filter(|number| !is_binary || **number <= nul);
        let mut expected: Vec<String> = shown.map(|number| format!("file:{number}:needle")).collect();
        if is_binary {
            expected.push("file: binary file matches".to_owned());
        }
        for multiline in [false, true] {
            let ask =
                |mode: &str| json!({"pattern": "needle", "path": "file", "output_mode": mode, "multiline": multiline});
            let all = json!(numbers.len());
            assert_eq!(test.ok("grep", ask("count")).await, format!("file:{all}"), "NUL behind line {nul}");
            assert_eq!(test.ok("grep", ask("files")).await, "file");
            let result = test.call("grep", ask("content")).await;
            assert_eq!((&result.metadata["matches"], &result.metadata["shown"]), (&all, &all));
            assert_eq!(result.text().lines().collect::<Vec<_>>(), expected, "NUL behind line {nul}");
        }
    }
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let test = BuiltinTest::new();
    std::fs::File::create(test.root.join("endless")).unwrap().set_len(65 << 20).unwrap();
    for (arguments, expected) in [
        (json!({"pattern": "(", "path": "."}), "to search for it as plain text set fixed=true"),
        (json!({"pattern": "x", "path": "nowhere"}), "there is no file or folder nowhere: find it with `glob`"),
        (json!({"pattern": "x", "path": "src/*.rs"}), ": a glob belongs into `include`"),
        (json!({"pattern": "x", "type": "rusty"}), "for others give a glob in `include`"),
        (json!({"pattern": "x", "include": "[a"}), "put it in brackets, as in `[[]`"),
        (json!({"pattern": "x", "path": "endless", "multiline": true}), "or search another file or folder"),
    ] {
        let text = test.bad("grep", arguments).await;
        assert!(text.ends_with(expected), "{text}");
    }
}

#[tokio::test]
async fn ignored_hidden_and_binary_files_are_skipped() {
    let test = BuiltinTest::strict();
    std::fs::create_dir(test.root.join(".git")).unwrap();
    test.write(".gitignore", "target/\n");
    test.write("target/x", "match");
    test.write(".hidden", "match");
    test.write("binary", b"\0match");
    test.write("ok", "match");
    check(test.ok("grep", json!({"pattern": "match"})).await, &["ok:1:match"]);
    check(test.ok("grep", json!({"pattern": "match", "path": "binary"})).await, &["binary: binary file matches"]);
}

#[tokio::test]
async fn files_that_may_not_be_read_are_neither_searched_nor_counted() {
    let test = BuiltinTest::new();
    test.write(".aiexclude", "private/\n");
    test.write("private/notes", "match secret");
    test.write("server.pem", "match secret");
    test.write("denied/file", "match secret");
    test.write("ok", "match");
    test.rule(Category::FileRead, &format!("{}/denied/**", test.root.display()), Verdict::Deny);
    for mode in ["content", "files", "count"] {
        let result = test.call("grep", json!({"pattern": "match", "output_mode": mode})).await;
        assert!(result.text().starts_with("ok") && result.text().lines().count() == 1, "{}", result.text());
        assert_eq!((&result.metadata["files"], &result.metadata["matches"]), (&json!(1), &json!(1)));
        assert_eq!(result.metadata.get("hidden_files"), None);
    }
    let text = test.bad("grep", json!({"pattern": "match", "path": "private"})).await;
    assert!(text.starts_with("not allowed"), "{text}");
}

#[tokio::test]
async fn links_are_not_followed_out_of_the_tree() {
    let test = BuiltinTest::strict();
    let outside = test.root.parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "match").unwrap();
    symlink(&outside, test.root.join("link")).unwrap();
    symlink(outside.join("file"), test.root.join("file")).unwrap();
    check(
        test.ok("grep", json!({"pattern": "match"})).await,
        &["[no matches in 0 files; left out: file (a link), link (a link); \
           to look into one, name it in `path`; files that need an approval are not searched]"],
    );
    assert!(test.bad("grep", json!({"pattern": "match", "path": "link"})).await.starts_with("not allowed"));
}

#[tokio::test]
async fn unreadable_folders_are_reported_and_not_fatal() {
    let test = BuiltinTest::strict();
    test.write("ok", "match");
    let locked = test.write("locked/file", "match").parent().unwrap().to_owned();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let result = test.call("grep", json!({"pattern": "match"})).await;
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(result.text().contains("ok:1:match"));
    // The superuser reads everything.
    let is_reported = result.metadata["problems"] == json!(1) && result.text().contains("locked");
    assert!(is_reported || rustix::process::geteuid().is_root());
}

#[tokio::test]
async fn long_lines_are_shown_around_the_match() {
    let test = BuiltinTest::strict();
    test.write("long", format!("{}needle{}", "a".repeat(5000), "b".repeat(5000)));
    let text = test.ok("grep", json!({"pattern": "needle"})).await;
    assert!(text.contains("needle") && text.contains("bytes cut") && text.len() < 1200, "{}", text.len());
}

#[tokio::test]
async fn a_search_can_be_cancelled() {
    let test = BuiltinTest::strict();
    let path = test.write("endless", "x".repeat(1000));
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    // A file that was named is searched beyond its NULs.
    let call = test.prepare("grep", json!({"pattern": "needle", "path": "endless"}));
    let cancel = call.cancel.clone();
    let (engine, session) = (Arc::clone(&test.engine), Arc::clone(&test.session));
    let canceller = tokio::spawn(async move {
        while engine.sessions.list().iter().all(|session| session.describe(Level::Read).calls == 0) {
            tokio::task::yield_now().await;
        }
        drop(session);
        cancel.cancel();
    });
    assert_eq!(test.run(call).await.unwrap_err(), CallError::Cancelled);
    canceller.await.unwrap();
}

#[tokio::test]
async fn the_schema_names_everything_and_refuses_the_rest() {
    let test = BuiltinTest::strict();
    let view = test.engine.registry.snapshot();
    let tool = view.view(&test.root).find("grep").unwrap().spec().describe();
    assert_eq!(tool.input_schema["additionalProperties"], Value::Bool(false));
    assert_eq!(tool.input_schema["required"], json!(["pattern"]));
    for property in tool.input_schema["properties"].as_object().unwrap().values() {
        assert!(property["description"].is_string(), "{property}");
    }
}

#[tokio::test]
async fn carriage_returns_end_lines_with_their_line_feeds() {
    let test = BuiltinTest::strict();
    test.write("a.cs", "alpha;\r\nbeta;\r\n");
    for (arguments, expected) in [
        (json!({"pattern": ";$"}), vec!["a.cs:1:alpha;", "a.cs:2:beta;"]),
        (json!({"pattern": "^beta;$"}), vec!["a.cs:2:beta;"]),
        (json!({"pattern": "alpha;\\nbeta", "multiline": true}), vec!["a.cs:1:alpha;", "a.cs:2:beta;"]),
        (json!({"pattern": "alpha;\nbeta", "multiline": true, "fixed": true}), vec!["a.cs:1:alpha;", "a.cs:2:beta;"]),
        (json!({"pattern": ";\\r$", "output_mode": "files"}), vec!["a.cs"]),
    ] {
        check(test.ok("grep", arguments).await, &expected);
    }
}

#[tokio::test]
async fn texts_are_searched_as_read_shows_them() {
    let test = BuiltinTest::strict();
    let utf16: Vec<u8> = "plain word\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    test.write("g.txt", b"\xd6\xd0\xce\xc4 text\n");
    test.write("l.txt", b"caf\xe9 here\n");
    test.write("u.txt", utf16);
    test.write("bad.txt", b"gr\xc3\xbc\xc3\xb6\xc3\xa4\nline2 \xff\nbytes \xfe\n");
    test.write("cut.txt", "a whol\u{e9} page\n".repeat(9000) + "last");
    let cut = std::fs::OpenOptions::new().append(true).open(test.root.join("cut.txt")).unwrap();
    std::io::Write::write_all(&mut &cut, b" \xe2\x82").unwrap();
    test.write("cr.txt", b"one\rtwo\rthree\r");
    test.write("image", b"\x89PNG\0\0\0 caf\xe9 word");
    for (pattern, expected) in [
        ("\u{4e2d}\u{6587}", "g.txt:1:\u{4e2d}\u{6587} text"),
        ("caf\u{e9}", "l.txt:1:caf\u{e9} here"),
        ("here", "l.txt:1:caf\u{e9} here"),
        ("word", "u.txt:1:plain word"),
        ("line2 .$", "bad.txt:2:line2 \u{fffd}"),
        ("line2 \u{fffd}", "bad.txt:2:line2 \u{fffd}"),
        ("(?-u:bytes \\xfe)", "bad.txt:3:bytes \u{fffd}"),
        ("last .$", "cut.txt:9001:last \u{fffd}"),
        ("^two$", "cr.txt:2:two"),
    ] {
        check(test.ok("grep", json!({"pattern": pattern})).await, &[expected]);
    }
}

#[tokio::test]
async fn an_include_of_all_files_takes_in_no_more() {
    let test = tree();
    test.write(".ignore", "ignored/\n");
    test.write("ignored/deep/one.txt", "one\n");
    test.write(".hidden/one.txt", "one\n");
    let without = test.ok("grep", json!({"pattern": "one", "output_mode": "files"})).await;
    assert!(!without.contains("ignored") && !without.contains(".hidden"), "{without}");
    for include in ["*", "**", "**/*"] {
        let arguments = json!({"pattern": "one", "output_mode": "files", "include": include});
        assert_eq!(test.ok("grep", arguments).await, without, "{include}");
    }
}

#[tokio::test]
async fn includes_are_taken_as_callers_write_them() {
    let test = tree();
    test.write("src/app/[id]/page.tsx", "one\n");
    test.write("src/app/i/page.tsx", "one\n");
    let absolute = test.root.join("src/b.py").to_string_lossy().into_owned();
    for (include, expected) in [
        ("*.py, *.md", vec!["src/b.py", "src/c.md"]),
        ("src/*.{py,md}", vec!["src/b.py", "src/c.md"]),
        ("./src/b.py", vec!["src/b.py"]),
        (&absolute, vec!["src/b.py"]),
        ("src/app/[id]/page.tsx", vec!["src/app/[id]/page.tsx"]),
        ("src/app/[id]/*", vec!["src/app/[id]/page.tsx"]),
        ("src/app/[id]/**/*.tsx", vec!["src/app/[id]/page.tsx"]),
        (
            "**/[slug]/*",
            vec![
                "[no matches in 0 files; no file fits `include`; [slug] stands for one of these characters, and [[]slug] for the name; files that need an approval are not searched]",
            ],
        ),
        (
            "*.nope",
            vec!["[no matches in 0 files; no file fits `include`; files that need an approval are not searched]"],
        ),
    ] {
        let arguments = json!({"pattern": "one", "include": include, "output_mode": "files"});
        check(test.ok("grep", arguments).await, &expected);
    }
    let text = test.bad("grep", json!({"pattern": "one", "path": "src/*.rs"})).await;
    assert!(text.contains("a glob belongs into `include`"), "{text}");
}

/// A repository with an index that names the files.
fn repository(test: &BuiltinTest, tracked: &[&str]) {
    std::fs::create_dir(test.root.join(".git")).unwrap();
    let mut index = b"DIRC\0\0\0\x02".to_vec();
    index.extend((tracked.len() as u32).to_be_bytes());
    for name in tracked {
        index.extend([0; 60]);
        index.extend((name.len() as u16).to_be_bytes());
        index.extend(name.as_bytes());
        index.extend(std::iter::repeat_n(0, 8 - (62 + name.len()) % 8));
    }
    // The checksum, which need not be right.
    index.extend([0; 20]);
    test.write(".git/index", index);
}

#[tokio::test]
async fn nothing_found_says_what_was_left_out() {
    let test = BuiltinTest::strict();
    repository(&test, &[".github/workflows/ci.yml", "x/.cache/a"]);
    test.write(".gitignore", "scripts/*\nnode_modules/\n");
    test.write("scripts/writer.py", "writer\n");
    test.write("node_modules/e/index.js", "export\n");
    test.write(".cache/a", "cached\n");
    test.write(".github/workflows/ci.yml", "on: pull_request_target\n");
    test.write("bin", b"a\0b");
    let all = "left out: .cache/ (hidden), .gitignore (hidden), node_modules/ (ignored), scripts/writer.py (ignored); \
               include_ignored=true takes them in; files that need an approval are not searched]";
    check(
        test.ok("grep", json!({"pattern": "writer"})).await,
        &[&format!("[no matches in 2 files; 1 of them binary: bin; to search one, name it in `path`; {all}")],
    );
    check(
        test.ok("grep", json!({"pattern": "writer", "include_ignored": true})).await,
        &["scripts/writer.py:1:writer"],
    );
    let named = "[no matches in 0 files; left out: scripts/writer.py \
                 (ignored); include_ignored=true takes them in; files that need an approval are not searched]";
    check(test.ok("grep", json!({"pattern": "writer", "path": "scripts"})).await, &[named]);
    // Folders that Git tracks files in are no secret.
    check(
        test.ok("grep", json!({"pattern": "pull_request"})).await,
        &[".github/workflows/ci.yml:1:on: pull_request_target"],
    );
    check(test.ok("glob", json!({"pattern": "**/*.yml"})).await, &[".github/workflows/ci.yml"]);
    check(test.ok("glob", json!({"pattern": "*.py"})).await, &[&format!("[no files match, of 2 files; {all}")]);
    check(test.ok("glob", json!({"pattern": "node_modules/e/index.js"})).await, &["node_modules/e/index.js"]);
    check(
        test.ok("list", json!({"path": "scripts"})).await,
        &["scripts/", "  writer.py  (ignored)", "[0 files in 0 folders; 1 ignored file]"],
    );
    // In one file, nothing else is left out.
    check(test.ok("grep", json!({"pattern": "nope", "path": ".gitignore"})).await, &["[no matches in 1 file]"]);
    test.write("packed.gz", b"\x1f\x8b\x08\0\0");
    let text = test.ok("grep", json!({"pattern": "nope", "path": "packed.gz"})).await;
    let packed = "it is application/gzip: its bytes were searched, and not what is packed in them";
    check(text, &[&format!("[no matches in 1 file; {packed}]")]);
    // A place that may not be read is not named.
    test.rule(Category::FileRead, &test.root.join("scripts/**").to_string_lossy(), Verdict::Deny);
    let text = test.ok("grep", json!({"pattern": "writer"})).await;
    assert!(!text.contains("scripts"), "{text}");
}

#[tokio::test]
async fn hidden_folders_are_searched_in_every_form_of_git_s_index() {
    for form in [["--index-version", "2"], ["--index-version", "4"], ["--split-index", "-q"]] {
        let test = BuiltinTest::strict();
        for name in [".github/ci", "sub/.cfg/a", "sub/.cfg/b"] {
            test.write(name, "needle\n");
        }
        let update = ["update-index", form[0], form[1]];
        for arguments in [["init", "-q", "."].as_slice(), &["add", "-A"], &update] {
            let git = std::process::Command::new("git").args(arguments).current_dir(&test.root).output().unwrap();
            assert!(git.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&git.stderr));
        }
        test.write("sub/.untracked/c", "needle\n");
        check(
            test.ok("grep", json!({"pattern": "needle", "output_mode": "files"})).await,
            &[".github/ci", "sub/.cfg/a", "sub/.cfg/b"],
        );
    }
}

#[tokio::test]
async fn what_is_no_file_is_named_where_nothing_is_found() {
    let test = BuiltinTest::strict();
    let _socket = std::os::unix::net::UnixListener::bind(test.root.join("door")).unwrap();
    check(
        test.ok("grep", json!({"pattern": "x"})).await,
        &["[no matches in 0 files; left out: door (not a file); files that need an approval are not searched]"],
    );
    check(
        test.ok("glob", json!({"pattern": "door"})).await,
        &["[no files match, of 0 files; left out: door (not a file); files that need an approval are not searched]"],
    );
    check(test.ok("list", json!({})).await, &["./", "  door  (a socket)", "[1 file in 0 folders]"]);
}

#[tokio::test]
async fn hints_for_patterns_lead_to_the_text() {
    let test = BuiltinTest::strict();
    test.write("a.txt", "foo\n  bar\n");
    let text = test.bad("grep", json!({"pattern": "foo\\n  bar"})).await;
    assert!(text.contains("multiline=true") && !text.contains("fixed"), "{text}");
    let text = test.bad("grep", json!({"pattern": "foo(?!bar)"})).await;
    assert!(text.contains("look-around") && !text.contains("fixed=true"), "{text}");
}

#[tokio::test]
async fn small_and_large_folders_are_searched_alike() {
    for count in [10, 300] {
        let test = BuiltinTest::strict();
        test.write(".ignore", "ignored/\n");
        test.write(".aiexclude", "secret/\n");
        test.write("ignored/a.txt", "wanted\n");
        test.write("secret/b.txt", "wanted\n");
        for number in 0..count {
            test.write(&format!("plain/{number}.txt"), "plain\n");
        }
        let left_out = "left out: .aiexclude (hidden), .ignore (hidden), ignored/ (ignored); include_ignored=true takes them in; \
             files that need an approval are not searched";
        let none = format!("[no matches in {count} files; {left_out}]");
        check(test.ok("grep", json!({"pattern": "wanted"})).await, &[&none]);
        let none = format!("[no files match, of {count} files; {left_out}]");
        check(test.ok("glob", json!({"pattern": "b.txt"})).await, &[&none]);
        let text = test.ok("grep", json!({"pattern": "plain", "output_mode": "files", "max_results": 1000})).await;
        assert_eq!(text.lines().count(), count);
        let text = test.ok("list", json!({})).await;
        assert!(text.contains(&format!("plain/  ({count} files")) && !text.contains("secret"), "{text}");
    }
}

/// For ripgrep, whose matcher reads them, braces are lists, and the classes of POSIX are unknown.
#[tokio::test]
async fn ignore_files_of_git_mean_here_what_they_mean_for_git() {
    let test = BuiltinTest::new();
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).current_dir(&test.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    for name in ["a.a", "a.b", "a.{a,b}", "{x}", "x", "{", "1", "v1", "vA", "v_", "deep/{x}/y", "deep/x/y", "plain"] {
        test.write(name, "text\n");
    }
    let rules =
        ["*.{a,b}", "[[:digit:]]*", "v[[:alpha:]_]", "v[![:digit:]]", "{x}", r"\{x\}", "[{]*", "**/{x}/", "{x", "x}"];
    for rules in rules.into_iter().chain(["*\n!*.{a,b}"]) {
        test.write(".gitignore", format!("{rules}\n"));
        let of_git = git(&["ls-files", "--others", "--exclude-standard", "-z"]);
        let mut expected: Vec<&str> = of_git.split_terminator('\0').filter(|name| *name != ".gitignore").collect();
        let found = test.ok("glob", json!({"pattern": "**"})).await;
        let mut found: Vec<&str> = found.lines().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{rules}");
    }
}
