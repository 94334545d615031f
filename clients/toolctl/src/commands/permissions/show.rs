//! Rules, grants and checks as text.

use comfy_table::Cell;
use toold_proto::effect::{Effect, in_words};
use toold_proto::permission::{
    Action, CheckedPart, CheckedPermission, ExplainedCommand, GrantInfo, PermissionList, Verdict,
};

use crate::clock;
use crate::output::{BAD, BOLD, DIM, WARN, one_line, plain};
use crate::table;
use crate::views::ViewCell;
use crate::views::permissions::{self, of_action};

/// Mode, rules and grants.
pub(super) fn list(list: &PermissionList, width: Option<u16>) -> String {
    let mode = serde_json::to_value(list.mode).unwrap_or_default();
    let mut text = format!("{DIM}mode{DIM:#} {}\n", mode.as_str().unwrap_or_default());
    for broken in &list.broken {
        text.push_str(&format!("{BAD}broken{BAD:#} {}\n", one_line(broken)));
    }
    if !list.rules.is_empty() {
        let mut rows = table::new(width);
        rows.set_header(table::header(&["RULE", "CATEGORY", "PATTERN", "ONLY FOR", "FROM"]));
        for rule in &list.rules {
            let only = only_for((rule.agent.as_deref(), rule.tools.as_deref()), rule.cwd.as_deref(), &[]);
            rows.add_row([
                permissions::verdict(rule.action).into(),
                Cell::new(rule.category),
                table::name(&one_line(&rule.shown_pattern())),
                Cell::new(only),
                Cell::new(one_line(&rule.source)),
            ]);
        }
        text.push_str(&format!("\n{}", table::render(&rows)));
    }
    if !list.grants.is_empty() {
        text.push_str(&format!("\n{}", grants(&list.grants, width)));
    }
    text
}

/// The grants, with their uses.
pub(super) fn grants(grants: &[GrantInfo], width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&[
        "GRANT", "", "CATEGORY", "PATTERN", "SCOPE", "IN", "ONLY FOR", "FROM", "USED", "LAST",
    ]));
    for grant in grants {
        rows.add_row([
            Cell::new(one_line(&grant.id)),
            permissions::verdict(of_action(grant.action)).into(),
            Cell::new(grant.category),
            table::name(&one_line(&grant.pattern)),
            Cell::new(permissions::scope(grant, clock::zone())),
            Cell::new(permissions::place(grant).unwrap_or_default()),
            Cell::new(only_for((None, grant.tools.as_deref()), None, &grant.chain)),
            Cell::new(permissions::origin(grant)),
            permissions::uses(grant).into(),
            Cell::new(grant.used_at.as_deref().map(clock::date).unwrap_or_default()),
        ]);
    }
    match grants {
        [] => String::new(),
        _ => table::render_without(&rows, &["LAST", "USED", "FROM", "IN", "ONLY FOR"]),
    }
}

/// What a revocation took back: without a denial, more is possible than before.
pub(super) fn revoked(grant: &GrantInfo) -> String {
    let what = format!("{} {BOLD}{}{BOLD:#}", grant.category, one_line(&grant.pattern));
    match grant.action {
        Action::Allow => format!("no longer allowed: {what}"),
        Action::Deny => format!("{WARN}this was a denial{WARN:#}; no longer denied: {what}"),
    }
}

fn only_for((agent, tools): (Option<&str>, Option<&[String]>), cwd: Option<&str>, chain: &[String]) -> String {
    let tools = tools.map(|tools| tools.join(" "));
    let chain = (!chain.is_empty()).then(|| format!("calls through {}", chain.join(", ")));
    let parts: Vec<String> =
        [agent.map(str::to_owned), tools, cwd.map(str::to_owned), chain].into_iter().flatten().collect();
    one_line(&parts.join("; "))
}

/// A grant as it was stored, for the user who just gave it.
pub(crate) fn grant(grant: &GrantInfo) -> String {
    let ViewCell { tone, text: action, .. } = permissions::verdict(of_action(grant.action));
    let style = tone.style();
    let tools = grant.tools.as_ref().map(|tools| format!(", only for {}", one_line(&tools.join(" "))));
    let chain = (!grant.chain.is_empty()).then(|| format!(", only through {}", one_line(&grant.chain.join(", "))));
    let only: String = tools.into_iter().chain(chain).collect();
    format!(
        "{style}{action}{style:#} {} {BOLD}{}{BOLD:#} {}{only} {DIM}({}){DIM:#}",
        grant.category,
        plain(&grant.pattern),
        permissions::holds(grant, clock::zone()),
        one_line(&grant.id)
    )
}

/// The plugins that were refused what a grant without a chain allows: they still are.
pub(super) fn without_chains(grant: &GrantInfo) -> String {
    let line = |chain: &Vec<String>| {
        let plugin = one_line(chain.last().map(String::as_str).unwrap_or_default());
        let through = one_line(&chain.join(", "));
        let options: String = chain.iter().map(|plugin| format!(" --chain {}", one_line(plugin))).collect();
        format!(
            "{WARN}note{WARN:#} calls through {through} are not included, and were refused this: repeat it with{options}, \
             or see toolctl plugins grant {plugin}\n"
        )
    };
    grant.without_chains.iter().map(line).collect()
}

/// The verdict, and that of each part.
pub(super) fn check(checked: &CheckedPermission, width: Option<u16>) -> String {
    let s = permissions::verdict(checked.verdict).tone.style();
    let mut text = format!("{s}{}{s:#} {}\n", checked.verdict.as_str(), by(&checked.rule, checked.verdict));
    if checked.commands.is_empty() {
        checked.parts.iter().for_each(|part| text.push_str(&format!("  {}", decided(part))));
    }
    for command in &checked.commands {
        text.push('\n');
        text.push_str(&explained(command, width));
    }
    text
}

fn decided(part: &CheckedPart) -> String {
    let s = permissions::verdict(part.verdict).tone.style();
    let mut text = format!(
        "{s}{:<5}{s:#} {} {} {DIM}{}{DIM:#}\n",
        part.verdict.as_str(),
        part.category,
        plain(&part.target),
        by(&part.rule, part.verdict)
    );
    if let Some(command) = &part.allowed_with {
        text.push_str(&format!("        {DIM}to allow it from now on:{DIM:#} {}\n", plain(command)));
    }
    text
}

/// A phrase that names what decided: a rule, a grant, a default, or a property of the command (`it only reads`).
fn by(rule: &str, verdict: Verdict) -> String {
    if verdict == Verdict::Ask && rule.starts_with("default of ") {
        return format!("because nothing allows it ({})", one_line(rule));
    }
    let word = match rule.split(' ').next() {
        Some("it") => "because ",
        Some("decided") => "",
        // A doubt, and the rule that it may be about.
        _ if rule.contains(", so it may ") || rule.contains(" may be a command that it runs") => "because ",
        _ => "by ",
    };
    format!("{word}{}", one_line(rule))
}

/// How one command of a line was read, and which rules decide it.
fn explained(command: &ExplainedCommand, width: Option<u16>) -> String {
    let mut text = String::new();
    let Some(line) = &command.command else {
        command.parts.iter().for_each(|part| text.push_str(&format!("{BOLD}redirect{BOLD:#} {}", decided(part))));
        return text;
    };
    text.push_str(&format!("{BOLD}{}{BOLD:#}\n", plain(line)));
    let is_variable = command.words.len() == 1 && command.words[0].text == *line;
    // A shell, `eval`, or a wrapper: the commands that it runs have parts of their own.
    let only_starts = command.known.is_none() && command.reads_only && !is_variable;
    let program = match &command.known {
        None if only_starts => {
            format!("{}, only starts commands or reads", one_line(line.split_whitespace().next().unwrap_or_default()))
        }
        None if is_variable => one_line(&command.words[0].meaning),
        Some(known) => format!("{} ({})", one_line(&known.name), one_line(&known.version)),
        None => "unknown to toold: no table describes it".to_owned(),
    };
    let is_unknown = command.known.is_none() && command.effects.is_empty() && !is_variable && !command.reads_only;
    let reads = if command.reads_only && !only_starts { ", only reads" } else { "" };
    let noun = if is_variable { "assignment" } else { "program" };
    text.push_str(&format!("  {DIM}{noun}{DIM:#} {program}{reads}\n"));
    if !command.effects.is_empty() && command.effects != [Effect::Read] {
        text.push_str(&format!("  {DIM}effects{DIM:#} {}\n", in_words(&command.effects)));
    }
    if is_unknown {
        text.push_str(&format!("  {DIM}effects{DIM:#} not known: rules about effects do not count\n"));
    }
    if !command.words.is_empty() && !is_variable {
        let mut rows = table::new(width);
        for word in &command.words {
            rows.add_row([Cell::new(format!("  {}", one_line(&word.text))), Cell::new(one_line(&word.meaning))]);
        }
        text.push_str(&table::render(&rows));
    }
    if let Some(why) = &command.unsure {
        text.push_str(&format!("  {WARN}not certain{WARN:#} {}\n", one_line(why)));
        text.push_str("    so only a rule for exactly this command allows it, or **\n");
    }
    command.parts.iter().for_each(|part| text.push_str(&format!("  {}", decided(part))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_and_grants_name_where_they_come_from() {
        let list = serde_json::from_value(json!({
            "mode": "accept_edits",
            "rules": [{"category": "shell", "pattern": "git status", "action": "allow", "tools": ["bash"], "source": "/c.toml:3"},
                {"category": "shell", "pattern": "npm test", "action": "allow", "agent": "codex", "source": "/c.toml:7"}],
            "grants": [{"id": "g1", "category": "file.write", "pattern": "src/**", "action": "deny", "scope": "project",
                "project": "/x", "chain": ["p"], "by": "toolctl", "granted_at": "2026-01-01T00:00:00Z"},
                {"id": "g2", "category": "shell", "pattern": "make", "action": "allow", "scope": "always", "by": "toolctl",
                "granted_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T01:00:00Z", "uses": 3,
                "used_at": "2026-01-01T00:30:00Z", "asked": {"agent": "zed", "tool": "bash", "cwd": "/x", "words": "ask me"}}],
            "broken": ["/c.toml:9: unknown category"]
        }))
        .unwrap();
        let text = super::list(&list, None);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        mode accept_edits
        broken /c.toml:9: unknown category

         RULE   CATEGORY  PATTERN     ONLY FOR  FROM
         allow  shell     git status  bash      /c.toml:3
         allow  shell     npm test    codex     /c.toml:7

         GRANT         CATEGORY    PATTERN  SCOPE                              IN  ONLY FOR         FROM                       USED     LAST
         g1     deny   file.write  src/**   project                            /x  calls through p  terminal                   never
         g2     allow  shell       make     always until 2026-01-01 01:00:00Z                       terminal, for zed: ask me  3 times  2026-01-01
        ");
    }

    #[test]
    fn check_lists_each_part() {
        let checked = serde_json::from_value(json!({"verdict": "ask", "rule": "the default of shell", "parts": [
            {"category": "shell", "target": "git status", "verdict": "allow", "rule": "/c.toml:3"},
            {"category": "shell", "target": "rm -rf x", "verdict": "ask", "rule": "the default of shell"}
        ]}))
        .unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&check(&checked, None)).to_string(), @r"
        ask by the default of shell
          allow shell git status by /c.toml:3
          ask   shell rm -rf x by the default of shell
        ");
    }

    #[test]
    fn check_says_because_before_a_reason_and_what_a_shell_does() {
        let doubt = "the program that $x names is unknown, so it may be about this: rule deny shell \"rm *\"";
        let checked = serde_json::from_value(json!({"verdict": "ask", "rule": doubt, "commands": [
            {"command": "bash -c 'ls; $x'", "reads_only": true, "parts": [
                {"category": "shell", "target": "bash -c 'ls; $x'", "verdict": "allow", "rule": "it only reads"}]}
        ]}))
        .unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&check(&checked, None)).to_string(), @r#"
        ask because the program that $x names is unknown, so it may be about this: rule deny shell "rm *"

        bash -c 'ls; $x'
          program bash, only starts commands or reads
          allow shell bash -c 'ls; $x' because it only reads
        "#);
    }
}
