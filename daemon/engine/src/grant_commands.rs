//! The command lines that allow what was refused, as messages name them: each can be run as it is, unless the pattern is
//! too long for a message.

use std::sync::OnceLock;

use toold_proto::shell_word::quoted;
use toold_proto::tool::Category;

use crate::cx::Cx;
use crate::decision::with_subject;
use crate::need::{LONGEST_NAMED, Need};
use crate::policy::allowing::allowing_pattern;

/// Stands in a command line for a pattern that is too long to be read there.
const SHORTER_PATTERN: &str = "A_SHORTER_PATTERN_THAT_COVERS_IT";

/// Kept in the slot of a session whose calls come from other machines: the name of this one there. Those who read its messages
/// are not here.
#[derive(Default)]
pub struct ServedOn(pub OnceLock<String>);

/// How a refused need of a call can be allowed from now on, as a sentence for the end of a message; `None` when no grant
/// allows it. Names no session: the grant holds for all.
pub fn way_to_allow(cx: &Cx, chain: &[String], need: &Need) -> Option<String> {
    let served_on = cx.session.slot_if_any::<ServedOn>();
    let here = served_on.as_ref().and_then(|served| served.0.get());
    let command = match need.is_workspace() {
        true => workspace_command(&need.target),
        false => {
            let (policy, grants) = (cx.engine.policy.load(), cx.engine.grants.snapshot());
            let pattern = with_subject(cx, &cx.tool, cx.origin, chain, |subject| {
                allowing_pattern(&policy, &grants, subject, need)
            })?;
            let pattern = match pattern.chars().count() > LONGEST_NAMED {
                true => SHORTER_PATTERN.to_owned(),
                false => pattern,
            };
            match here {
                Some(machine) if chain.is_empty() => fleet_grant_command(need.category(), &pattern, machine),
                _ => grant_command(need.category(), &pattern, chain),
            }
        }
    };
    if let Some(machine) = here
        && (need.is_workspace() || !chain.is_empty())
    {
        return Some(format!("Allow it on {machine} with: {command}"));
    }
    let all = match chain.last() {
        Some(plugin) if !need.is_workspace() => {
            format!(" (or all that it was refused: toolctl plugins grant {plugin})")
        }
        Some(_) | None => String::new(),
    };
    Some(format!("Allow it with: {command}{all}"))
}

/// The command line that grants a pattern, to calls through exactly this chain of plugins.
pub fn grant_command(category: Category, pattern: &str, chain: &[String]) -> String {
    let chain: String = chain.iter().map(|plugin| format!(" --chain {}", quoted(plugin))).collect();
    match pattern.starts_with('-') {
        true => format!("toolctl permissions grant {category}{chain} -- {}", quoted(pattern)),
        false => format!("toolctl permissions grant {category} {}{chain}", quoted(pattern)),
    }
}

/// The command line that grants a pattern on one machine of a fleet, wherever the person is.
fn fleet_grant_command(category: Category, pattern: &str, machine: &str) -> String {
    match pattern.starts_with('-') {
        true => format!("toolctl fleet grant {category} --on {} -- {}", quoted(machine), quoted(pattern)),
        false => format!("toolctl fleet grant {category} {} --on {}", quoted(pattern), quoted(machine)),
    }
}

/// The command line that lets every client work in a folder.
pub fn workspace_command(folder: &str) -> String {
    format!("toolctl workspaces allow {}", quoted(folder))
}
