//! Rules and grants.

use toold_proto::permission::{Action, GrantInfo, Scope, Verdict};

use super::{Tone, ViewCell};
use crate::clock::{Zone, date_and_time_in};
use crate::output::{one_line, shorten};

/// How many characters of what a person wrote a table has.
const MAX_WORDS: usize = 120;

pub(crate) fn verdict(verdict: Verdict) -> ViewCell {
    let (tone, strictness) = match verdict {
        Verdict::Allow => (Tone::Good, 0.0),
        Verdict::Ask => (Tone::Warn, 1.0),
        Verdict::Deny => (Tone::Bad, 2.0),
    };
    ViewCell::new(tone, verdict.as_str()).number(strictness)
}

pub(crate) fn of_action(action: Action) -> Verdict {
    match action {
        Action::Allow => Verdict::Allow,
        Action::Deny => Verdict::Deny,
    }
}

/// How often a grant was used.
pub(crate) fn uses(grant: &GrantInfo) -> ViewCell {
    let text = match grant.uses {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    ViewCell::plain(text).number(grant.uses as f64)
}

/// The scope of a grant, and its end.
pub(crate) fn scope(grant: &GrantInfo, zone: Zone) -> String {
    format!("{}{}", grant.scope.as_str(), until(grant, zone))
}

/// Where a grant holds, and until when.
pub(crate) fn holds(grant: &GrantInfo, zone: Zone) -> String {
    let place = place(grant).map(|place| format!(" {place}")).unwrap_or_default();
    format!("{}{place}{}", grant.scope.as_str(), until(grant, zone))
}

fn until(grant: &GrantInfo, zone: Zone) -> String {
    grant.expires_at.as_deref().map(|at| format!(" until {}", date_and_time_in(at, zone))).unwrap_or_default()
}

/// The session or the project in which a grant holds.
pub(crate) fn place(grant: &GrantInfo) -> Option<String> {
    let place = match grant.scope {
        Scope::Session => grant.session_id.as_ref().map(|id| id.as_str()),
        Scope::Project => grant.project.as_deref(),
        Scope::Once | Scope::Always => None,
    };
    place.map(one_line)
}

/// The client that a person answered with, the agent that had asked if it is another one, and what the person wrote.
pub(crate) fn origin(grant: &GrantInfo) -> String {
    let by = grant.by.as_deref().unwrap_or_default();
    let agent = grant.asked.as_ref().and_then(|asked| asked.agent.as_deref()).filter(|agent| *agent != by);
    // What a person answers with, and not the name of its program.
    let by = if by == "toolctl" { "terminal" } else { by };
    let agent = agent.map(|agent| format!(", for {agent}")).unwrap_or_default();
    let words = grant.asked.as_ref().and_then(|asked| asked.words.as_deref());
    let words = words.map(|words| format!(": {}", shorten(words, MAX_WORDS))).unwrap_or_default();
    one_line(&format!("{by}{agent}{words}"))
}
