//! Servers that an MCP registry lists, and how each can be run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Params of `mcp.registry.search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchMcpRegistry {
    /// Words that a server's name, title or description contains, separated by spaces: at most 8.
    pub query: String,
    /// At most 100; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Params of `mcp.registry.get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GetRegistryServer {
    /// As the registry writes it, such as `io.github.someone/weather`.
    pub name: String,
    /// The latest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Answer of `mcp.registry.search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegistryServerList {
    /// The registry's base URL.
    pub registry: String,
    /// The best matches first.
    pub servers: Vec<RegistryServer>,
    /// There are more matches than these.
    pub more: bool,
}

/// A server as its registry describes it. Nobody has checked that the description is true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegistryServer {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    pub version: String,
    /// The publisher advises against its use.
    pub deprecated: bool,
    /// The URL of its source code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website: Option<String>,
    /// The ways to run or reach it, in the registry's order.
    pub launches: Vec<RegistryLaunch>,
}

/// One way to run or reach a server: a template of `[mcp.servers.NAME]`.
///
/// In its texts, `${input:NAME}` stands for the value of an input. A text whose input has no value is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegistryLaunch {
    /// `npm`, `pypi`, `oci` and so on: where the package is; `remote` for a server at a URL.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<RegistryInput>,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A value that the user provides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegistryInput {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
    /// Not to be stored or shown in the clear.
    pub secret: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The only values; any when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}
