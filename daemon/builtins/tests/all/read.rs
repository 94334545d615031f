use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;
use toold_proto::permission::Verdict;
use toold_proto::tool::{Block, Category};

use crate::builtin_test::BuiltinTest;

#[tokio::test]
async fn lines_are_numbered() {
    let test = BuiltinTest::strict();
    test.write("a.txt", "one\n\nthree\n");
    assert_eq!(test.read("a.txt").await, "1: one\n2: \n3: three");
    test.write("empty", "");
    assert_eq!(test.read("empty").await, "[the file is empty]");
}

#[tokio::test]
async fn page_names_the_offset_of_the_next() {
    let test = BuiltinTest::strict();
    let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    test.write("long", text);
    let result = test.call("read", json!({"path": "long"})).await;
    assert!(result.text().ends_with("2000: line 2000\n[lines 1 to 2000 of 5000; continue with offset=2001]"));
    assert_eq!((&result.metadata["total_lines"], &result.metadata["truncated"]), (&json!(5000), &json!(true)));
    let text = test.ok("read", json!({"path": "long", "offset": 4999, "limit": 2})).await;
    assert_eq!(text, "4999: line 4999\n5000: line 5000");
    let text = test.ok("read", json!({"path": "long", "offset": 3, "limit": 1})).await;
    assert_eq!(text, "3: line 3\n[lines 3 to 3 of 5000; continue with offset=4]");
    let text = test.bad("read", json!({"path": "long", "offset": 5001})).await;
    assert_eq!(text, "long has 5000 lines: there is no line 5001");
}

#[tokio::test]
async fn a_page_fits_into_a_result() {
    let test = BuiltinTest::strict();
    test.write("wide", format!("{}\n", "w".repeat(1900)).repeat(100));
    let result = test.call("read", json!({"path": "wide"})).await;
    assert!(!result.metadata.contains_key("truncated_bytes"), "the engine had to cut it");
    let shown = result.metadata["lines"].as_u64().unwrap();
    assert!(result.text().ends_with(&format!("[lines 1 to {shown} of 100; continue with offset={}]", shown + 1)));
}

#[tokio::test]
async fn long_lines_are_cut_with_a_mark() {
    let test = BuiltinTest::strict();
    test.write("long", format!("{}end\nnext", "é".repeat(2000)));
    let text = test.read("long").await;
    assert!(text.starts_with(&format!("1: {} [... 3 characters cut]\n2: next", "é".repeat(2000))), "{text}");
    assert!(text.ends_with("read on within line 1 with bash: sed -n 1p long | cut -b 4001-40000]"), "{text}");
}

#[tokio::test]
async fn the_rest_of_a_long_line_is_read_as_the_hint_says() {
    let test = BuiltinTest::strict();
    let line = format!("{}the end", "gr\u{fc}n und blau, ".repeat(200));
    let latin: Vec<u8> = format!("{line}\n").chars().map(|c| c as u8).collect();
    let bom = format!("\u{feff}{line}\n").into_bytes();
    let utf16: Vec<u8> = format!("\u{feff}{line}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, content) in [
        ("it's", format!("first\n{line}\n").into_bytes()),
        ("latin", latin),
        ("utf16", utf16),
        ("bom", bom),
        ("new\nline's", format!("{line}\n").into_bytes()),
        ("cr", format!("first\r{line}\r").into_bytes()),
    ] {
        test.write(name, content);
        let text = test.read(name).await;
        let (_, hint) = text.rsplit_once("with bash: ").unwrap_or_else(|| panic!("{name}: {text}"));
        let hint = hint.strip_suffix(']').unwrap();
        let rest = std::process::Command::new("bash").args(["-c", hint]).current_dir(&test.root).output().unwrap();
        let expected: String = line.chars().skip(2000).chain(['\n']).collect();
        assert_eq!(String::from_utf8_lossy(&rest.stdout), expected, "{hint}");
    }
}

#[tokio::test]
async fn encodings_are_decoded_and_reported() {
    let test = BuiltinTest::strict();
    let utf16: Vec<u8> = "\u{feff}Grün\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [(&str, &[u8], &str, &str); 5] = [
        ("utf8", b"Gr\xc3\xbcn\n", "UTF-8", "lf"),
        ("bom", b"\xef\xbb\xbfGr\xc3\xbcn\r\n", "UTF-8 with BOM", "crlf"),
        ("utf16", &utf16, "UTF-16LE", "crlf"),
        ("latin1", b"Gr\xfcn\n", "windows-1252", "lf"),
        ("cr", "Grün\r".as_bytes(), "UTF-8", "cr"),
    ];
    for (name, bytes, encoding, line_end) in cases {
        test.write(name, bytes);
        let result = test.call("read", json!({"path": name})).await;
        assert_eq!(result.text(), "1: Grün", "{name}");
        assert_eq!((&result.metadata["encoding"], &result.metadata["line_end"]), (&json!(encoding), &json!(line_end)));
    }
}

/// A PNG with this size and, except for its end, no content.
fn png(width: u32, height: u32) -> Vec<u8> {
    let size = width.to_be_bytes().into_iter().chain(height.to_be_bytes());
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(size);
    bytes.extend(b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB\x60\x82");
    bytes
}

#[tokio::test]
async fn an_image_that_models_do_not_take_is_made_smaller_or_refused_with_the_reason() {
    let test = BuiltinTest::strict();
    test.write("wide.png", png(9000, 100));
    test.write("small.png", png(2000, 2));
    test.program("magick", "exit 127");
    let text = test.bad("read", json!({"path": "wide.png"})).await;
    let problem = "wide.png is an image of more than 8000 pixels a side (image/png, 9000 x 100 pixels, 45 bytes)";
    assert!(text.starts_with(problem) && text.contains("install ImageMagick"), "{text}");
    test.program("magick", &format!("cat >/dev/null; echo \"$@\" >&2; cat {}", test.root.join("small.png").display()));
    let result = test.call("read", json!({"path": "wide.png"})).await;
    assert!(result.text().ends_with("shown as image/png, 2000 x 2 pixels, 45 bytes"), "{}", result.text());
    test.program("magick", "cat >/dev/null; echo 'it is broken' >&2; exit 1");
    let text = test.bad("read", json!({"path": "wide.png"})).await;
    assert!(
        text.starts_with(problem) && text.ends_with("ImageMagick can't read it: it is broken (exit code 1)"),
        "{text}"
    );
    test.write("cut.png", &png(3, 4)[..40]);
    let text = test.bad("read", json!({"path": "cut.png"})).await;
    assert_eq!(text, "cut.png is a damaged image: its end is missing (image/png, 3 x 4 pixels, 40 bytes)");
    let text = test.bad("write", json!({"path": "cut.png", "content": "text"})).await;
    assert!(text.starts_with("cut.png is a binary file, which `read` does not show"), "{text}");
}

/// A PNG of which every pixel has this red, green and blue.
fn plain_png(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    use std::io::Write;
    let mut data = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..height {
        data.write_all(&[0]).unwrap();
        data.write_all(&colour.repeat(width as usize)).unwrap();
    }
    let data = data.finish().unwrap();
    let mut bytes = png(width, height);
    let end = bytes.len() - 12;
    let chunk = [&(data.len() as u32).to_be_bytes()[..], b"IDAT", &data, b"crc."].concat();
    bytes.splice(end..end, chunk);
    bytes
}

#[tokio::test]
async fn a_png_is_made_smaller_without_another_program() {
    let test = BuiltinTest::strict();
    test.program("magick", "exit 127");
    test.program("convert", "exit 127");
    test.write("wide.png", plain_png(9000, 90, [10, 20, 30]));
    let result = test.call("read", json!({"path": "wide.png"})).await;
    let text = result.text();
    let problem = "wide.png: an image of more than 8000 pixels a side (image/png, 9000 x 90 pixels, ";
    assert!(text.starts_with(problem) && text.contains(" bytes), shown as image/png, 2000 x 20 pixels, "), "{text}");
    assert!(matches!(&result.content[1], Block::Image { mime_type, .. } if mime_type == "image/png"), "{text}");
    test.write("line.png", plain_png(9000, 10, [10, 20, 30]));
    let text = test.bad("read", json!({"path": "line.png"})).await;
    assert!(text.ends_with("it would have 2000 x 2 pixels and show nothing: cut a part out of it"), "{text}");
    // Others need a program, and the refusal names it.
    test.write("wide.gif", b"GIF89a\x50\x1f\x50\0\0\0\0;");
    let text = test.bad("read", json!({"path": "wide.gif"})).await;
    assert!(
        text.starts_with("wide.gif is an image of more than 8000 pixels a side (image/gif, 8016 x 80 pixels, ")
            && text.contains("install ImageMagick (the package imagemagick) on this machine, and read it again"),
        "{text}"
    );
}

/// A red and a blue pixel, and a second picture that begins with the blue one.
fn film(comments: usize) -> Vec<u8> {
    let head = b"GIF89a\x02\0\x01\0\x91\0\0\xff\xff\xff\xff\0\0\0\0\xff\0\0\0";
    let comment = [b"\x21\xfe\xff".as_slice(), &[b'c'; 255], b"\0"].concat().repeat(comments / 255);
    let picture = |codes: [u8; 2]| [b",\0\0\0\0\x02\0\x01\0\0\x02\x02".as_slice(), &codes, b"\0"].concat();
    [head.as_slice(), &comment, &picture([0x0c, 0x55]), &picture([0x14, 0x53]), b";"].concat()
}

#[tokio::test]
async fn the_first_picture_of_a_film_is_shown_without_another_program() {
    let test = BuiltinTest::strict();
    test.program("magick", "exit 127");
    test.program("convert", "exit 127");
    test.write("short.gif", film(0));
    let result = test.call("read", json!({"path": "short.gif"})).await;
    assert!(result.text().starts_with("short.gif: image/gif, 2 x 1 pixels, "), "{}", result.text());
    test.write("film.gif", film(4 << 20));
    let result = test.call("read", json!({"path": "film.gif"})).await;
    let text = result.text();
    assert!(text.starts_with("film.gif: an image of more than 3932160 bytes (image/gif, 2 x 1 pixels, "), "{text}");
    assert!(text.contains(" bytes), shown as image/png, 2 x 1 pixels, "), "{text}");
    assert!(text.ends_with("; it moves, and models see its first picture only"), "{text}");
    assert!(matches!(&result.content[1], Block::Image { mime_type, .. } if mime_type == "image/png"), "{text}");
}

/// A grey JPEG of 16 x 8 pixels with comments of so many bytes.
fn plain_jpeg(comments: usize) -> Vec<u8> {
    let mut bytes = b"\xff\xd8".to_vec();
    for _ in 0..comments.div_ceil(0xfffd) {
        bytes.extend(b"\xff\xfe\xff\xff");
        bytes.extend([b'c'; 0xfffd]);
    }
    bytes.extend(b"\xff\xdb\0\x43\0");
    bytes.extend([1; 64]);
    bytes.extend(b"\xff\xc0\0\x0b\x08\0\x08\0\x10\x01\x01\x11\0");
    // Both tables have one code: a zero for nothing.
    for table in [0x00, 0x10] {
        bytes.extend(b"\xff\xc4\0\x14");
        bytes.extend([table, 1]);
        bytes.extend([0; 16]);
    }
    bytes.extend(b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x0f\xff\xd9");
    bytes
}

#[tokio::test]
async fn a_jpeg_is_made_smaller_without_another_program() {
    let test = BuiltinTest::strict();
    test.program("magick", "exit 127");
    test.program("convert", "exit 127");
    test.write("photo.jpg", plain_jpeg(4 << 20));
    let result = test.call("read", json!({"path": "photo.jpg"})).await;
    let text = result.text();
    let problem = "photo.jpg: an image of more than 3932160 bytes (image/jpeg, 16 x 8 pixels, ";
    assert!(text.starts_with(problem) && text.contains(" bytes), shown as image/jpeg, 16 x 8 pixels, "), "{text}");
    assert!(matches!(&result.content[1], Block::Image { mime_type, .. } if mime_type == "image/jpeg"), "{text}");
}

#[tokio::test]
async fn the_text_of_a_pdf_comes_by_pages() {
    let test = BuiltinTest::strict();
    test.write("a.pdf", "%PDF-1.4\n\0");
    test.program("pdftotext", r#"cat >/dev/null; [ "$5" = 1 ] && printf 'One\n\fTwo\n\f' || printf 'Two\n\f'"#);
    assert_eq!(test.read("a.pdf").await, "1: [page 1]\n2: One\n3: [page 2]\n4: Two");
    assert_eq!(test.ok("read", json!({"path": "a.pdf", "pages": "2"})).await, "1: [page 2]\n2: Two");
    assert!(test.bad("read", json!({"path": "a.pdf", "pages": "x"})).await.contains("such as 3 or 2-5"));
    test.program("pdftotext", "exit 127");
    assert!(test.bad("read", json!({"path": "a.pdf"})).await.contains("poppler-utils"));
    test.write("unseen.pdf", "%PDF-1.4\nHello\n");
    assert!(test.bad("read", json!({"path": "unseen.pdf"})).await.contains("poppler-utils"));
    let text = test.bad("edit", json!({"path": "unseen.pdf", "old": "Hello", "new": "Bye"})).await;
    assert_eq!(text, "unseen.pdf has not been read in this session: read it first");
    // What it prints is no part of the text, what it changes is not kept, and what it needs more memory for fails.
    test.program("pdftotext", "cat >/dev/null; touch changed; ulimit -v; echo 'bad xref' >&2; exit 3");
    let text = test.bad("read", json!({"path": "a.pdf"})).await;
    assert!(text.ends_with("pdftotext can't read it: bad xref (exit code 3)"), "{text}");
    test.program("pdftotext", r"cat >/dev/null; printf '\f\f'");
    assert!(test.bad("read", json!({"path": "a.pdf"})).await.contains("without text in these pages (pages: 2)"));
    test.write("a.txt", "text");
    assert!(test.bad("read", json!({"path": "a.txt", "pages": "1"})).await.contains("is no PDF"));
}

#[tokio::test]
async fn images_come_as_images_by_their_content() {
    let test = BuiltinTest::strict();
    test.write("picture.txt", png(3, 4));
    let result = test.call("read", json!({"path": "picture.txt"})).await;
    assert_eq!(result.text(), "picture.txt: image/png, 3 x 4 pixels, 45 bytes");
    assert!(matches!(&result.content[1], Block::Image { mime_type, .. } if mime_type == "image/png"));
    test.write("text.png", "no picture");
    assert_eq!(test.read("text.png").await, "1: no picture");
}

#[tokio::test]
async fn notebooks_are_shown_as_cells_and_edited_as_json() {
    let test = BuiltinTest::new();
    let notebook = r#"{"cells": [{"cell_type": "code", "source": ["print(1)\n"], "outputs": [{"text": ["1\n"]}]}]}"#;
    test.write("a.ipynb", notebook);
    let text = test.read("a.ipynb").await;
    assert!(text.starts_with("1: [cell 1, code]\n2: print(1)\n3: [output]\n4: 1\n[a notebook,"), "{text}");
    assert_eq!(test.ok("read", json!({"path": "a.ipynb", "raw": true})).await, format!("1: {notebook}"));
    test.ok("edit", json!({"path": "a.ipynb", "old": "print(1)", "new": "print(2)"})).await;
    let long = json!({"cells": [{"cell_type": "code", "source": "x".repeat(3000)}]});
    test.write("long.ipynb", long.to_string());
    let text = test.read("long.ipynb").await;
    assert!(text.contains("[lines are shown up to 2000 characters; read the notebook with raw=true"), "{text}");
    test.write("text.ipynb", "no notebook");
    assert_eq!(test.read("text.ipynb").await, "1: no notebook");
}

#[tokio::test]
async fn binary_files_are_named_not_shown() {
    let test = BuiltinTest::strict();
    test.write("program", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    let text = test.bad("read", json!({"path": "program"})).await;
    assert_eq!(text, "program is a binary file (application/gzip, 10 bytes): not shown");
}

#[tokio::test]
async fn a_huge_file_is_read_only_as_far_as_asked() {
    let test = BuiltinTest::strict();
    let path = test.write("sparse", "first\nsecond\n".to_owned() + &"x".repeat(70_000));
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10 << 30).unwrap();
    let result = test.call("read", json!({"path": "sparse", "limit": 2})).await;
    assert_eq!(result.text(), "1: first\n2: second\n[lines 1 to 2 of more; continue with offset=3]");
    assert_eq!(result.metadata["size"], json!(10u64 << 30));
}

#[tokio::test]
async fn an_endless_line_can_be_cancelled() {
    let test = BuiltinTest::strict();
    let path = test.write("endless", "x".repeat(70_000));
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let text = test.read("endless").await;
    assert!(text.starts_with("1: xxx") && text.contains("[... more than 16"), "{}", text.len());
    let mut call = test.prepare("read", json!({"path": "endless", "offset": 2}));
    call.timeout = Some(std::time::Duration::from_millis(50));
    let result = test.run(call).await.unwrap();
    assert_eq!(result.metadata["timed_out"], json!(true));
}

#[tokio::test]
async fn non_files_are_refused() {
    let test = BuiltinTest::strict();
    rustix::fs::mkfifoat(rustix::fs::CWD, test.root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    assert!(test.bad("read", json!({"path": "pipe"})).await.contains("a named pipe, not a file"));
    assert_eq!(test.bad("read", json!({"path": "."})).await, ". is a folder: use `list`");
    assert!(test.bad("read", json!({"path": "none"})).await.contains("there is no file"));
    test.session.set_mode(toold_proto::session::Mode::Yolo);
    assert!(test.bad("read", json!({"path": "/dev/zero"})).await.contains("a device, not a file"));
}

#[tokio::test]
async fn missing_file_is_answered_with_near_names() {
    let test = BuiltinTest::strict();
    test.write("src/main.rs", "x");
    test.write("src/secret/main.rs", "x");
    test.write(".aiexclude", "src/secret/\n");
    test.write("src/config.ts", "x");
    assert_eq!(
        test.bad("read", json!({"path": "src/mian.rs"})).await,
        "there is no file src/mian.rs: did you mean src/main.rs?"
    );
    assert_eq!(
        test.bad("read", json!({"path": "lib/main.rs"})).await,
        "there is no file lib/main.rs: did you mean src/main.rs?"
    );
    assert_eq!(
        test.bad("read", json!({"path": "src/config.js"})).await,
        "there is no file src/config.js: did you mean src/config.ts?"
    );
    for path in ["src\\main.rs", "C:\\work\\src\\main.rs", "`src/main.rs`", "'src/main.rs'", "src/main.rs#L10-L20"] {
        assert_eq!(
            test.bad("read", json!({"path": path})).await,
            format!("there is no file {path}: did you mean src/main.rs?")
        );
    }
    for path in ["nothing", "`nothing`", "src\\secret\\main.rs#L1"] {
        let answer = test.bad("read", json!({"path": path})).await;
        assert!(!answer.contains("secret/main.rs"), "{answer}");
    }
    assert_eq!(test.bad("read", json!({"path": "nothing"})).await, "there is no file nothing: find it with `glob`");
}

#[tokio::test]
async fn a_tilde_is_the_home_folder_and_judged_as_such() {
    let test = BuiltinTest::strict();
    let home = test.root.parent().unwrap().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("notes"), "text").unwrap();
    let mut policy = toold_engine::policy::Policy::clone(&test.engine.policy.load());
    policy.home = Some(home.clone());
    test.engine.policy.store(Arc::new(policy));
    for (tool, arguments) in [
        ("read", json!({"path": "~/notes"})),
        ("list", json!({"path": "~"})),
        ("grep", json!({"pattern": "t", "path": "~"})),
    ] {
        let result = test.call(tool, arguments).await;
        assert!(
            result.metadata["permission"]["target"].as_str().unwrap().starts_with(home.to_str().unwrap()),
            "{tool}"
        );
    }
    test.session.set_mode(toold_proto::session::Mode::Yolo);
    assert_eq!(test.read("~/notes").await, "1: text");
    assert!(test.bad("read", json!({"path": "./~/notes"})).await.contains("there is no file ~/notes"));
}

#[tokio::test]
async fn links_are_judged_by_where_they_lead() {
    let test = BuiltinTest::strict();
    let outside = test.root.parent().unwrap().join("outside");
    std::fs::write(&outside, "text").unwrap();
    symlink(&outside, test.root.join("link")).unwrap();
    for path in ["link", "../outside", outside.to_str().unwrap()] {
        let result = test.call("read", json!({"path": path})).await;
        assert!(result.is_error, "{}", result.text());
        assert_eq!(result.metadata["permission"]["target"], json!(outside.to_str()));
    }
    test.rule(Category::FileRead, outside.to_str().unwrap(), Verdict::Allow);
    assert_eq!(test.read("link").await, "1: text");
}

#[tokio::test]
async fn excluded_files_are_denied_in_every_mode() {
    let test = BuiltinTest::new();
    test.write(".aiexclude", "private/\n");
    test.write("private/notes", "x");
    test.write(".env", "KEY=1");
    symlink("private/notes", test.root.join("innocent")).unwrap();
    for path in ["private/notes", "innocent", ".env"] {
        assert!(test.bad("read", json!({"path": path})).await.starts_with("not allowed"), "{path}");
    }
}

#[tokio::test]
async fn arguments_are_checked_with_all_errors() {
    let test = BuiltinTest::strict();
    let call = test.prepare("read", json!({"offset": 0, "line": 1}));
    let error = test.run(call).await.unwrap_err().to_string();
    assert!(error.contains("\"path\" is required: string, ") && error.contains("line") && error.contains("/offset"));
}
