//! How much of a model's context the lists of tools take.

use serde::{Deserialize, Serialize};

use crate::call::{ListingMode, ToolFormat};
use crate::tool::{SessionId, Source};

/// Params of `tools.cost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MeasureTools {
    /// The form in which a model gets the tools; `anthropic` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ToolFormat>,
    /// The session whose tools are measured; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `tools.cost`. Tokens are estimated: a token for each four bytes of the JSON that the provider is sent, rounded up
/// for each tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolCosts {
    pub format: ToolFormat,
    /// The whole list.
    pub all: ListCost,
    /// The short list: pinned tools, `tools_search` and `tools_call`.
    pub deferred: ListCost,
    /// Parts of the two lists, the largest first. `tools_search` and `tools_call` are not in a source.
    pub sources: Vec<SourceCost>,
    /// Clients that the caller sees a session of in this project, and for people those that the configuration names; by name.
    pub clients: Vec<ClientCost>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListCost {
    pub tools: u64,
    pub tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceCost {
    pub source: Source,
    pub all: ListCost,
    /// Its pinned tools.
    pub deferred: ListCost,
}

/// The list that a client gets if it does not choose one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientCost {
    pub client: String,
    pub listing: ListingMode,
    pub list: ListCost,
}
