//! Limits on the memory of ignore files' patterns, for [`crate::ignore_files`] and [`crate::exclude`].

/// Size limit of one file, in bytes.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;
/// Limit of plain patterns of all files that one walk reads; each takes half a kilobyte of memory.
pub(crate) const MAX_PATTERNS: usize = 100_000;
/// A pattern that is compiled to a regular expression counts as this many plain ones.
const COMPILED: usize = 10;
/// Cache limit of folders without rules. Beyond it, the walk clears the cache and looks again.
pub(crate) const MAX_FOLDERS: usize = 10_000;
/// Reserves room for the patterns of a text.
///
/// # Errors
/// There are more patterns than there is room for; the message is for people.
pub(crate) fn take_room(text: &[u8], room: &mut usize) -> Result<(), String> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !matches!(line.first(), None | Some(b'#')));
    match room.checked_sub(lines.map(cost).sum()) {
        Some(rest) => {
            *room = rest;
            Ok(())
        }
        None => Err(format!(
            "it has too many patterns for the memory that ignore files may take; one with wildcards counts as \
             {COMPILED} without"
        )),
    }
}

/// Names, paths and suffixes such as `*.log` use hash lookups; all others are compiled.
fn cost(pattern: &[u8]) -> usize {
    let plain = pattern.strip_prefix(b"!").unwrap_or(pattern);
    let plain = plain.strip_prefix(b"**/").unwrap_or(plain);
    let plain = plain.strip_prefix(b"*.").unwrap_or(plain);
    if plain.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{' | b'\\')) { COMPILED } else { 1 }
}
