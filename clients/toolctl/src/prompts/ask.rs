//! A permission prompt as text, and the keys that answer it.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use chrono::{DateTime, TimeDelta, Utc};
use toold_proto::permission::{Action, Ask, ReplyPermission, Resolution, Resolved, Scope};
use toold_proto::tool::Category;

use crate::clock::with_times;
use crate::output::{self, BAD, BOLD, DIM, GOOD, NAME, WARN, one_line, plain, shorten};

/// How many lines of a diff are shown where it cannot be scrolled; a note says how many are hidden.
const MAX_DIFF_LINES: usize = 400;
/// How many characters of a session's id are shown, where it has no name.
const MAX_ID: usize = 20;

/// One way to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskChoice {
    pub(crate) key: char,
    pub(crate) action: Action,
    pub(crate) scope: Scope,
    /// `None` for exactly the ask's target.
    pub(crate) pattern: Option<String>,
    /// What the pattern covers, in words.
    pub(crate) covers: Option<String>,
    /// In seconds.
    pub(crate) expires_in: Option<u64>,
    /// For all parts of the ask.
    pub(crate) all_parts: bool,
    pub(crate) label: Cow<'static, str>,
}

/// Whether a client asks for a workspace and not for one file: every other prompt to read suggests patterns. All
/// answers but those for the session are remembered, for this client and folder.
pub(crate) fn is_for_workspace(ask: &Ask) -> bool {
    ask.category == Category::FileRead && ask.suggestions.is_empty()
}

/// The answers to a prompt: its exact target, for each scope, all parts together, and the wider patterns that it suggests.
pub(crate) fn choices(ask: &Ask) -> Vec<AskChoice> {
    let exact = |key, scope| AskChoice {
        key,
        action: Action::Allow,
        scope,
        pattern: None,
        covers: None,
        expires_in: None,
        all_parts: false,
        label: scope_label(scope, ask),
    };
    let remembered = AskChoice { label: "allow, and remember it for this client".into(), ..exact('y', Scope::Always) };
    let mut choices = if is_for_workspace(ask) {
        vec![remembered, exact('s', Scope::Session)]
    } else if ask.suggestions.is_empty() {
        // Nothing of it can be remembered.
        vec![exact('y', Scope::Once)]
    } else {
        let hour = AskChoice {
            expires_in: Some(3_600),
            label: "allow in this project for 1 hour".into(),
            ..exact('h', Scope::Project)
        };
        let session = exact('s', Scope::Session);
        vec![exact('y', Scope::Once), session, hour, exact('p', Scope::Project), exact('a', Scope::Always)]
    };
    if !ask.parts.is_empty() {
        choices
            .insert(1, AskChoice { all_parts: true, label: "allow all parts once".into(), ..exact('w', Scope::Once) });
    }
    let wider = ask.suggestions.iter().filter(|suggestion| suggestion.pattern != ask.target);
    choices.extend(wider.zip('1'..='9').map(|(suggestion, key)| AskChoice {
        pattern: Some(suggestion.pattern.clone()),
        covers: suggestion.covers.clone(),
        ..exact(key, suggestion.scope)
    }));
    choices.push(AskChoice { action: Action::Deny, label: "deny".into(), ..exact('n', Scope::Once) });
    choices
}

impl AskChoice {
    /// Whether it allows more than what is asked for now: it is remembered, or counts for other parts too.
    pub(crate) fn allows_more(&self) -> bool {
        self.action == Action::Allow && (self.scope != Scope::Once || self.all_parts)
    }

    pub(crate) fn reply(&self, ask: &Ask) -> ReplyPermission {
        ReplyPermission {
            scope: Some(self.scope),
            pattern: self.pattern.clone(),
            expires_in: self.expires_in,
            all_parts: self.all_parts,
            ..ReplyPermission::once(&ask.request_id, self.action)
        }
    }
}

fn scope_label(scope: Scope, ask: &Ask) -> Cow<'static, str> {
    match (scope, &ask.session_name) {
        (Scope::Session, Some(session)) => format!("allow in {}", one_line(session)).into(),
        (Scope::Once, _) => "allow once".into(),
        (Scope::Session, None) => "allow in this session".into(),
        (Scope::Project, _) => "allow in this project".into(),
        (Scope::Always, _) => "allow always".into(),
    }
}

pub(crate) fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Session => "in this session",
        Scope::Project => "in this project",
        Scope::Always => "always",
    }
}

/// The prompt, on as many lines as it takes; of a long diff the start.
pub(crate) fn show(ask: &Ask, out: &mut impl Write) -> io::Result<()> {
    show_up_to(ask, MAX_DIFF_LINES, out)
}

/// [`show`] with the whole diff.
pub(crate) fn show_whole(ask: &Ask, out: &mut impl Write) -> io::Result<()> {
    show_up_to(ask, usize::MAX, out)
}

fn show_up_to(ask: &Ask, diff_lines: usize, out: &mut impl Write) -> io::Result<()> {
    let through = match ask.chain.as_slice() {
        [] => String::new(),
        chain => format!(" {DIM}(through {}){DIM:#}", one_line(&chain.join(", "))),
    };
    let asked_for = if is_for_workspace(ask) { "use this workspace" } else { ask.category.as_str() };
    let part = ask.part.map(|part| format!(" {DIM}({part} of {}){DIM:#}", ask.parts.len())).unwrap_or_default();
    writeln!(
        out,
        "{WARN}{BOLD}?{BOLD:#}{WARN:#} {NAME}{}{NAME:#} asks for permission: {BOLD}{asked_for}{BOLD:#}{part}{through}",
        one_line(&ask.tool),
    )?;
    writeln!(out, "  {BOLD}{}{BOLD:#}", indented(&ask.target, 2))?;
    if let Some(command) = ask.command.as_deref().filter(|command| *command != ask.target) {
        writeln!(out, "  {DIM}command:{DIM:#} {}", indented(command, 11))?;
    }
    for (number, part) in (1..).zip(&ask.parts).filter(|(number, _)| Some(*number) != ask.part) {
        let label = format!("part {number}:");
        let does = part.does.as_ref().map(|does| format!(" {DIM}({}){DIM:#}", one_line(does))).unwrap_or_default();
        writeln!(out, "  {DIM}{label}{DIM:#} {} {}{does}", part.category, indented(&part.target, 3 + label.len()))?;
    }
    writeln!(out, "  {DIM}agent:{DIM:#} {}", askers(ask))?;
    if ask.cwd != ask.target {
        writeln!(out, "  {DIM}folder:{DIM:#} {}", one_line(&ask.cwd))?;
    }
    if let Some(description) = &ask.description {
        writeln!(out, "  {DIM}agent says:{DIM:#} {}", one_line(description))?;
    }
    for warning in &ask.misleading {
        writeln!(out, "  {WARN}careful:{WARN:#} {}", one_line(warning))?;
    }
    if let Some(reason) = &ask.reason {
        writeln!(out, "  {DIM}reason:{DIM:#} {}", one_line(reason))?;
    }
    if let Some(diff) = &ask.diff {
        show_diff_up_to(diff, diff_lines, out)?;
    }
    Ok(())
}

/// How long the prompt waits for an answer, in words, once that is so short that a person has to hurry.
pub(crate) fn time_left(expires_at: &str, now: DateTime<Utc>) -> Option<String> {
    let hurry = TimeDelta::minutes(5);
    let left = DateTime::parse_from_rfc3339(expires_at).ok()?.signed_duration_since(now);
    let shown = match left.num_seconds().max(0).unsigned_abs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => output::duration(seconds * 1_000),
    };
    (left < hurry).then(|| format!("answer within {shown}"))
}

/// The agents that wait for the answer, and the session that an answer for the session counts for, on one line.
pub(crate) fn askers(ask: &Ask) -> String {
    let agents = if ask.agents.is_empty() { ask.agent.as_slice() } else { &ask.agents };
    let mut agents: String = agents.iter().map(|agent| format!("{}, ", one_line(agent))).collect();
    if let Some(subagent) = &ask.subagent {
        agents.push_str(&format!("sub-agent {}, ", one_line(subagent)));
    }
    // As in the answer for the session, unless that is the agent's name again. An id says little to a person.
    let session = match &ask.session_name {
        Some(name) if ask.agent.as_ref().is_some_and(|agent| name.contains(agent.as_str())) => String::new(),
        Some(name) => format!("{}, ", one_line(name)),
        None => format!("session {}, ", shorten(&one_line(ask.session_id.as_str()), MAX_ID)),
    };
    format!("{agents}{session}level {}", ask.level)
}

/// Text whose continuation lines cannot be mistaken for lines of the prompt.
fn indented(text: &str, width: usize) -> String {
    plain(text.trim_end()).replace('\n', &format!("\n{:width$}", ""))
}

pub(crate) fn show_diff(diff: &str, out: &mut impl Write) -> io::Result<()> {
    show_diff_up_to(diff, MAX_DIFF_LINES, out)
}

fn show_diff_up_to(diff: &str, most: usize, out: &mut impl Write) -> io::Result<()> {
    for line in diff.lines().take(most) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            Some(b'@') => NAME,
            _ => Style::new(),
        };
        writeln!(out, "  {style}{}{style:#}", plain(line))?;
    }
    let hidden = diff.lines().count().saturating_sub(most);
    if hidden > 0 {
        writeln!(out, "  {WARN}{hidden} more lines are not shown{}{WARN:#}", plain(&files_after(diff, most)))?;
    }
    Ok(())
}

/// The files that only the lines after the first `most` are about: `, of a, b`.
fn files_after(diff: &str, most: usize) -> String {
    const MAX: usize = 20;
    let (mut names, mut old) = (Vec::new(), "");
    for line in diff.lines().skip(most) {
        if let Some(name) = line.strip_prefix("--- ") {
            old = name;
        } else if let Some(new) = line.strip_prefix("+++ ") {
            let name = if new == "/dev/null" { old.strip_prefix("a/") } else { new.strip_prefix("b/") };
            names.extend(name);
        } else if let Some((name, _)) = line.strip_prefix("# ").and_then(|line| line.split_once(": ")) {
            names.push(name);
        }
    }
    names.retain(|name| !name.starts_with("by "));
    let more = names.len().saturating_sub(MAX);
    names.truncate(MAX);
    match (names.as_slice(), more) {
        ([], _) => String::new(),
        (names, 0) => format!(", of {}", names.join(", ")),
        (names, more) => format!(", of {} and {more} more files", names.join(", ")),
    }
}

/// The keys, one line each; the line shows exactly what is stored.
pub(crate) fn show_choices(choices: &[AskChoice], out: &mut impl Write) -> io::Result<()> {
    for choice in choices {
        let what = choice.pattern.as_ref().map(|pattern| format!(": {BOLD}{}{BOLD:#}", indented(pattern, 5)));
        let covers = choice.covers.as_ref().map(|covers| format!(" {DIM}({}){DIM:#}", one_line(covers)));
        let (what, covers) = (what.unwrap_or_default(), covers.unwrap_or_default());
        writeln!(out, "  {NAME}{}{NAME:#}  {}{what}{covers}", choice.key, choice.label)?;
    }
    writeln!(out, "  {NAME}d{NAME:#}  deny, with a reason")
}

/// The outcome, on one line.
pub(crate) fn end(resolved: &Resolved) -> String {
    let by = resolved.by.as_ref().and_then(|by| by.client.as_deref());
    let by = by.map(|client| format!(" {DIM}by {}{DIM:#}", one_line(client))).unwrap_or_default();
    let scope = resolved.scope.filter(|scope| *scope != Scope::Once);
    let scope = scope.map(|scope| format!(" {}", scope_words(scope))).unwrap_or_default();
    let how = with_times(&one_line(&resolved.how));
    match resolved.action {
        // By a rule, or since nobody can answer any more.
        Resolution::Allow if resolved.by.is_none() && !how.is_empty() => format!("{GOOD}{how}{GOOD:#}"),
        Resolution::Deny if resolved.by.is_none() && how.starts_with("denied") => format!("{BAD}{how}{BAD:#}"),
        Resolution::Deny if resolved.by.is_none() && !how.is_empty() => format!("{BAD}denied{BAD:#}: {how}"),
        Resolution::Expired if !how.is_empty() => format!("{DIM}expired: {how}{DIM:#}"),
        // The daemon's words name the session as people know it.
        Resolution::Allow if resolved.scope == Some(Scope::Session) && !how.is_empty() => {
            format!("{GOOD}{how}{GOOD:#}")
        }
        Resolution::Deny if resolved.scope == Some(Scope::Session) && !how.is_empty() => format!("{BAD}{how}{BAD:#}"),
        Resolution::Allow => format!("{GOOD}allowed{GOOD:#}{scope}{by}"),
        Resolution::Deny => format!("{BAD}denied{BAD:#}{scope}{by}"),
        Resolution::Cancelled => format!("{DIM}closed: its call has ended{DIM:#}"),
        Resolution::Expired => format!("{DIM}expired: nobody answered in time{DIM:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask() -> Ask {
        serde_json::from_value(json!({
            "request_id": "r1", "session_id": "s", "call_id": "c", "call_ids": ["c"], "category": "shell",
            "target": "git push origin", "tool": "bash", "source": {"kind": "builtin", "name": "builtin"},
            "agent": "claude-code", "part": 2,
            "parts": [{"category": "shell", "target": "make"}, {"category": "shell", "target": "git push origin"}],
            "subagent": "Explore (a1)", "session_name": "this claude-code session", "level": "edit",
            "description": "publishes the\nrelease", "misleading": ["it has characters that cannot be seen: U+200B"],
            "cwd": "/home/me/x", "reason": "it publishes", "command": "git push origin && echo \u{1b}[2J\nrm x",
            "diff": "@@ -1 +1 @@\n-a\n+b", "chain": ["gitp"],
            "suggestions": [{"scope": "session", "pattern": "git push origin"}, {"scope": "project", "pattern": "git push *", "covers": "all pushes"}],
            "asked_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:10:00Z"
        }))
        .unwrap()
    }

    #[test]
    fn the_time_that_is_left_is_said_in_the_last_minutes() {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z").unwrap().with_timezone(&Utc);
        for (expires_at, said) in [
            ("2026-01-01T00:06:00Z", None),
            ("2026-01-01T00:01:05Z", Some("answer within 1 min 5 s")),
            ("2026-01-01T00:00:59.900Z", Some("answer within 59 s")),
            ("2025-12-31T23:59:00Z", Some("answer within 0 s")),
            ("", None),
        ] {
            assert_eq!(time_left(expires_at, now).as_deref(), said, "{expires_at}");
        }
    }

    #[test]
    fn files_of_which_no_line_is_shown_are_named() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-1\n-2\n+3\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n# by bash in call 1: rm y\n# y: left out\n";
        let mut out = Vec::new();
        show_diff_up_to(diff, 4, &mut out).unwrap();
        let text = anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string();
        assert!(text.ends_with("  8 more lines are not shown, of gone, y\n"), "{text}");
    }

    #[test]
    fn prompt_shows_the_question_and_what_is_stored() {
        let mut out = Vec::new();
        show(&ask(), &mut out).unwrap();
        show_choices(&choices(&ask()), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        ? bash asks for permission: shell (2 of 2) (through gitp)
          git push origin
          command: git push origin && echo \u{1b}[2J
                   rm x
          part 1: shell make
          agent: claude-code, sub-agent Explore (a1), level edit
          folder: /home/me/x
          agent says: publishes the release
          careful: it has characters that cannot be seen: U+200B
          reason: it publishes
          @@ -1 +1 @@
          -a
          +b
          y  allow once
          w  allow all parts once
          s  allow in this claude-code session
          h  allow in this project for 1 hour
          p  allow in this project
          a  allow always
          1  allow in this project: git push * (all pushes)
          n  deny
          d  deny, with a reason
        ");
    }

    /// All clients describe in the same words what an answer covers, and each is tested with these cases.
    #[test]
    fn answers_are_those_of_all_clients() {
        let cases: serde_json::Value =
            serde_json::from_str(include_str!("../../../../proto/tests/answers.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let ask: Ask = serde_json::from_value(case["ask"].clone()).unwrap();
            let mut out = Vec::new();
            show_choices(&choices(&ask), &mut out).unwrap();
            let text = anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string();
            let shown: Vec<&str> =
                text.lines().filter_map(|line| line.trim().split_once("  ")).map(|line| line.1).collect();
            let expected = case["answers"].as_array().unwrap().iter().map(|answer| answer.as_str().unwrap());
            assert_eq!(shown, expected.chain(["deny, with a reason"]).collect::<Vec<_>>(), "{}", case["name"]);
        }
    }

    #[test]
    fn workspace_prompt_shows_the_client_and_offers_no_patterns() {
        let reason = "use /home/me/docs as a workspace of claude: its tools may read everything in there";
        let ask = Ask {
            category: Category::FileRead,
            target: "/home/me/docs".to_owned(),
            tool: "list".to_owned(),
            cwd: "/home/me/docs".to_owned(),
            reason: Some(reason.to_owned()),
            command: None,
            diff: None,
            chain: Vec::new(),
            suggestions: Vec::new(),
            parts: Vec::new(),
            part: None,
            subagent: None,
            description: None,
            misleading: Vec::new(),
            ..ask()
        };
        let mut out = Vec::new();
        show(&ask, &mut out).unwrap();
        show_choices(&choices(&ask), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        ? list asks for permission: use this workspace
          /home/me/docs
          agent: claude-code, level edit
          reason: use /home/me/docs as a workspace of claude: its tools may read everything in there
          y  allow, and remember it for this client
          s  allow in this claude-code session
          n  deny
          d  deny, with a reason
        ");
        let scopes: Vec<Scope> = choices(&ask).iter().map(|choice| choice.reply(&ask).scope.unwrap()).collect();
        assert_eq!(scopes, [Scope::Always, Scope::Session, Scope::Once]);
    }

    #[test]
    fn what_cannot_be_remembered_is_allowed_once() {
        let ask = Ask {
            category: Category::Mcp,
            target: "s/sampling".to_owned(),
            suggestions: Vec::new(),
            parts: Vec::new(),
            part: None,
            ..ask()
        };
        let keys: String = choices(&ask).iter().map(|choice| choice.key).collect();
        assert_eq!(keys, "yn");
    }

    #[test]
    fn a_wider_pattern_is_sent_as_it_was_shown() {
        let choices = choices(&ask());
        let wider = choices.iter().find(|choice| choice.key == '1').unwrap();
        let reply = wider.reply(&ask());
        assert_eq!((reply.scope, reply.pattern.as_deref()), (Some(Scope::Project), Some("git push *")));
        let exact = choices.iter().find(|choice| choice.key == 's').unwrap().reply(&ask());
        assert_eq!((exact.scope, exact.pattern), (Some(Scope::Session), None));
    }
}
