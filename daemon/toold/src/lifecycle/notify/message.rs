//! The texts of notifications: one line each, without secrets.

use toold_engine::redact::one_line;
use toold_proto::permission::Ask;
use toold_proto::question::Question;

/// Bytes of the text of one request, and of all.
const MAX_ONE: usize = 200;
const MAX_ALL: usize = 500;

/// A request for permission or a question that waits for a person.
#[derive(Clone, Debug)]
pub(super) struct UnansweredPrompt {
    pub(super) request_id: String,
    is_ask: bool,
    /// Who asks, and by which tool.
    summary: String,
    /// What it is about.
    details: String,
}

impl From<Ask> for UnansweredPrompt {
    fn from(ask: Ask) -> Self {
        let agents = if ask.agents.is_empty() { ask.agent.into_iter().collect() } else { ask.agents };
        let of = if agents.is_empty() { String::new() } else { format!(" of {}", agents.join(" and ")) };
        let summary = format!("{}{of} needs approval ({})", ask.tool, ask.category);
        Self { request_id: ask.request_id, is_ask: true, summary, details: ask.target }
    }
}

impl From<Question> for UnansweredPrompt {
    fn from(question: Question) -> Self {
        let asker = question.agent.or(question.tool).unwrap_or_else(|| "a tool".to_owned());
        // Names of agents are their own choice: at its beginning, one could be taken for an option of a program.
        let summary = format!("question of {asker}");
        Self { request_id: question.request_id, is_ask: false, summary, details: question.question }
    }
}

/// A notification, before it is known how it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotificationText {
    pub(super) title: String,
    /// Who asks, and for what.
    pub(super) full: String,
    /// The same without what the requests are about.
    pub(super) brief: String,
    pub(super) link: Option<String>,
}

impl NotificationText {
    /// For requests that are reported together; there is at least one. `page`: the address of the page.
    pub(super) fn of(prompts: &[UnansweredPrompt], page: Option<&str>) -> Self {
        let asks = prompts.iter().filter(|prompt| prompt.is_ask).count();
        let title = match (asks, prompts.len() - asks) {
            (1, 0) => "toold: approval needed".to_owned(),
            (0, 1) => "toold: a question for you".to_owned(),
            (asks, 0) => format!("toold: {asks} approvals needed"),
            (0, questions) => format!("toold: {questions} questions for you"),
            (asks, questions) => format!("toold: {} requests for you", asks + questions),
        };
        let all = |text: &dyn Fn(&UnansweredPrompt) -> String| {
            let texts: Vec<String> = prompts.iter().map(|prompt| one_line(&text(prompt), MAX_ONE)).collect();
            one_line(&texts.join("; "), MAX_ALL)
        };
        let only = if let [one] = prompts { format!("/{}", one.request_id) } else { String::new() };
        Self {
            title,
            full: all(&|prompt| format!("{}: {}", prompt.summary, prompt.details)),
            brief: all(&|prompt| prompt.summary.clone()),
            link: page.map(|page| format!("{}#/decide{only}", page_of(page))),
        }
    }

    /// For trying out the configuration.
    pub(super) fn test(page: Option<&str>) -> Self {
        let text = "This is a test of the section [notify].".to_owned();
        Self {
            title: "toold: a test".to_owned(),
            full: text.clone(),
            brief: text,
            link: page.map(|page| format!("{}#/decide", page_of(page))),
        }
    }
}

/// The page's URL, of an address with or without the page's path.
fn page_of(address: &str) -> String {
    let base = address.trim_end_matches('/');
    format!("{}/page/", base.strip_suffix("/page").unwrap_or(base))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(target: &str) -> UnansweredPrompt {
        let ask: Ask = serde_json::from_value(json!({"request_id": "ask_e_1", "session_id": "s", "call_id": "c",
            "call_ids": ["c"], "category": "shell", "target": target, "tool": "bash", "agent": "codex",
            "source": {"kind": "builtin", "name": "toold"}, "cwd": "/p", "suggestions": [],
            "asked_at": "2026-01-02T03:04:05Z", "expires_at": "2026-01-02T03:14:05Z"}))
        .unwrap();
        ask.into()
    }

    fn question() -> UnansweredPrompt {
        let question: Question = serde_json::from_value(json!({"request_id": "question_e_2", "session_id": "s",
            "call_id": "c", "question": "Which one?", "options": [], "multiple": false, "allow_other": true,
            "asked_at": "2026-01-02T03:04:05Z", "expires_at": "2026-01-02T03:14:05Z"}))
        .unwrap();
        question.into()
    }

    #[test]
    fn one_request_is_named_and_linked() {
        let made =
            NotificationText::of(&[ask("curl -H 'Authorization: Bearer abcdefghij'\nls")], Some("https://d:1/page/"));
        assert_eq!(made.title, "toold: approval needed");
        assert_eq!(made.full, "bash of codex needs approval (shell): curl -H 'Authorization: [redacted]' ls");
        assert_eq!(made.brief, "bash of codex needs approval (shell)");
        assert_eq!(made.link.as_deref(), Some("https://d:1/page/#/decide/ask_e_1"));
        let made = NotificationText::of(&[question()], Some("https://d:1"));
        assert_eq!([made.title, made.full], ["toold: a question for you", "question of a tool: Which one?"]);
        assert_eq!(made.link.as_deref(), Some("https://d:1/page/#/decide/question_e_2"));
    }

    #[test]
    fn several_requests_are_one_bounded_text() {
        let many: Vec<UnansweredPrompt> = (0..20).map(|n| ask(&format!("{n} {}", "x".repeat(300)))).collect();
        let made = NotificationText::of(&many, None);
        assert_eq!(made.title, "toold: 20 approvals needed");
        assert!(made.full.len() <= MAX_ALL && made.full.ends_with('…'), "{}", made.full);
        assert_eq!(NotificationText::of(&[ask("ls"), question()], None).title, "toold: 2 requests for you");
        assert_eq!(NotificationText::of(&[question(), question()], None).title, "toold: 2 questions for you");
    }
}
