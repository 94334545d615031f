//! Limits on the memory that the patterns of ignore files take, for [`crate::ignore_files`] and [`crate::exclude`].

/// Bytes of one file.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;
/// Plain patterns of all files that one walk reads; each takes half a kilobyte in memory.
pub(crate) const MAX_PATTERNS: usize = 100_000;
/// For how many plain patterns one counts that is compiled to a regular expression.
const COMPILED: usize = 10;
/// Folders without rules of their own that are remembered, before the walk forgets them and looks again.
pub(crate) const MAX_FOLDERS: usize = 10_000;
/// Takes room for the patterns of a text.
///
/// # Errors
/// There are more of them than there is room for; in words for people.
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

/// Names, paths and endings such as `*.log` are looked up; all else is compiled.
fn cost(pattern: &[u8]) -> usize {
    let plain = pattern.strip_prefix(b"!").unwrap_or(pattern);
    let plain = plain.strip_prefix(b"**/").unwrap_or(plain);
    let plain = plain.strip_prefix(b"*.").unwrap_or(plain);
    if plain.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{' | b'\\')) { COMPILED } else { 1 }
}
