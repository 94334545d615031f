//! Odd and hostile files: each is read, searched, edited, overwritten and removed, and is byte for byte what it was once
//! that is undone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toold_builtins::journal::{ChangeFilter, JournalScope, Selection};
use toold_builtins::undo::undo;

use crate::builtin_test::BuiltinTest;

/// How the text of a row is written.
#[derive(Clone, Copy, PartialEq)]
enum OddForm {
    Bytes,
    Utf16(bool),
}

impl OddForm {
    fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Bytes => text.as_bytes().to_vec(),
            Self::Utf16(true) => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Utf16(false) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        }
    }
}

/// A name, the bytes, their form, the permission bits, and whether it is a text that is found and can be edited.
type OddFile = (String, Vec<u8>, OddForm, u32, bool);

fn rows() -> Vec<OddFile> {
    let row =
        |name: &str, content: &[u8], is_text: bool| (name.to_owned(), content.to_vec(), OddForm::Bytes, 0o644, is_text);
    let utf16 = |name: &str, mark: &[u8], big: bool| {
        let text = OddForm::Utf16(big).encode("one\r\nneedle \u{1f980}\r\n");
        (name.to_owned(), [mark, &text].concat(), OddForm::Utf16(big), 0o644, true)
    };
    let text: &[u8] = b"one\nneedle\n";
    let mut rows: Vec<OddFile> = [
        "with space",
        "new\nline",
        "a\ttab",
        "\u{fc}ber",
        "u\u{308}ber",
        "-dash",
        "--help",
        "*.star",
        "[id]",
        "{a,b}",
        "~",
        "$HOME",
        "`id`",
        "'",
        "\"",
        "\u{202e}gnp.exe",
        "\u{1f980}",
        ".hidden",
        "back\\slash",
        "%41",
        "a:b",
        "#c",
        "NUL",
        "narrow\u{202f}space",
    ]
    .into_iter()
    .map(|name| row(name, text, true))
    .collect();
    rows.push(row(&"n".repeat(255), text, true));
    rows.extend([
        row("empty", b"", false),
        row("no line end", b"needle", true),
        row("crlf", b"one\r\nneedle\r\n", true),
        row("mixed ends", b"one\r\nneedle\ntwo\r\n", true),
        row("cr", b"one\rneedle\r", true),
        row("bom", b"\xef\xbb\xbfone\nneedle\n", true),
        row("latin1", b"gr\xfcn und blau\nneedle\n", true),
        row(
            "bad byte",
            "gr\u{fc}n \u{fc} \u{e4}\nneedle "
                .as_bytes()
                .iter()
                .chain(b"\xe2\x82 x\n")
                .copied()
                .collect::<Vec<u8>>()
                .as_slice(),
            true,
        ),
        row("nul", b"needle\0\x01\x02\n", false),
        row("png", b"\x89PNG\r\n\x1a\nneedle\0\0", false),
        row("escapes", b"\x1b[2J\x1b]0;x\x07needle\n", true),
        row("separators", "a\u{2028}b\u{85}c\u{c}needle\n".as_bytes(), true),
        row("long line", &[b"x".repeat(300_000).as_slice(), b" needle ", &b"y".repeat(300_000)].concat(), true),
        row("many lines", &[b"line\n".repeat(50_000).as_slice(), b"needle\n"].concat(), true),
        utf16("utf16le", b"\xff\xfe", false),
        utf16("utf16be", b"\xfe\xff", true),
        ("read-only".to_owned(), text.to_vec(), OddForm::Bytes, 0o444, false),
        ("script".to_owned(), text.to_vec(), OddForm::Bytes, 0o755, true),
        ("private".to_owned(), text.to_vec(), OddForm::Bytes, 0o600, true),
    ]);
    rows
}

#[track_caller]
fn check(path: &Path, (_, content, _, mode, _): &OddFile, after: &str) {
    assert!(std::fs::read(path).unwrap() == *content, "{path:?} after {after}");
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o7777, *mode, "{path:?} after {after}");
}

#[tokio::test]
async fn odd_files_are_what_they_were_once_all_is_undone() {
    let test = BuiltinTest::new();
    let everything = Selection::All(ChangeFilter::default());
    assert!(rows().len() >= 40);
    for (n, row) in rows().iter().enumerate() {
        let (name, content, form, mode, is_text) = row;
        let named = format!("{n}/{name}");
        let path = test.write(&named, content);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).unwrap();
        let read = test.call("read", json!({"path": named})).await;
        assert!(!*is_text || !read.is_error, "{name:?}: {}", read.text());
        let found = test
            .call("grep", json!({"pattern": "needle", "path": n.to_string(), "include_ignored": true}))
            .await
            .text();
        assert!(!*is_text || found.contains("needle") && !found.starts_with("[no matches"), "{name:?}: {found}");

        let edited = test.call("edit", json!({"path": named, "old": "needle", "new": "changed"})).await;
        assert!(!*is_text || !edited.is_error, "{name:?}: {}", edited.text());
        if !edited.is_error {
            let (old, new) = (form.encode("needle"), form.encode("changed"));
            let at = content.windows(old.len()).position(|bytes| bytes == old).unwrap();
            let expected = [&content[..at], &new, &content[at + old.len()..]].concat();
            assert!(std::fs::read(&path).unwrap() == expected, "{name:?}: more than the words changed");
            undo(&test.toolkit, &test.session, JournalScope::Everybody, &everything).await.unwrap();
        }
        check(&path, row, "edit");
        let written = test.call("write", json!({"path": named, "content": "other\n"})).await;
        if !written.is_error {
            undo(&test.toolkit, &test.session, JournalScope::Everybody, &everything).await.unwrap();
        }
        check(&path, row, "write");
        let commands = [format!("rm -rf {n}"), format!("chmod 700 {n} && mv {n} {n}moved && touch {n}moved/new")];
        for line in &commands {
            let ran = test.call("bash", json!({"command": line})).await;
            assert!(!ran.is_error, "{name:?}: {}", ran.text());
            assert!(!path.exists(), "{name:?}: {line}");
            undo(&test.toolkit, &test.session, JournalScope::Everybody, &everything)
                .await
                .unwrap_or_else(|error| panic!("{name:?}: {line}: {error}"));
            check(&path, row, line);
        }
    }
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once_and_left_as_it_is() {
    let test = BuiltinTest::new();
    test.ok("bash", json!({"command": "mkfifo pipe; ln -s gone dangling; ln -s ring ring; mkdir folder"})).await;
    let _socket = std::os::unix::net::UnixListener::bind(test.root.join("socket")).unwrap();
    for name in ["pipe", "socket", "ring", "folder", "/dev/zero"] {
        let calls = [
            ("read", json!({"path": name})),
            ("edit", json!({"path": name, "old": "a", "new": "b"})),
            ("write", json!({"path": name, "content": "x"})),
        ];
        for (tool, arguments) in calls {
            let call = tokio::time::timeout(Duration::from_secs(60), test.call(tool, arguments));
            let result = call.await.unwrap_or_else(|_| panic!("{tool} waits for {name}"));
            assert!(result.is_error, "{tool} {name}: {}", result.text());
        }
    }
    let search = test.call("grep", json!({"pattern": "x"}));
    tokio::time::timeout(Duration::from_secs(60), search).await.expect("grep does not wait for the pipe");
}
