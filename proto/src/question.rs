//! Questions of tools to people: what is asked, what can be answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::permission::Answerer;
use crate::tool::{CallId, SessionId};

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    pub request_id: String,
    pub session_id: SessionId,
    /// The call that asks.
    pub call_id: CallId,
    pub question: String,
    /// None when only a text can answer.
    pub options: Vec<QuestionOption>,
    /// Whether more than one option can be chosen.
    pub multiple: bool,
    /// Whether a text of one's own is an answer.
    pub allow_other: bool,
    /// A JSON Schema of an object: a form to fill in. `content` answers it, or a text that is such an object
    /// or, of a form of one field, that field's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What the tool calls a form, for clients that are asked several things at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// RFC 3339, UTC.
    pub asked_at: String,
    /// RFC 3339, UTC.
    pub expires_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// What an answer names; unique in its question.
    pub id: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An item of `questions.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QuestionEvent {
    Asked { request: Box<Question> },
    Resolved(QuestionResolved),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionResolved {
    pub request_id: String,
    pub action: QuestionEnd,
    /// Who answered; absent when nobody did.
    #[serde(default)]
    pub by: Option<Answerer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    Answered,
    /// A person declined to answer, or the call was cancelled.
    Cancelled,
    Expired,
}

/// Params of `questions.reply`: `answer_ids`, `answer`, both where several answers are taken, `content` for a form,
/// `declined` or `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyQuestion {
    pub request_id: String,
    /// Ids of chosen options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ids: Option<Vec<String>>,
    /// A text of one's own, where the question allows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The fields of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// The person says no. Tools that fill in forms can tell it from `cancelled`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declined: bool,
    /// The person does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}
