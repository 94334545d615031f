//! Says that a daemon, or every daemon with a label, is away.

use std::time::SystemTime;

use toold_engine::time::rfc3339;
use toold_mounts::adapter::AwaySource;

use crate::directory::Directory;
use crate::target::CallTarget;

/// `None` while the target is there.
pub(crate) fn away(directory: &Directory, target: &CallTarget) -> Option<AwaySource> {
    if directory.is_online(target) {
        return None;
    }
    // The daemon that was there last.
    let last = directory.read(|daemons| {
        let members = daemons.iter().filter(|(name, known)| known.is_in(name, target));
        members.max_by_key(|(_, known)| known.heard_at).map(|(name, known)| (name.clone(), known.heard_at))
    });
    Some(match (target, last) {
        (CallTarget::Daemon(name), Some((_, Some(heard)))) => AwaySource {
            why: format!("{name} is away: last heard of {}", ago(heard)),
            notice: format!("{name} is away since {}: calls fail until it is back.", moment(heard)),
        },
        (CallTarget::Daemon(name), _) => AwaySource {
            why: format!("{name} is away: it has not been heard of yet"),
            notice: format!("{name} is away: calls fail until it is there."),
        },
        (CallTarget::Label(label), Some((last, Some(heard)))) => AwaySource {
            why: format!("no machine with the label {label} is there: {last} was last heard of {}", ago(heard)),
            notice: format!(
                "No machine with the label {label} is there since {}: calls fail until one is back.",
                moment(heard)
            ),
        },
        (CallTarget::Label(label), _) => AwaySource {
            why: format!("no machine with the label {label} has been heard of yet"),
            notice: format!("No machine with the label {label} is there: calls fail until one is."),
        },
    })
}

/// To the minute, such as `2026-11-25 12:03 UTC`.
fn moment(at: SystemTime) -> String {
    let text = rfc3339(at);
    format!("{} {} UTC", &text[..10], &text[11..16])
}

fn ago(at: SystemTime) -> String {
    let seconds = at.elapsed().unwrap_or_default().as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}
