//! Hooks whose last run failed, and what to do about each: one diagnosis for `toolctl doctor` and `toolctl status`.

use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::hook::HookInfo;
use toold_proto::method::HooksList;
use toold_proto::tool::SourceKind;

use crate::finding::{Finding, Severity, bad};

/// The findings of the hooks that sessions in this folder have; none where the daemon does not tell them.
pub(crate) async fn findings(client: &Client) -> Vec<Finding> {
    let Ok(list) = client.call::<HooksList>(NoParams {}).await else { return Vec::new() };
    list.hooks.iter().filter_map(of_hook).collect()
}

fn of_hook(hook: &HookInfo) -> Option<Finding> {
    let error = hook.error.as_deref()?;
    let (effect, health) = match hook.fail.as_str() {
        "closed" => ("calls are refused while it fails", Severity::Bad),
        _ => ("calls go on without it", Severity::Warning),
    };
    let advice = match hook.source.kind {
        SourceKind::Plugin => {
            format!("correct the plugin {}; `toolctl plugins reload` loads it again", hook.source.name)
        }
        _ => "correct its command in [[hooks]] with `toolctl config edit`".to_owned(),
    };
    let message = format!("{} ({}): {error}; {effect}", hook.name, hook.event);
    Some(Finding { health, ..bad("hook", message, advice) })
}
