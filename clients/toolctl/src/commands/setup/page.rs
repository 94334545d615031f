//! The one page of setup: what is there, what would change, and the difference.

use std::path::Path;

use serde_json::{Value, json};

use crate::commands::agents::hooks_file::without_hooks;
use crate::commands::hook::HookAgent;
use crate::commands::setup::figures::Figures;
use crate::commands::setup::places::{PLACES, Place};
use crate::commands::setup::plan::SetupPlan;
use crate::commands::setup::record::escaped;
use crate::config_file::difference;
use crate::output::{BOLD, DIM, NAME, WARN, counted, one_line, plain};

/// `with_all`: with the differences of all files; else with one of an agent's, and what the others are in words.
pub(super) fn render(plan: &SetupPlan, with_all: bool) -> String {
    let mut text = String::new();
    let mut part = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("{BOLD}{title}{BOLD:#}\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            text.push('\n');
        }
    };
    let places = plan.places.iter().map(|place| {
        let is_in = |names: &[&str]| names.contains(&place.name);
        let hooks = place.hooks.is_some_and(|agent| plan.new_hooks.contains(&agent.name()));
        let returned = plan.returned.iter().any(|name| name == place.name);
        let changes = [
            (hooks, "gets hooks"),
            (is_in(&plan.new_entries), "gets an entry for toold"),
            (returned, "gets the entries of its servers again"),
        ];
        let changes: Vec<&str> = changes.into_iter().filter_map(|(is, what)| is.then_some(what)).collect();
        let changes = match changes.as_slice() {
            [] if !is_of_agent(place) => "has a client of its own: see the README".to_owned(),
            [] if plan.leaves(place) => "is left alone: see below".to_owned(),
            [] => "nothing to change".to_owned(),
            changes => changes.join(", "),
        };
        format!("{NAME}{:<15}{NAME:#} {changes}", place.title)
    });
    part("Agents and editors", places.collect());
    if !plan.places.iter().any(is_of_agent) {
        let known: Vec<&str> = PLACES.iter().filter(|place| is_of_agent(place)).map(|place| place.title).collect();
        part("No agent was found", vec![format!("looked for {}", known.join(", "))]);
    }
    let sources = plan.sources.iter().map(|source| {
        let entries = plan.moves.iter().filter(|(_, name)| *name == source.name);
        let users: Vec<&str> = entries.map(|(server, _)| server.place.name).collect();
        let secrets: Vec<String> = source.secrets().into_iter().map(|(name, _)| name).collect();
        let hidden = if secrets.is_empty() { String::new() } else { format!("; secrets: {}", secrets.join(", ")) };
        // The agents keep logins for themselves.
        let login = if source.launch.may_want_login() { "; if it wants a login: log in again in toold" } else { "" };
        format!(
            "{NAME}{}{NAME:#}  {}  {DIM}from {}{hidden}{login}{DIM:#}",
            one_line(&source.name),
            one_line(&source.launch.shown()),
            users.join(", ")
        )
    });
    part("MCP servers that move into toold, and run once", sources.collect());
    let left = plan.left.iter().map(|left| {
        let place = left.place;
        let advice = match left.why.starts_with("the file is tracked") {
            true => {
                let is_other = |file: &Path| file.canonicalize().ok().as_ref() != Some(&left.file);
                let own = plan.own_files.iter().find(|(name, file)| *name == place.name && is_other(file));
                own.map(|(_, file)| format!("; an entry of the same name in {} is your own override", file.display()))
            }
            false => None,
        };
        let file = one_line(&left.file.display().to_string());
        format!(
            "{}  {} ({}): {}{}",
            one_line(&left.name),
            file,
            place.name,
            one_line(&left.why),
            advice.unwrap_or_default()
        )
    });
    part("MCP servers that stay where they are", left.collect());
    let denials = plan.denials.iter().map(|denial| {
        format!("deny {} {}  {DIM}from {}{DIM:#}", denial.category, one_line(&denial.pattern), denial.file.display())
    });
    part("Denials that will hold for all agents", denials.collect());
    let own = plan.rules.allowed.iter().map(|(agent, rule)| format!("{agent} allows {}", one_line(rule)));
    let whole = plan.rules.left.iter().map(|(agent, rule)| format!("{agent} denies {}", one_line(rule)));
    let asked = plan.rules.asked.iter().map(|(agent, rule)| format!("{agent} asks about {}", one_line(rule)));
    part("Rules that go on to hold in their agent alone", own.chain(asked).chain(whole).collect());
    let allowances = plan.allowances.iter().map(|rule| {
        let (pattern, frees) = (one_line(&rule.pattern), rule.frees());
        format!("allow {} {pattern}  {frees}  {DIM}from {}: {}{DIM:#}", rule.category, rule.agent, one_line(&rule.text))
    });
    part(
        "Of these, toold can take along, for their agent alone (setup asks; none is taken by itself)",
        allowances.collect(),
    );
    let folders = plan.folders.iter().map(|folder| {
        format!("{}  {DIM}{}{DIM:#}", one_line(&folder.path.display().to_string()), folder.agents.join(", "))
    });
    part("Folders where agents worked lately; each asks once unless you choose it (--folder)", folders.collect());
    let unread = plan.unread.iter().map(|unread| format!("{}: {}", unread.file.display(), unread.why));
    let problems = unread.chain(plan.problems.iter().cloned());
    let problems = problems.map(|problem| format!("{WARN}{}{WARN:#}", one_line(&problem)));
    part("Left alone", problems.collect());
    let secrets = plan.secrets();
    let example = plan.changes.iter().position(|change| !change.entries.is_empty()).unwrap_or(0);
    let mut is_left_out = false;
    for (at, change) in plan.changes.iter().enumerate() {
        let before = change.before.as_deref().unwrap_or_default();
        let path = one_line(&change.path.display().to_string());
        let agent = change.hooks.as_deref().and_then(HookAgent::named);
        if agent.is_some() && change.entries.is_empty() && change.added.is_empty() {
            let more = change.after.lines().count().saturating_sub(before.lines().count());
            text.push_str(&format!("{path}: the hooks of toold, {more} lines more\n"));
            continue;
        }
        let (bare, more) = counted_hooks(agent, &change.after, before);
        let shown = difference(&change.path, before, &bare);
        if !with_all && at != example {
            let lines = |sign: char| shown.lines().filter(|line| line.starts_with(sign)).count() as u64;
            let (new, old) = (counted(lines('+') + more as u64, "line"), lines('-'));
            text.push_str(&format!("{path}: {new} more, {old} less\n"));
            is_left_out = true;
            continue;
        }
        text.push_str(&plain(&hidden(shown, &secrets)));
        if more > 0 {
            text.push_str(&format!("{path}: and the hooks of toold, {more} lines more\n"));
        }
    }
    if is_left_out {
        text.push_str(&format!("{DIM}toolctl setup --dry-run shows all differences{DIM:#}\n"));
    }
    text
}

/// The text without toold's hooks, of which it has this many lines: they are many lines of the same, and are not shown.
pub(super) fn counted_hooks(agent: Option<HookAgent>, text: &str, without: &str) -> (String, usize) {
    let bare = agent.and_then(|agent| without_hooks(agent, text, without).ok()).unwrap_or_else(|| text.to_owned());
    let lines = text.lines().count().saturating_sub(bare.lines().count());
    (bare, lines)
}

/// Whether an agent, or an editor whose servers move, is there; Neovim and Emacs have clients of toold's own.
fn is_of_agent(place: &Place) -> bool {
    place.is_set_up() || !place.server_files(Path::new("")).is_empty()
}

fn hidden(mut text: String, secrets: &[(String, String)]) -> String {
    for (_, value) in secrets {
        text = text.replace(&escaped(value), "***").replace(value, "***");
    }
    text
}

pub(super) fn json(plan: &SetupPlan, figures: Option<&Figures>) -> Value {
    let places: Vec<Value> = plan
        .places
        .iter()
        .map(|place| {
            json!({
                "name": place.name,
                "title": place.title,
                "new_hooks": place.hooks.is_some_and(|agent| plan.new_hooks.contains(&agent.name())),
                "new_entry": plan.new_entries.contains(&place.name),
            })
        })
        .collect();
    let servers: Vec<Value> = plan
        .moves
        .iter()
        .map(|(server, source)| {
            let planned = plan.sources.iter().find(|planned| planned.name == *source);
            let secrets: Vec<String> =
                planned.into_iter().flat_map(|planned| planned.secrets()).map(|(name, _)| name).collect();
            json!({
                "name": server.name(),
                "agent": server.place.name,
                "file": server.file,
                "source": source,
                "runs": server.launch.shown(),
                "secrets": secrets,
            })
        })
        .collect();
    let left: Vec<Value> = plan
        .left
        .iter()
        .map(|left| json!({"name": left.name, "agent": left.place.name, "file": left.file, "why": left.why}))
        .collect();
    let denials: Vec<Value> = plan
        .denials
        .iter()
        .map(|denial| json!({"category": denial.category, "pattern": denial.pattern, "file": denial.file}))
        .collect();
    let allowances: Vec<Value> = plan
        .allowances
        .iter()
        .map(|rule| {
            let (agent, tools) = (rule.agent, rule.tools);
            json!({"agent": agent, "rule": rule.text, "category": rule.category, "pattern": rule.pattern, "tools": tools})
        })
        .collect();
    let kept = |rules: &[(&str, String)]| -> Vec<Value> {
        rules.iter().map(|(agent, rule)| json!({"agent": agent, "rule": rule})).collect()
    };
    let folders: Vec<Value> =
        plan.folders.iter().map(|folder| json!({"path": folder.path, "agents": folder.agents})).collect();
    let files: Vec<_> = plan.changes.iter().map(|change| &change.path).collect();
    let unread = plan.unread.iter().map(|unread| format!("{}: {}", unread.file.display(), unread.why));
    let problems: Vec<String> = unread.chain(plan.problems.iter().cloned()).collect();
    json!({
        "agents": places,
        "servers": servers,
        "left": left,
        "denials": denials,
        "allowed_by_agents": kept(&plan.rules.allowed),
        "can_be_taken": allowances,
        "asked_by_agents": kept(&plan.rules.asked),
        "denied_by_agents": kept(&plan.rules.left),
        "folders": folders,
        "files": files,
        "problems": problems,
        "bridges": plan.bridges,
        "applied": figures.map(Figures::json),
    })
}
