//! The browser of the person at this terminal.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// A browser that fails does so within this; one that runs longer has started.
const STARTS_WITHIN: Duration = Duration::from_secs(2);

/// Opens an address in the browser that `$BROWSER` names, or else in that of the desktop; false where there is none.
pub(crate) async fn open(url: &str) -> bool {
    let Some(words) = command_line(url) else { return false };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C at this terminal is not meant for it.
    command.process_group(0);
    let Ok(mut child) = command.spawn() else { return false };
    match tokio::time::timeout(STARTS_WITHIN, child.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => true,
    }
}

fn command_line(url: &str) -> Option<Vec<String>> {
    let named = std::env::var("BROWSER").unwrap_or_default();
    // A list, the most wanted first; `%s` is the address (xdg-open(1)).
    let mut words: Vec<String> = named.split(':').next()?.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        words.push(match cfg!(target_os = "macos") {
            true => "open".to_owned(),
            false if has_screen => "xdg-open".to_owned(),
            false => return None,
        });
    }
    match words.iter_mut().find(|word| word.contains("%s")) {
        Some(word) => *word = word.replace("%s", url),
        None => words.push(url.to_owned()),
    }
    Some(words)
}
