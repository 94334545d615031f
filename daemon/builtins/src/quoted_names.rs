//! Names and paths on one line, also those of several lines and of bytes that are no text.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::look_alikes::turns_text;

/// The whole path; [`quoted`] where it has to be.
pub(crate) fn named(path: &Path) -> String {
    quoted(path.as_os_str())
}

/// A name that is one line of text, as Git writes it: one with control characters, also those that change the direction of text,
/// or that is not UTF-8, is in double quotes, with escapes as in C.
pub(crate) fn quoted(name: &OsStr) -> String {
    if let Some(plain) = name.to_str()
        && !plain.starts_with('"')
        && !plain.contains(is_control)
    {
        return plain.to_owned();
    }
    let mut text = "\"".to_owned();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                c if is_control(c) => push_octal(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
                c => text.push(c),
            }
        }
        push_octal(chunk.invalid(), &mut text);
    }
    text.push('"');
    text
}

fn is_control(c: char) -> bool {
    c.is_control() || turns_text(c)
}

fn push_octal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}
