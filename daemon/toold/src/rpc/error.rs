//! The one place that maps errors to the wire.

use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use toold_engine::call::CallError;
use toold_proto::error::{self, ErrorData};

use crate::peer::Unproven;

pub(super) fn object(code: i32, words: &str, data: ErrorData) -> ErrorObjectOwned {
    ErrorObject::owned(code, words, Some(data))
}

pub(super) fn invalid_params(words: &str) -> ErrorObjectOwned {
    object(error::INVALID_PARAMS, &format!("invalid params: {words}"), ErrorData::new("invalid_params"))
}

pub(super) fn internal(words: &str) -> ErrorObjectOwned {
    object(error::INTERNAL_ERROR, words, ErrorData::new("internal"))
}

/// An answer of this many bytes.
pub(super) fn too_large(length: usize, max: usize) -> ErrorObjectOwned {
    let words = format!("the answer has {length} bytes, more than the limit of {max}");
    object(error::INTERNAL_ERROR, &words, ErrorData::new("too_large"))
}

/// A parameter names something that does not exist. Its kind has underscores, such as `mcp_server`.
pub(super) fn unknown(what: &str, name: &str) -> ErrorObjectOwned {
    let shown = what.replace("mcp_", "MCP ").replace('_', " ");
    object(error::UNKNOWN, &format!("there is no {shown} {name}"), ErrorData::new(&format!("unknown_{what}")))
}

/// The kind for data that cannot be stored: the disk is full, the database is damaged or read-only.
pub(super) const NOT_KEPT: &str = "not_kept";

/// An operation that failed, with a kind of its own.
pub(super) fn refused(kind: &str, words: &str) -> ErrorObjectOwned {
    object(error::EXECUTION_FAILED, words, ErrorData::new(kind))
}

/// `agent`: the process id of the agent that the caller is a descendant of, if there is one.
pub(super) fn not_for(method: &str, agent: Option<u32>) -> ErrorObjectOwned {
    let mut words = format!("{method} is for a person's client: agents and processes that tools start may not call it");
    if let Some(pid) = agent {
        words.push_str(&format!(
            ". This program was started by process {pid}, which runs an agent, or can't be told from one that was: use a \
             terminal or an editor outside of it"
        ));
    }
    object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied"))
}

/// The client cannot be told from one that an agent left behind.
pub(super) fn needs_code(method: &str, why: Unproven) -> ErrorObjectOwned {
    const CONFIRM: &str = "A person confirms it: `toolctl agents confirm` in another terminal prints a code, and the page makes \
                           one, which this program gives with `toolctl agents confirm CODE` or permissions.confirm";
    let why = match why {
        Unproven::NoTerminal => format!(
            "this program has no terminal and its parent has ended, so that an agent may have left it behind. {CONFIRM}"
        ),
        Unproven::Terminal => {
            format!("an agent has run here, and may have made this program's terminal or left it behind. {CONFIRM}")
        }
        Unproven::ChildOfFirst => "an agent has run here, and the shell of this terminal is process 1, which also adopts the \
                                   programs that agents leave behind. Decide in a terminal that is opened from outside, such as \
                                   with `docker exec -it CONTAINER bash`. Or start another shell here (`bash`), and type \
                                   `toolctl agents confirm CODE` in it, with the code that `toolctl agents confirm` prints in a \
                                   terminal from outside; a shell that was started before the first agent needs none"
            .to_owned(),
    };
    let words = format!("{method} is for a person's client: {why}");
    object(error::PERMISSION_DENIED, &words, ErrorData::new("confirmation_required"))
}

pub(super) fn not_for_page(method: &str) -> ErrorObjectOwned {
    let words = format!("{method} is not for the page: use toolctl or an editor");
    object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied"))
}

pub(super) fn not_on_http(method: &str) -> ErrorObjectOwned {
    let words = format!("{method} is for a person's client on the daemon's socket, not for a token: use toolctl");
    object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied"))
}

pub(super) fn of_call(error: CallError) -> ErrorObjectOwned {
    let words = error.to_string();
    match error {
        CallError::InvalidArgs { errors, .. } => {
            object(error::INVALID_PARAMS, &words, ErrorData { errors, ..ErrorData::new("invalid_args") })
        }
        CallError::UnknownTool { suggestions, .. } => {
            object(error::UNKNOWN_TOOL, &words, ErrorData { suggestions, ..ErrorData::new("unknown_tool") })
        }
        CallError::DuplicateCallId(_) => object(error::INVALID_PARAMS, &words, ErrorData::new("invalid_params")),
        CallError::PermissionEngine(_) => object(error::PERMISSION_DENIED, &words, ErrorData::new("permission_denied")),
        CallError::Failed(_) => object(error::EXECUTION_FAILED, &words, ErrorData::new("execution_failed")),
        CallError::Overloaded(_) => object(error::OVERLOADED, &words, ErrorData::new("overloaded")),
        CallError::Cancelled | CallError::Ended => object(error::CANCELLED, &words, ErrorData::new("cancelled")),
    }
}
