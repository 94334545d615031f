//! Configured names that match nothing.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toold_engine::policy::targets::is_plugin_name;

use crate::config::read::recovery::Misreading;

/// Adds the errors of names, each with its location.
pub(super) fn check(root: &DeTable, problems: &mut Vec<Misreading>) {
    let mut report = |span: std::ops::Range<usize>, message: String| problems.push(Misreading { span, message });
    for path in [&["mcp", "clients"][..], &["subagents"]] {
        for key in table(root, path).into_iter().flat_map(DeTable::keys) {
            let name = key.get_ref();
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                let path = path.join(".");
                report(key.span(), format!("{path}: {name:?} is not a valid name: expected printable characters"));
            }
        }
    }
    let agents = table(root, &["agents"]).into_iter().flatten();
    for (key, _) in
        agents.filter(|(key, value)| matches!(value.get_ref(), DeValue::Table(_)) && !is_plugin_name(key.get_ref()))
    {
        let name = key.get_ref();
        report(key.span(), format!("agents: {name:?} is not the name of an agent: expected [a-z][a-z0-9_-]*"));
    }
    let Some(plugins) = table(root, &["plugins"]) else { return };
    for (key, value) in plugins {
        match value.get_ref() {
            DeValue::Table(_) if !is_plugin_name(key.get_ref()) => {
                report(key.span(), format!("plugins: {}", no_plugin(key.get_ref())));
            }
            DeValue::Array(names) if ["disabled", "bundled"].contains(&key.get_ref().as_ref()) => {
                let names = names.iter().filter_map(|name| Some((name.span(), name.get_ref().as_str()?)));
                for (span, name) in names.filter(|(_, name)| !is_plugin_name(name)) {
                    report(span, format!("plugins.{}: {}", key.get_ref(), no_plugin(name)));
                }
            }
            _ => {}
        }
    }
}

fn table<'t, 'i>(root: &'t DeTable<'i>, path: &[&str]) -> Option<&'t DeTable<'i>> {
    path.iter().try_fold(root, |table, name| match table.get(*name).map(Spanned::get_ref) {
        Some(DeValue::Table(below)) => Some(below),
        _ => None,
    })
}

fn no_plugin(name: &str) -> String {
    let near = name.rsplit('/').next().unwrap_or(name);
    let near = near.strip_suffix(".lua").unwrap_or(near).to_lowercase().replace([' ', '.'], "_");
    let near = if is_plugin_name(&near) { format!(": did you mean {near}?") } else { String::new() };
    format!("{name:?} is not a plugin name: expected [a-z][a-z0-9_-]*{near}")
}
