//! How each agent is answered: one table for each agent and event, which [`page`] prints for the documentation.
//!
//! Agents differ in the decisions that a hook of theirs may give. A decision that the event cannot express becomes silence,
//! if the agent then asks or decides by itself, or a denial, if it would run the tool.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::clock::with_times;
use crate::commands::hook::HookAgent;

/// A judgement of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookJudgement {
    pub(crate) decision: JudgedDecision,
    pub(crate) by: JudgedBy,
    pub(crate) reason: String,
    /// The question is about a write that makes other programs run code later.
    pub(crate) protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedDecision {
    Allow,
    Deny,
    Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedBy {
    Rule,
    Person,
    /// Nothing applies.
    Default,
    /// A person was asked and did not answer, or the daemon gave no judgement.
    Nobody,
}

impl JudgedDecision {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl HookJudgement {
    /// Nobody could judge it: a person is asked, as when a rule says so.
    pub(crate) fn not_judged(reason: &str) -> Self {
        Self { decision: JudgedDecision::Ask, by: JudgedBy::Rule, reason: reason.to_owned(), protected: false }
    }

    /// Nobody answered: the agent asks where it surely can; otherwise the tool does not run.
    pub(crate) fn nobody_answered(reason: &str) -> Self {
        Self { by: JudgedBy::Nobody, ..Self::not_judged(reason) }
    }

    /// Reads the answer of `permissions.request`. A decision that this version does not know allows nothing.
    pub(crate) fn read(answer: &Value) -> Self {
        let decision = match answer["decision"].as_str() {
            Some("allow") => JudgedDecision::Allow,
            Some("deny") => JudgedDecision::Deny,
            _ => JudgedDecision::Ask,
        };
        let by = match answer["by"].as_str() {
            Some("person") => JudgedBy::Person,
            Some("default") => JudgedBy::Default,
            _ => JudgedBy::Rule,
        };
        let reason = with_times(answer["reason"].as_str().unwrap_or("no reason was given"));
        Self { decision, by, reason, protected: answer["protected"] == true }
    }
}

/// The answer to one decision, and the agent's behaviour then.
#[derive(Debug)]
pub(crate) struct AnswerCell {
    say: AnswerKind,
    effect: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    /// The decision, in the agent's form.
    Say,
    Silence,
    /// Nothing: the event is the agent's own prompt, which goes on.
    OwnPrompt,
    /// The decision, if a person made it; silence otherwise.
    SayOfPerson,
    /// A denial, whose reason names the command that allows it.
    Deny,
}

/// How an event is answered.
#[derive(Debug)]
pub(crate) struct AnswerRow {
    agent: HookAgent,
    pub(crate) event: &'static str,
    form: AnswerForm,
    allow: AnswerCell,
    deny: AnswerCell,
    /// When a rule says that a person is asked. When nothing applies, the answer is always silence.
    ask: AnswerCell,
    /// The agent's behaviour without an answer.
    silence: &'static str,
    /// Whether the agent's own rules that deny hold against an allow.
    own_denials: OwnDenials,
}

/// Whether a denial of the agent's own rules holds when a hook says allow; with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnDenials {
    Hold(&'static str),
    /// No hook of the event can allow.
    Untouched,
    /// An allow overrides them, so that it is not said.
    Overridden(&'static str),
    /// No source tells, so that an allow is not said.
    NotKnown,
}

impl OwnDenials {
    fn words(self) -> String {
        match self {
            Self::Hold(source) => format!("hold ({source})"),
            Self::Untouched => "hold: a hook cannot allow".to_owned(),
            Self::Overridden(source) => format!("would be overridden ({source})"),
            Self::NotKnown => "not documented".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerForm {
    /// `hookSpecificOutput.permissionDecision`
    PermissionDecision,
    /// `hookSpecificOutput.decision.behavior`
    Behavior,
    /// `decision` and `reason`
    Decision,
    /// `permission` and messages
    Permission,
    /// `permission` alone
    BarePermission,
    /// `permissionDecision` at the top
    PlainPermissionDecision,
    /// `behavior` at the top
    PlainBehavior,
}

/// The version that was run with its hooks for the tables of answers, limits and modes; `None` for agents of which only the
/// documentation was read.
pub(crate) fn version_tried(agent: HookAgent) -> Option<&'static str> {
    match agent {
        HookAgent::ClaudeCode => Some("2.1.332"),
        HookAgent::Codex => Some("0.171.0"),
        HookAgent::Gemini => Some("0.61.0"),
        HookAgent::Copilot => Some("1.0.102"),
        HookAgent::Opencode => Some("1.18.33"),
        HookAgent::QwenCode => Some("0.24.4"),
        HookAgent::Cursor | HookAgent::Vscode => None,
    }
}

const fn say(effect: &'static str) -> AnswerCell {
    AnswerCell { say: AnswerKind::Say, effect }
}

const fn silence(effect: &'static str) -> AnswerCell {
    AnswerCell { say: AnswerKind::Silence, effect }
}

const fn deny(effect: &'static str) -> AnswerCell {
    AnswerCell { say: AnswerKind::Deny, effect }
}

const fn own_prompt(effect: &'static str) -> AnswerCell {
    AnswerCell { say: AnswerKind::OwnPrompt, effect }
}

const BLOCKED: &str = "does not run; the model reads the reason";
const CANNOT_ASK: &str = "does not run: a hook cannot make it ask";

/// All events that are answered.
pub(crate) const TABLE: &[AnswerRow] = &[
    AnswerRow {
        agent: HookAgent::ClaudeCode,
        event: "PreToolUse",
        form: AnswerForm::PermissionDecision,
        allow: say("runs without a prompt, unless a deny or ask rule of its own matches"),
        deny: say(BLOCKED),
        ask: say("asks, in the modes bypassPermissions and dontAsk too; does not run where nobody can answer"),
        silence: "its own rules and mode decide",
        own_denials: OwnDenials::Hold("tried with permissions.deny"),
    },
    AnswerRow {
        agent: HookAgent::ClaudeCode,
        event: "PermissionRequest",
        form: AnswerForm::Behavior,
        // An allow of PreToolUse was not enough: a rule of Claude Code wants a person.
        allow: AnswerCell { say: AnswerKind::SayOfPerson, effect: "answers the prompt, if a person decided" },
        deny: say(BLOCKED),
        ask: own_prompt("asks"),
        silence: "asks",
        own_denials: OwnDenials::Hold("its documentation: a denial comes before the prompt"),
    },
    AnswerRow {
        agent: HookAgent::Codex,
        event: "PreToolUse",
        form: AnswerForm::PermissionDecision,
        // It takes an allow without a changed input for an error of the hook.
        allow: silence("its sandbox and approval policy decide; PermissionRequest then allows"),
        deny: say(BLOCKED),
        ask: deny(CANNOT_ASK),
        silence: "its sandbox and approval policy decide",
        own_denials: OwnDenials::Untouched,
    },
    AnswerRow {
        agent: HookAgent::Codex,
        event: "PermissionRequest",
        form: AnswerForm::Behavior,
        allow: say("answers the prompt"),
        deny: say(BLOCKED),
        ask: own_prompt("asks"),
        silence: "asks",
        own_denials: OwnDenials::Hold("its source: a forbidden command is refused before the prompt"),
    },
    AnswerRow {
        agent: HookAgent::Gemini,
        event: "BeforeTool",
        form: AnswerForm::Decision,
        allow: silence("its own policy decides; a hook cannot take its prompt away"),
        deny: say(BLOCKED),
        ask: say(
            "asks, in the mode yolo too, and where a rule of its own denies; without a terminal or with -p, the answer is `deny`",
        ),
        silence: "its own policy decides",
        own_denials: OwnDenials::Untouched,
    },
    AnswerRow {
        agent: HookAgent::Cursor,
        event: "beforeShellExecution",
        form: AnswerForm::Permission,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: say("asks; reported to run unasked in the mode Auto-review (3.21.16)"),
        silence: "its own rules decide",
        own_denials: OwnDenials::NotKnown,
    },
    AnswerRow {
        agent: HookAgent::Cursor,
        event: "beforeMCPExecution",
        form: AnswerForm::Permission,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: say("asks"),
        silence: "its own rules decide",
        own_denials: OwnDenials::NotKnown,
    },
    AnswerRow {
        agent: HookAgent::Cursor,
        event: "beforeReadFile",
        form: AnswerForm::BarePermission,
        allow: silence("reads"),
        deny: say("does not read"),
        ask: deny("does not read: a hook cannot make it ask"),
        silence: "reads",
        own_denials: OwnDenials::NotKnown,
    },
    AnswerRow {
        agent: HookAgent::Cursor,
        event: "preToolUse",
        form: AnswerForm::Permission,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: deny(CANNOT_ASK),
        silence: "its own rules decide",
        own_denials: OwnDenials::NotKnown,
    },
    AnswerRow {
        agent: HookAgent::Copilot,
        event: "preToolUse",
        form: AnswerForm::PlainPermissionDecision,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: say("asks; does not run where nobody can answer"),
        silence: "its own rules decide",
        own_denials: OwnDenials::Overridden("tried with --deny-tool"),
    },
    AnswerRow {
        agent: HookAgent::Copilot,
        event: "permissionRequest",
        form: AnswerForm::PlainBehavior,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: silence("its own rules decide"),
        silence: "its own rules decide",
        own_denials: OwnDenials::Overridden("tried with --deny-tool"),
    },
    AnswerRow {
        agent: HookAgent::Opencode,
        event: "tool.execute.before",
        form: AnswerForm::Decision,
        allow: silence("its own permissions decide; a plugin cannot take its prompt away"),
        deny: say(BLOCKED),
        ask: deny(CANNOT_ASK),
        silence: "its own permissions decide",
        own_denials: OwnDenials::Untouched,
    },
    AnswerRow {
        agent: HookAgent::QwenCode,
        event: "PreToolUse",
        form: AnswerForm::PermissionDecision,
        allow: say("runs without a prompt, unless a deny rule of its own matches"),
        deny: say(BLOCKED),
        ask: say("asks, in the mode yolo too; does not run where nobody can answer"),
        silence: "its own rules and mode decide",
        own_denials: OwnDenials::Hold("tried with permissions.deny"),
    },
    AnswerRow {
        agent: HookAgent::QwenCode,
        event: "PermissionRequest",
        form: AnswerForm::Behavior,
        allow: AnswerCell { say: AnswerKind::SayOfPerson, effect: "answers the prompt, if a person decided" },
        deny: say(BLOCKED),
        ask: own_prompt("asks"),
        silence: "asks",
        own_denials: OwnDenials::Hold("tried with permissions.deny: it comes before the prompt"),
    },
    AnswerRow {
        agent: HookAgent::Vscode,
        event: "PreToolUse",
        form: AnswerForm::PermissionDecision,
        allow: silence("its own rules decide"),
        deny: say(BLOCKED),
        ask: say("asks"),
        silence: "its own rules decide",
        own_denials: OwnDenials::Overridden("its code: an allow takes its prompt away"),
    },
];

pub(crate) fn row(agent: HookAgent, event: &str) -> Option<&'static AnswerRow> {
    TABLE.iter().find(|row| row.agent == agent && row.event == event)
}

impl AnswerRow {
    /// The text for the agent; `None` is silence.
    pub(crate) fn answer(&self, judged: &HookJudgement, asking: AgentAsking) -> Option<Value> {
        let decision = self.decision(judged, asking)?;
        Some(self.form.write(self.event, decision, &judged.reason))
    }

    /// Whether the agent runs a tool unasked that changes a protected file, although the hook says that it should ask: Claude
    /// Code has a check of its own for many of these files, whose question takes the place of the hook's and is then skipped
    /// in this mode (tried).
    pub(crate) fn is_silent_about_protected(&self, mode: Option<&str>) -> bool {
        self.agent == HookAgent::ClaudeCode && mode == Some("bypassPermissions")
    }

    fn decision(&self, judged: &HookJudgement, asking: AgentAsking) -> Option<JudgedDecision> {
        let cell = match judged.decision {
            JudgedDecision::Allow => &self.allow,
            JudgedDecision::Deny => &self.deny,
            // Nothing applies, so that the agent decides as it would without the hook.
            JudgedDecision::Ask if judged.by == JudgedBy::Default => return None,
            JudgedDecision::Ask => &self.ask,
        };
        let asks = judged.decision == JudgedDecision::Ask;
        // Without a terminal, Gemini CLI waits for an answer that cannot come.
        let needs_terminal = judged.by == JudgedBy::Nobody || self.agent == HookAgent::Gemini;
        let cannot_ask = needs_terminal && asking == AgentAsking::NoTerminal;
        match cell.say {
            AnswerKind::Say | AnswerKind::OwnPrompt if asks && cannot_ask => Some(JudgedDecision::Deny),
            AnswerKind::Say => Some(judged.decision),
            AnswerKind::SayOfPerson if judged.by == JudgedBy::Person => Some(judged.decision),
            // Nobody has decided, so that it is not left to rules that may allow it.
            AnswerKind::Silence | AnswerKind::SayOfPerson if asks && judged.by == JudgedBy::Nobody => {
                Some(JudgedDecision::Deny)
            }
            AnswerKind::SayOfPerson | AnswerKind::Silence | AnswerKind::OwnPrompt => None,
            AnswerKind::Deny => Some(JudgedDecision::Deny),
        }
    }

    /// Whether the answer is a denial.
    pub(crate) fn denies(&self, judged: &HookJudgement, asking: AgentAsking) -> bool {
        self.decision(judged, asking) == Some(JudgedDecision::Deny)
    }
}

/// Whether the agent can ask its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentAsking {
    AtTerminal,
    /// It may have another way, such as a window of an editor, or none.
    NoTerminal,
}

impl AnswerForm {
    fn write(self, event: &str, decision: JudgedDecision, reason: &str) -> Value {
        let word = decision.as_str();
        match self {
            Self::PermissionDecision => json!({"hookSpecificOutput": {
                "hookEventName": event, "permissionDecision": word, "permissionDecisionReason": reason,
            }}),
            Self::Behavior => {
                let mut behavior = json!({"behavior": word});
                if decision == JudgedDecision::Deny {
                    behavior["message"] = json!(reason);
                }
                json!({"hookSpecificOutput": {"hookEventName": event, "decision": behavior}})
            }
            // The reason of a question is shown only as a message.
            Self::Decision if decision == JudgedDecision::Ask => json!({"decision": word, "systemMessage": reason}),
            Self::Decision => json!({"decision": word, "reason": reason}),
            Self::Permission if decision == JudgedDecision::Allow => json!({"permission": word}),
            Self::Permission => json!({"permission": word, "user_message": reason, "agent_message": reason}),
            Self::BarePermission => json!({"permission": word}),
            Self::PlainPermissionDecision => json!({"permissionDecision": word, "permissionDecisionReason": reason}),
            Self::PlainBehavior if decision == JudgedDecision::Allow => json!({"behavior": word}),
            Self::PlainBehavior => json!({"behavior": word, "message": reason}),
        }
    }
}

/// The table in Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "| agent | event | allow | deny | ask | silence | its own denials |\n|---|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let cell = |cell: &AnswerCell, word: &str| {
            let said = match cell.say {
                AnswerKind::Say => format!("`{word}`"),
                AnswerKind::SayOfPerson => format!("`{word}` or nothing"),
                AnswerKind::Silence | AnswerKind::OwnPrompt => "nothing".to_owned(),
                AnswerKind::Deny => "`deny`".to_owned(),
            };
            format!("{said}: {}", cell.effect)
        };
        let (allow, deny, ask) = (cell(&row.allow, "allow"), cell(&row.deny, "deny"), cell(&row.ask, "ask"));
        let (agent, event, silence) = (row.agent.title(), row.event, row.silence);
        let own = row.own_denials.words();
        let source = match row.agent {
            HookAgent::Vscode => "1.139.1 (its code)",
            _ => "(documentation of November 2026)",
        };
        let version = version_tried(row.agent).unwrap_or(source);
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {agent} {version} | `{event}` | {allow} | {deny} | {ask} | {silence} | {own} |");
    }
    page
}

/// The text that the model reads beside the result of a tool that has ended; `None` without notes, and for agents whose commands
/// are never confined.
pub(super) fn notes(agent: HookAgent, event: &str, notes: &[String]) -> Option<Value> {
    let takes_notes = agent == HookAgent::ClaudeCode && !notes.is_empty();
    let context = || format!("toold: {}", notes.join("\n"));
    takes_notes.then(|| json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context()}}))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::commands::hook::limits;

    const BYS: [JudgedBy; 4] = [JudgedBy::Rule, JudgedBy::Person, JudgedBy::Default, JudgedBy::Nobody];

    fn judged(decision: JudgedDecision, by: JudgedBy) -> HookJudgement {
        HookJudgement { decision, by, reason: "shell git push".to_owned(), protected: false }
    }

    /// The tables in the documentation.
    #[test]
    fn the_documented_tables_are_these() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/AGENTS.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mut written = text.clone();
        let tables = [("answers", page()), ("limits", limits::page())];
        for (name, page) in &tables {
            let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
            let (before, rest) = written.split_once(&begin).unwrap();
            let (_, after) = rest.split_once(&end).unwrap();
            written = format!("{before}{begin}{page}{end}{after}");
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, written).unwrap();
        } else {
            assert_eq!(text, written, "write it with UPDATE=1");
        }
    }

    /// In the runs of real agents, and in the table that they compare with what happens.
    #[test]
    fn the_versions_that_were_tried_are_those_of_the_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        let (runs, page) = ([read(".ci/lib"), read(".ci/agents")].concat(), read("clients/toolctl/AGENTS.md"));
        let modes = page.split_once("<!-- modes -->").unwrap().1.split_once("<!-- end of modes -->").unwrap().0;
        for agent in HookAgent::ALL {
            let package = match agent {
                HookAgent::ClaudeCode => "@anthropic-ai/claude-code",
                HookAgent::Codex => "@openai/codex",
                HookAgent::Gemini => "@google/gemini-cli",
                HookAgent::Copilot => "@github/copilot",
                HookAgent::Opencode => "opencode-ai",
                HookAgent::QwenCode => "@qwen-code/qwen-code",
                HookAgent::Cursor | HookAgent::Vscode => "",
            };
            let row = |version: &str| modes.contains(&format!("| {} {version} |", agent.name()));
            match version_tried(agent) {
                Some(version) => {
                    assert!(runs.contains(&format!("{package}@{version}")), "{package} {version}");
                    assert!(row(version), "{} {version}", agent.name());
                }
                None => assert!(package.is_empty() && !modes.contains(&format!("| {} ", agent.name()))),
            }
        }
    }

    #[test]
    fn nothing_but_an_allow_of_the_daemon_ever_says_allow() {
        for row in TABLE {
            for by in BYS {
                for decision in [JudgedDecision::Deny, JudgedDecision::Ask] {
                    for asking in [AgentAsking::AtTerminal, AgentAsking::NoTerminal] {
                        let said = row.answer(&judged(decision, by), asking).unwrap_or_default().to_string();
                        assert!(!said.contains("\"allow\""), "{row:?} {decision:?}: {said}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_allow_is_said_only_where_the_agent_s_own_denials_hold() {
        for row in TABLE {
            for by in BYS {
                let said = row.answer(&judged(JudgedDecision::Allow, by), AgentAsking::AtTerminal);
                assert!(said.is_none() || matches!(row.own_denials, OwnDenials::Hold(_)), "{row:?}: {said:?}");
            }
        }
    }

    /// A question that a rule asks: the input could not be read, or a rule may be about it.
    #[test]
    fn a_question_of_a_rule_is_silence_only_where_the_agent_asks_or_an_earlier_event_denied() {
        for row in TABLE {
            let said = row.answer(&judged(JudgedDecision::Ask, JudgedBy::Rule), AgentAsking::AtTerminal);
            let is_prompt = matches!(row.event, "PermissionRequest" | "permissionRequest");
            assert_eq!(said.is_none(), is_prompt, "{row:?}: {said:?}");
        }
    }

    #[test]
    fn no_answer_is_a_question_at_a_terminal_and_a_denial_without_one() {
        let nobody = HookJudgement::nobody_answered("nobody answered");
        for row in TABLE {
            let said = row.answer(&nobody, AgentAsking::NoTerminal);
            assert!(said.is_some_and(|said| said.to_string().contains("\"deny\"")), "{row:?}");
            let said = row.answer(&nobody, AgentAsking::AtTerminal);
            assert!(said.is_some() || row.ask.say == AnswerKind::OwnPrompt, "{row:?}");
        }
    }

    #[test]
    fn every_event_can_say_deny() {
        for row in TABLE {
            let said =
                row.answer(&judged(JudgedDecision::Deny, JudgedBy::Rule), AgentAsking::AtTerminal).unwrap().to_string();
            assert!(said.contains("\"deny\""), "{row:?}: {said}");
        }
    }

    #[test]
    fn an_answer_that_is_not_known_allows_nothing() {
        for answer in [json!({}), json!({"decision": "sure"}), json!(null), json!({"decision": "ALLOW"})] {
            assert_eq!(HookJudgement::read(&answer).decision, JudgedDecision::Ask, "{answer}");
        }
    }
}
