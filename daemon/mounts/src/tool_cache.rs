//! The last known tools, resources and prompts of each mount, in a file of its own: they are listed before it runs, and
//! show whether a tool is still the one that was allowed.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toold_host::state_file;

use crate::offer_listing::ListedOffers;

#[derive(Serialize, Deserialize)]
pub(crate) struct CachedTools<T, M> {
    /// Digest of the endpoint that the tools came from.
    pub(crate) digest: String,
    pub(crate) tools: Vec<T>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    pub(crate) offers: Option<ListedOffers>,
    /// As the source's status shows them.
    #[serde(default)]
    pub(crate) problems: Vec<String>,
    #[serde(default)]
    pub(crate) left_out: Vec<(String, String)>,
    #[serde(flatten)]
    pub(crate) memory: M,
}

/// Bytes of a file; larger than any accepted list.
const MAX_BYTES: u64 = 32 << 20;

/// `None` when there is no readable file. Blocks.
pub(crate) fn load<T, M>(file: &Path) -> Option<CachedTools<T, M>>
where
    CachedTools<T, M>: serde::de::DeserializeOwned,
{
    state_file::load(file, MAX_BYTES)
}

/// Replaces the file. Blocks.
pub(crate) fn save<T, M>(file: &Path, tools: &CachedTools<T, M>) -> io::Result<()>
where
    CachedTools<T, M>: Serialize,
{
    state_file::save(file, tools)
}
