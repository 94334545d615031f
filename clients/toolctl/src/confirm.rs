//! A yes-or-no question to the user at the terminal.

use std::io::Write;

use crate::exit::usage;
use crate::keys::{self, KeyPress, KeyReader, write_raw};
use crate::output::{self, BOLD};

/// Asks on the terminal; anything but `y` is no.
///
/// # Errors
/// When there is no terminal; `--yes` confirms in advance.
pub(crate) async fn confirm(question: &str) -> anyhow::Result<bool> {
    if !keys::has_terminal() {
        return Err(usage(format!("{question} There is no terminal to ask on; pass --yes to confirm")));
    }
    // Before anything is shown, so that no key is lost.
    let mut keys = KeyReader::open()?;
    write_raw(|out| write!(out, "{BOLD}{question}{BOLD:#} [y/N] "))?;
    let key = keys.next().await;
    keys.close().await;
    let yes = matches!(key, Some(KeyPress::Char('y' | 'Y')));
    writeln!(output::stderr(), "{}", if yes { "yes" } else { "no" })?;
    Ok(yes)
}
