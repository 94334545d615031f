//! A yes-or-no question to the user at the terminal.

use std::io::Write;
use std::time::Duration;

use crate::exit::usage;
use crate::keys::{self, AT_ONCE, KeyPress, KeyReader, key, write_raw};
use crate::output::{self, BOLD};

/// Many people press Enter after the key that is the answer. It is not the answer to what is asked next.
const ENTER_WITHIN: Duration = Duration::from_millis(400);

/// Asks on the terminal; anything but `y` is no.
///
/// # Errors
/// When there is no terminal; `--yes` confirms in advance.
pub(crate) async fn confirm(question: &str) -> anyhow::Result<bool> {
    Ok(confirm_or_choose(question, false).await? == Some(true))
}

/// The same for several things; `None` for the user who wants to be asked about each, if `can_choose`.
///
/// # Errors
/// As [`confirm`].
pub(crate) async fn confirm_or_choose(question: &str, can_choose: bool) -> anyhow::Result<Option<bool>> {
    if !keys::has_terminal() {
        return Err(usage(format!("{question} There is no terminal to ask on; pass --yes to confirm")));
    }
    // Before anything is shown, so that no key is lost.
    let mut keys = KeyReader::open()?;
    let options = if can_choose { "[y/N, c: choose]" } else { "[y/N]" };
    write_raw(|out| write!(out, "{BOLD}{question}{BOLD:#} {options} "))?;
    let key = loop {
        match keys.next_event().await {
            // A pasted text is no answer.
            Some(event) if matches!(key(event), KeyPress::Char(_)) && !keys.is_alone(event, AT_ONCE).await => {}
            event => break event.map(key),
        }
    };
    if matches!(key, Some(KeyPress::Char(_))) {
        keys.take_enter(ENTER_WITHIN).await;
    }
    drop(keys);
    let (answer, word) = match key {
        Some(KeyPress::Char('y' | 'Y')) => (Some(true), "yes"),
        Some(KeyPress::Char('c' | 'C')) if can_choose => (None, "choose"),
        _ => (Some(false), "no"),
    };
    writeln!(output::stderr(), "{word}")?;
    Ok(answer)
}
