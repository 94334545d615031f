//! Questions of tools to people, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::permission::Answerer;
use crate::tool::{CallId, SessionId};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Question {
    pub request_id: String,
    pub session_id: SessionId,
    /// The call that asks.
    pub call_id: CallId,
    /// The tool that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The program whose session the call belongs to, as it named itself; absent when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    pub question: String,
    /// Empty when only free text can answer.
    pub options: Vec<QuestionOption>,
    /// Whether more than one option can be chosen.
    pub multiple: bool,
    /// Whether free text is an answer.
    pub allow_other: bool,
    /// The JSON Schema of an object: a form to fill in. The answer is `content`, or a text that is such an object
    /// or, for a form with one field, the value of that field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The tool's name for a form, for clients that are asked several things at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// RFC 3339, UTC.
    pub asked_at: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionOption {
    /// The id that an answer names; unique within its question.
    pub id: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An item of `questions.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuestionEvent {
    Asked { request: Box<Question> },
    Resolved(QuestionResolved),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionResolved {
    pub request_id: String,
    pub action: QuestionEnd,
    /// Who answered; absent when nobody did.
    #[serde(default)]
    pub by: Option<Answerer>,
    /// How it ended, in words: `answered by nvim`, `the call ended`.
    #[serde(default)]
    pub how: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    Answered,
    /// A person declined to answer, or the call was cancelled.
    Cancelled,
    Expired,
}

/// Params of `questions.reply`: `answer_ids`, `answer` (both when several answers are allowed), `content` for a form,
/// `declined` or `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplyQuestion {
    /// The id of the question.
    pub request_id: String,
    /// The ids of the chosen options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ids: Option<Vec<String>>,
    /// Free text, if the question allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The fields of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// The person declines. Tools that ask with a form can tell this from `cancelled`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declined: bool,
    /// The person does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}
