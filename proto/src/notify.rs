//! Notifications outside of clients.

use serde::{Deserialize, Serialize};

/// Answer of `notify.test`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotifyReport {
    /// One for each way that `[notify]` of the configuration sets.
    pub results: Vec<NotifyResult>,
}

/// How a notification was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotifyResult {
    pub way: NotifyWay,
    /// Why it was not sent; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotifyWay {
    Command,
    Desktop,
    Post,
}

impl NotifyWay {
    /// The key of the configuration that sets it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Desktop => "desktop",
            Self::Post => "post",
        }
    }
}
