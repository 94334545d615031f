//! A tool's question as text, and the keys that answer it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::Map;
use toold_proto::question::{Question, QuestionEnd, QuestionResolved, ReplyQuestion};

use crate::form;
use crate::output::{BOLD, DIM, GOOD, NAME, WARN, one_line, plain};

/// The chosen options, by their position.
pub(crate) type Chosen = BTreeSet<usize>;

/// The question and the keys that answer it.
pub(crate) fn show(question: &Question, out: &mut impl Write) -> io::Result<()> {
    let text = plain(question.question.trim()).replace('\n', "\n  ");
    writeln!(out, "{WARN}{BOLD}?{BOLD:#}{WARN:#} {BOLD}{text}{BOLD:#}")?;
    for (option, key) in question.options.iter().zip('1'..='9') {
        let description = option.description.as_deref().map(|text| format!("  {DIM}{}{DIM:#}", one_line(text)));
        writeln!(out, "  {NAME}{key}{NAME:#}  {}{}", one_line(&option.label), description.unwrap_or_default())?;
    }
    for (name, field) in question.schema.iter().flat_map(|schema| schema["properties"].as_object()).flatten() {
        let about = [&field["description"], &field["title"], &field["type"]].into_iter().find_map(|text| text.as_str());
        writeln!(out, "  {NAME}{}{NAME:#}  {}", one_line(name), one_line(about.unwrap_or_default()))?;
    }
    if question.multiple {
        writeln!(out, "  {DIM}choose any number; Enter sends{DIM:#}")?;
    }
    if question.schema.is_some() {
        writeln!(out, "  {NAME}f{NAME:#}  fill in the form")?;
    } else if takes_text(question) {
        writeln!(out, "  {NAME}o{NAME:#}  answer in your own words")?;
    }
    writeln!(out, "  {NAME}n{NAME:#}  do not answer")
}

/// The options chosen so far, of a question that takes several.
pub(crate) fn show_chosen(question: &Question, chosen: &Chosen, out: &mut impl Write) -> io::Result<()> {
    let labels: Vec<String> =
        chosen.iter().filter_map(|at| question.options.get(*at)).map(|option| one_line(&option.label)).collect();
    writeln!(out, "  {DIM}chosen:{DIM:#} {}", if labels.is_empty() { "none".to_owned() } else { labels.join(", ") })
}

pub(crate) fn takes_text(question: &Question) -> bool {
    question.schema.is_none() && (question.allow_other || question.options.is_empty())
}

/// Asks for the fields of the question one by one. Blocks on the terminal; `None` when the person cancels.
///
/// # Errors
/// When the terminal fails.
pub(crate) fn fill_form(question: &Question) -> anyhow::Result<Option<ReplyQuestion>> {
    let schema = question.schema.clone().unwrap_or_default();
    let Some(content) = form::fill_schema(&schema, "Send", &Map::new(), &[])? else { return Ok(None) };
    let request_id = question.request_id.clone();
    Ok(Some(ReplyQuestion { request_id, content: Some(content), ..ReplyQuestion::default() }))
}

/// The position of the option that a key selects.
pub(crate) fn option(question: &Question, key: char) -> Option<usize> {
    let at = '1'..='9';
    at.zip(0..question.options.len()).find(|(name, _)| *name == key).map(|(_, at)| at)
}

pub(crate) fn options_reply(question: &Question, chosen: &Chosen) -> ReplyQuestion {
    let ids = chosen.iter().filter_map(|at| question.options.get(*at)).map(|option| option.id.clone()).collect();
    ReplyQuestion { request_id: question.request_id.clone(), answer_ids: Some(ids), ..ReplyQuestion::default() }
}

/// A text, together with the chosen options.
pub(crate) fn text_reply(question: &Question, chosen: &Chosen, text: String) -> ReplyQuestion {
    let mut reply = options_reply(question, chosen);
    reply.answer_ids = reply.answer_ids.filter(|ids| !ids.is_empty());
    ReplyQuestion { answer: Some(text), ..reply }
}

pub(crate) fn no_reply(question: &Question) -> ReplyQuestion {
    ReplyQuestion { request_id: question.request_id.clone(), cancelled: true, ..ReplyQuestion::default() }
}

/// The outcome, on one line.
pub(crate) fn end(resolved: &QuestionResolved) -> String {
    let by = resolved.by.as_ref().and_then(|by| by.client.as_deref());
    let by = by.map(|client| format!(" {DIM}by {}{DIM:#}", one_line(client))).unwrap_or_default();
    match resolved.action {
        QuestionEnd::Answered => format!("{GOOD}answered{GOOD:#}{by}"),
        QuestionEnd::Cancelled => format!("{DIM}not answered{DIM:#}{by}"),
        QuestionEnd::Expired => format!("{DIM}expired: nobody answered in time{DIM:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question() -> Question {
        serde_json::from_value(json!({
            "request_id": "q1", "session_id": "s", "call_id": "c", "question": "Which\u{1b}[2J one?\nReally?",
            "options": [{"id": "a", "label": "The first", "description": "is old"}, {"id": "b", "label": "The second"}],
            "multiple": true, "allow_other": true, "asked_at": "", "expires_at": ""
        }))
        .unwrap()
    }

    #[test]
    fn a_question_names_its_keys() {
        let mut out = Vec::new();
        show(&question(), &mut out).unwrap();
        show_chosen(&question(), &Chosen::from([1]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        ? Which\u{1b}[2J one?
          Really?
          1  The first  is old
          2  The second
          choose any number; Enter sends
          o  answer in your own words
          n  do not answer
          chosen: The second
        ");
    }

    #[test]
    fn a_reply_names_the_options_by_id() {
        let question = question();
        assert_eq!((option(&question, '2'), option(&question, '3')), (Some(1), None));
        let chosen = Chosen::from([0, 1]);
        assert_eq!(options_reply(&question, &chosen).answer_ids.unwrap(), ["a", "b"]);
        let text = text_reply(&question, &Chosen::new(), "x".to_owned());
        assert_eq!((text.answer_ids, text.answer.as_deref()), (None, Some("x")));
        assert!(no_reply(&question).cancelled);
    }
}
