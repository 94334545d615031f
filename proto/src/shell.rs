//! Background commands, on the wire.

use serde::{Deserialize, Serialize};

use crate::tool::{CallId, SessionId};

/// Params of `shells.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListShells {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Include all sessions; for a person's frontend only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Answer of `shells.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShellList {
    /// The oldest first. Of the commands that have ended, the last 32 of each session.
    pub shells: Vec<ShellInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShellInfo {
    pub shell_id: String,
    pub session_id: SessionId,
    /// The call that started it.
    pub call_id: CallId,
    pub command: String,
    pub cwd: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    pub running: bool,
    /// `running`, or how it ended.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Bytes that it has written, including those that are no longer buffered.
    pub output_bytes: u64,
    /// The size of its terminal, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TerminalSize {
    /// 1 to 1000.
    pub cols: u16,
    /// 1 to 1000.
    pub rows: u16,
}

/// Params of `shells.write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WriteShell {
    /// The id of the background command.
    pub shell_id: String,
    /// The session of the shell, if it is not that of the connection. A person's frontend needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// At most 65536 bytes. End a line with a line feed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Close its input after the text. At a terminal this is the key Ctrl-D.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub eof: bool,
    /// A person types this, so no permission is asked; for a person's frontend only. Otherwise each line needs
    /// permission, as a command of the category `shell` that only `**` and its exact text match.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub typed: bool,
}

/// Params of `shells.resize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResizeShell {
    /// The id of the background command.
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(flatten)]
    pub size: TerminalSize,
}

/// Params of `shells.kill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KillShell {
    /// The id of the background command.
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `shells.kill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KilledShell {
    /// How it ended; by itself, if it had ended already.
    pub status: String,
}

/// Params of `shells.attach`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachShell {
    /// The id of the background command.
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Begin with at most this many bytes of earlier output; 0 for new output only. When absent, all that is
    /// buffered, about 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
}

/// An item of `shells.attach`: a piece of output, or the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ShellOutput {
    Text {
        text: String,
        /// Bytes before this text that were lost because this reader was too slow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// The last item.
    Ended {
        /// How it ended, as text.
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
}
