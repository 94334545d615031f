//! Calls of tools on other daemons.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toold_engine::cx::Cx;
use toold_engine::tool::{ToolError, ToolOutput};

use crate::member::Member;
use crate::messages::ToolRecord;
use crate::names::FleetName;

/// Where a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTarget {
    Daemon(FleetName),
    /// On any daemon with the label.
    Label(FleetName),
}

/// A call of a tool elsewhere.
pub(crate) struct OutgoingCall<'c> {
    pub(crate) target: &'c CallTarget,
    /// Its name there.
    pub(crate) tool: &'c str,
    /// As it was listed.
    pub(crate) record: &'c ToolRecord,
    pub(crate) arguments: Value,
    /// The tool's own when absent.
    pub(crate) timeout: Option<Duration>,
}

/// Calls the tool, reports its progress and output, and returns its result. Dropping the future cancels the call there.
///
/// # Errors
/// `Cancelled` when the call ends first; otherwise why there is no result, and whether the tool may have run.
pub(crate) async fn call(_member: &Arc<Member>, _call: OutgoingCall<'_>, _cx: &Cx) -> Result<ToolOutput, ToolError> {
    std::future::pending().await
}
