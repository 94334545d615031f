//! `toolctl setup --check`: whether everything is as setup left it.

use std::path::Path;

use serde_json::json;

use crate::commands::agents::hooks_file;
use crate::commands::agents::switched_off::switched_off_everywhere;
use crate::commands::confine::prefix::VARIABLE;
use crate::commands::hook::HookAgent;
use crate::commands::setup::plan::SetupPlan;
use crate::commands::setup::record::{ChangedEntry, ChangedFile, SetupRecord, is_bridge};
use crate::commands::setup::{PlaceForSecrets, SetupInput};
use crate::config_file::read;
use crate::exit::{OK, TOOL_ERROR};
use crate::output::{plain, print_answer};

pub(super) fn run(
    record: Option<&SetupRecord>,
    input: &SetupInput<'_>,
    place: PlaceForSecrets,
    as_json: bool,
) -> anyhow::Result<u8> {
    let Some(record) = record else { return not_set_up(as_json) };
    let (mut drift, mut without_effect, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for file in &record.files {
        let Some(text) = read(&file.path)? else {
            drift.push(format!("{} is gone", file.path.display()));
            continue;
        };
        drift.extend(changed(file, &text));
        without_effect.extend(hooks_without_effect(file, &text, input.home));
        removed.extend(without_bridge(file, &text));
    }
    if record.program != input.program {
        drift.push(format!("entries start {}, and this is {}", record.program, input.program));
    }
    // Whatever --yes would still change is not as setup left it.
    let plan = SetupPlan::new(&input.plan_input(&[], place == PlaceForSecrets::Ready, &[]))?;
    let new =
        plan.moves.iter().map(|(server, _)| format!("{}: {} is not in toold", server.file.display(), server.name()));
    drift.extend(new);
    let has_none = |agent: &&&str| {
        let is_its = |file: &&ChangedFile| file.hooks.as_deref() == Some(**agent);
        !record.files.iter().any(|file| is_its(&file) && file.path.exists())
    };
    drift.extend(plan.new_hooks.iter().filter(has_none).map(|agent| format!("{agent} has no hooks")));
    drift.extend(
        plan.denials
            .iter()
            .map(|denial| format!("deny {} {} holds in one agent only", denial.category, denial.pattern)),
    );
    drift.dedup();
    let is_repairable = !drift.is_empty();
    drift.extend(without_effect);
    let waiting: Vec<String> =
        plan.waiting().map(|left| format!("{}: {} stays: {}", left.file.display(), left.name, left.why)).collect();
    let words = json!({"ok": drift.is_empty(), "drift": drift, "waiting": waiting, "removed": removed});
    print_answer(as_json, &words, |_, _| {
        let end = match drift.as_slice() {
            [] => "everything is as setup left it\n".to_owned(),
            lines => {
                let advice = match (plan.is_empty(), is_repairable) {
                    (true, false) => "",
                    (true, true) => "run `toolctl setup --undo`, then `toolctl setup`, to set it up again\n",
                    (false, _) => "run `toolctl setup` to repair it\n",
                };
                format!("{}\n{advice}", plain(&lines.join("\n")))
            }
        };
        waiting.iter().chain(&removed).map(|line| format!("{}\n", plain(line))).collect::<String>() + &end
    })?;
    Ok(if drift.is_empty() { OK } else { TOOL_ERROR })
}

/// There is nothing to compare with: setup has not run, or was taken back.
fn not_set_up(as_json: bool) -> anyhow::Result<u8> {
    let words = "nothing is set up here";
    print_answer(as_json, &json!({"ok": false, "drift": [words], "waiting": [], "removed": []}), |_, _| {
        format!("{words}: `toolctl setup --dry-run` shows what it would change\n")
    })?;
    Ok(TOOL_ERROR)
}

/// The entries that a person has removed, which setup leaves so, or changed so that they start something else.
fn without_bridge(file: &ChangedFile, text: &str) -> Vec<String> {
    let line = |entry: &ChangedEntry| {
        let what = match file.form().find(text, &entry.path) {
            None => "was removed; setup leaves it so",
            Some(span) if is_bridge(&text[span.range.clone()], &entry.source) => return None,
            Some(_) => "starts something else now",
        };
        Some(format!("{}: {} {what}", file.path.display(), entry.path.join(".")))
    };
    file.entries.iter().filter_map(line).collect()
}

/// Whole hooks that the agent's settings keep from their work. Setup does not overrule a setting of the person.
fn hooks_without_effect(file: &ChangedFile, text: &str, home: &Path) -> Vec<String> {
    let Some(agent) = file.hooks.as_deref().and_then(HookAgent::named) else { return Vec::new() };
    let name = agent.name();
    let off = switched_off_everywhere(agent, home).map(|off| {
        let file = off.file.display();
        format!("{name} does not run the hooks: take {} out of {file}", off.setting)
    });
    let is_unconfined = file.confines && !hooks_file::has_own_prefix(agent, text);
    let unconfined = is_unconfined.then(|| {
        format!(
            "{name} does not confine its commands any more: take {VARIABLE} out of \"env\" in {}, then run `toolctl agents \
             install {name} --hooks`",
            file.path.display()
        )
    });
    off.into_iter().chain(unconfined).collect()
}

fn changed(file: &ChangedFile, text: &str) -> Vec<String> {
    let name = file.path.display();
    let mut drift = Vec::new();
    for path in &file.added {
        if file.form().find(text, path).is_none() {
            drift.push(format!("{name}: {} is gone", path.join(".")));
        }
    }
    let agent = file.hooks.as_deref().and_then(HookAgent::named);
    if agent.is_some_and(|agent| !hooks_file::has_hooks(agent, text)) {
        drift.push(format!("{name}: the hooks are gone"));
    } else if agent.is_some_and(|agent| !hooks_file::are_as_chosen(agent, text)) {
        drift.push(format!("{name}: the hooks {}", hooks_file::DIFFER));
    }
    for block in file.blocks.iter().filter(|block| !text.contains(block.as_str())) {
        drift.push(format!("{name}: changed or gone: {}", block.lines().next().unwrap_or_default()));
    }
    drift
}
