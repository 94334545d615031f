//! The texts of notifications: one line each, without secrets.

use toold_engine::redact::one_line;
use toold_proto::permission::Ask;
use toold_proto::question::Question;

/// Bytes of the text of one request, and of all.
const MAX_ONE: usize = 300;
const MAX_ALL: usize = 500;

/// A request for permission or a question that waits for a person.
#[derive(Clone, Debug)]
pub(super) struct UnansweredPrompt {
    pub(super) request_id: String,
    is_ask: bool,
    /// Who asks, and by which tool.
    summary: String,
    /// The same, with the folder, and what it is about.
    full: String,
    /// What it is about, if a person who reads `full` may allow it.
    fits_one_line: Option<String>,
}

impl UnansweredPrompt {
    pub(super) fn of_ask(ask: Ask, fits_one_line: bool) -> Self {
        let agents = if ask.agents.is_empty() { ask.agent.into_iter().collect() } else { ask.agents };
        let of = if agents.is_empty() { String::new() } else { format!(" of {}", agents.join(" and ")) };
        let who = format!("{}{of}", ask.tool);
        let part = ask.part.map(|part| format!(", {part} of {}", ask.parts.len())).unwrap_or_default();
        Self {
            request_id: ask.request_id,
            is_ask: true,
            summary: format!("{who} needs approval ({}{part})", ask.category),
            full: format!("{who} in {} needs approval ({}{part}): {}", ask.cwd, ask.category, ask.target),
            fits_one_line: fits_one_line.then_some(ask.target),
        }
    }
}

impl From<Question> for UnansweredPrompt {
    fn from(question: Question) -> Self {
        let asker = question.agent.or(question.tool).unwrap_or_else(|| "a tool".to_owned());
        // Names of agents are their own choice: at its beginning, one could be taken for an option of a program.
        let summary = format!("question of {asker}");
        let full = format!("{summary}: {}", question.question);
        Self { request_id: question.request_id, is_ask: false, summary, full, fits_one_line: None }
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
    /// The requests that can be denied together; empty unless all are requests for permission.
    pub(super) deniable: Vec<String>,
    /// The only request, if `full` shows all of what it is about, and that is enough to allow it.
    pub(super) allowable: Option<String>,
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
        let full = all(&|prompt| prompt.full.clone());
        Self {
            title,
            allowable: match prompts {
                [one] if one.fits_one_line.as_ref().is_some_and(|target| full.ends_with(&format!(": {target}"))) => {
                    Some(one.request_id.clone())
                }
                _ => None,
            },
            full,
            brief: all(&|prompt| prompt.summary.clone()),
            link: page.map(|page| format!("{}#/decide{only}", page_of(page))),
            deniable: match asks == prompts.len() {
                true => prompts.iter().map(|prompt| prompt.request_id.clone()).collect(),
                false => Vec::new(),
            },
        }
    }

    /// For trying out the configuration. `no_allow`: why requests cannot be allowed from a notification, though it says so.
    pub(super) fn test(page: Option<&str>, no_allow: Option<&str>) -> Self {
        let why = no_allow.map(|why| format!(" Requests get no button that allows them: {why}."));
        let text = format!("This is a test of the section [notify].{}", why.unwrap_or_default());
        Self {
            title: "toold: a test".to_owned(),
            full: text.clone(),
            brief: text,
            link: page.map(|page| format!("{}#/decide", page_of(page))),
            deniable: Vec::new(),
            allowable: None,
        }
    }
}

/// The page's URL, of an address with or without the page's path.
pub(super) fn page_of(address: &str) -> String {
    let base = address.trim_end_matches('/');
    format!("{}/page/", base.strip_suffix("/page").unwrap_or(base))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(target: &str) -> UnansweredPrompt {
        UnansweredPrompt::of_ask(whole_ask(target), true)
    }

    fn whole_ask(target: &str) -> Ask {
        serde_json::from_value(json!({"request_id": "ask_e_1", "session_id": "s", "call_id": "c",
            "call_ids": ["c"], "category": "shell", "target": target, "tool": "bash", "agent": "codex",
            "source": {"kind": "builtin", "name": "toold"}, "cwd": "/p", "suggestions": [],
            "asked_at": "2026-01-02T03:04:05Z", "expires_at": "2026-01-02T03:14:05Z"}))
        .unwrap()
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
        assert_eq!(made.full, "bash of codex in /p needs approval (shell): curl -H 'Authorization: [redacted]' ls");
        assert_eq!(made.brief, "bash of codex needs approval (shell)");
        assert_eq!(made.link.as_deref(), Some("https://d:1/page/#/decide/ask_e_1"));
        let parts = json!([{"category": "shell", "target": "a"}, {"category": "shell", "target": "b"}]);
        let part = Ask { part: Some(1), parts: serde_json::from_value(parts).unwrap(), ..whole_ask("a") };
        let made = NotificationText::of(&[UnansweredPrompt::of_ask(part, true)], None);
        assert_eq!(made.full, "bash of codex in /p needs approval (shell, 1 of 2): a");
        let made = NotificationText::of(&[question()], Some("https://d:1"));
        assert_eq!([made.title, made.full], ["toold: a question for you", "question of a tool: Which one?"]);
        assert_eq!(made.link.as_deref(), Some("https://d:1/page/#/decide/question_e_2"));
    }

    #[test]
    fn only_one_that_is_shown_as_it_is_can_be_allowed() {
        let allowable = |prompts: &[UnansweredPrompt]| NotificationText::of(prompts, None).allowable;
        assert_eq!(allowable(&[ask("make all")]).as_deref(), Some("ask_e_1"));
        let long = "x".repeat(MAX_ONE);
        for hidden in ["a\nb", "curl -H 'Authorization: Bearer abcdefghij'", &long] {
            assert_eq!(allowable(&[ask(hidden)]), None, "{hidden}");
        }
        assert_eq!(allowable(&[ask("make"), ask("make")]), None);
        assert_eq!(allowable(&[UnansweredPrompt { fits_one_line: None, ..ask("make") }]), None);
        assert_eq!(allowable(&[question()]), None);
        let deniable = |prompts: &[UnansweredPrompt]| NotificationText::of(prompts, None).deniable;
        assert_eq!(deniable(&[ask("a"), ask("b")]), ["ask_e_1", "ask_e_1"]);
        assert_eq!(deniable(&[ask("a"), question()]), Vec::<String>::new());
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
