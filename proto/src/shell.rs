//! Commands in the background, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{CallId, SessionId};

/// Params of `shells.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListShells {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Those of all sessions; for a person's frontend only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Answer of `shells.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellList {
    /// The oldest first. Of those that have ended, the last 32 of each session.
    pub shells: Vec<ShellInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// `running`, or how it ended, in words.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Bytes that it has written, the forgotten ones too.
    pub output_bytes: u64,
    /// It has a terminal, of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalSize {
    /// 1 to 1000.
    pub cols: u16,
    /// 1 to 1000.
    pub rows: u16,
}

/// Params of `shells.write`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteShell {
    pub shell_id: String,
    /// The shell's session, where it is not the connection's. A person's frontend needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// At most 65536 bytes. A line that is to be read ends with a line feed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its input ends behind the text. At a terminal this is the key Ctrl-D.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub eof: bool,
    /// A person types this, so nobody is asked: for a person's frontend only. Otherwise each line needs
    /// leave, as a command of the category `shell` that no pattern but `**` and its very text matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub typed: bool,
}

/// Params of `shells.resize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResizeShell {
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(flatten)]
    pub size: TerminalSize,
}

/// Params of `shells.kill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KillShell {
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `shells.kill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KilledShell {
    /// How it ended, in words: of itself, when it was over already.
    pub status: String,
}

/// Params of `shells.attach`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttachShell {
    pub shell_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Begin with this many bytes of what it wrote before, at most; 0 for what comes from now on. All that is
    /// kept, about 1 MiB, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
}

/// An item of `shells.attach`: a piece of output, or the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ShellOutput {
    Text {
        text: String,
        /// Bytes before this text that this reader was too slow for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// The last item.
    Ended {
        /// How it ended, in words.
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
}
