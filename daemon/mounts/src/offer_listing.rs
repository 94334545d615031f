//! Resources and prompts as a mounted source lists them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toold_proto::offer::PromptArgument;
use toold_proto::tool::{PROMPT_TARGET, RESOURCE_TARGET};

/// Everything that a source offers besides tools. The adapter has checked and bounded it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedOffers {
    pub resources: Vec<ListedResource>,
    pub prompts: Vec<ListedPrompt>,
    /// It completes arguments.
    pub completes: bool,
    /// It reports changes of single resources.
    pub watches: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedResource {
    /// A URI, or a template of RFC 6570.
    pub address: String,
    pub is_template: bool,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    /// The other members of its description, for clients that know them.
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedPrompt {
    /// Its name in the source.
    pub upstream_name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    /// As for a resource.
    pub more: Map<String, Value>,
}

/// A request to a source about one of its offers.
#[derive(Clone, Debug, PartialEq)]
pub enum OfferRequest {
    Read {
        uri: String,
    },
    Render {
        upstream_name: String,
        arguments: Map<String, Value>,
    },
    Complete {
        of: OfferSubject,
        argument: String,
        value: String,
        /// The arguments that have values already.
        given: Map<String, Value>,
    },
}

/// A resource or a prompt by its name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferSubject {
    /// A URI or the text of a template.
    Resource(String),
    Prompt(String),
}

impl OfferSubject {
    /// Its name in rules and grants, among the tools of its source.
    pub(crate) fn target(&self) -> String {
        match self {
            Self::Resource(address) => format!("{RESOURCE_TARGET}{address}"),
            Self::Prompt(name) => format!("{PROMPT_TARGET}{name}"),
        }
    }
}
