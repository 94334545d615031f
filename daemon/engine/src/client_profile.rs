//! Profiles of clients: which tools a client gets, in which list, mode and folders. A profile only leaves out; permissions
//! are decided as without it.

use std::path::PathBuf;

use globset::{Glob, GlobSet, GlobSetBuilder};
use toold_proto::call::ListingMode;
use toold_proto::level::Level;
use toold_proto::session::Mode;
use toold_proto::tool::Source;

/// A profile, as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientProfile {
    pub name: String,
    /// Globs over the own names of tools; all when absent.
    pub tools: Option<Vec<String>>,
    pub without_tools: Vec<String>,
    /// Globs over kinds and names of sources; all when absent.
    pub sources: Option<Vec<String>>,
    pub without_sources: Vec<String>,
    /// The list that its clients get if they do not choose one.
    pub listing: Option<ListingMode>,
    /// In which a session begins.
    pub mode: Mode,
    /// Lowers the level of the configuration in its sessions.
    pub level: Option<Level>,
    /// The only workspaces, with the folders in them, among those that a person chose; all when absent.
    pub workspaces: Option<Vec<PathBuf>>,
    /// Whether tools that it leaves out cannot be called by other tools, either.
    pub binds_inner_calls: bool,
}

impl ClientProfile {
    pub(crate) fn filter(&self) -> Result<ProfileFilter, globset::Error> {
        Ok(ProfileFilter {
            tools: self.tools.as_deref().map(globs).transpose()?,
            without_tools: globs(&self.without_tools)?,
            sources: self.sources.as_deref().map(globs).transpose()?,
            without_sources: globs(&self.without_sources)?,
            listing: self.listing,
            binds_inner_calls: self.binds_inner_calls,
        })
    }
}

/// The compiled globs of a profile.
#[derive(Debug)]
pub(crate) struct ProfileFilter {
    tools: Option<GlobSet>,
    without_tools: GlobSet,
    sources: Option<GlobSet>,
    without_sources: GlobSet,
    pub(crate) listing: Option<ListingMode>,
    pub(crate) binds_inner_calls: bool,
}

impl ProfileFilter {
    /// A tool is left out by its own name, and by the one that a person gave it.
    pub(crate) fn allows_tool(&self, own_name: &str, name: &str, source: &Source) -> bool {
        self.tools.as_ref().is_none_or(|globs| globs.is_match(own_name))
            && ![own_name, name].iter().any(|name| self.without_tools.is_match(name))
            && self.allows_source(source)
    }

    pub(crate) fn allows_source(&self, source: &Source) -> bool {
        let is_of = |globs: &GlobSet| globs.is_match(source.kind.as_str()) || globs.is_match(&source.name);
        self.sources.as_ref().is_none_or(is_of) && !is_of(&self.without_sources)
    }
}

fn globs(texts: &[String]) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for text in texts {
        builder.add(Glob::new(text)?);
    }
    builder.build()
}
