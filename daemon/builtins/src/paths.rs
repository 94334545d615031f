//! Paths in arguments and in results.
//!
//! [`Located`] is the one way from a path of the arguments to a file: resolved, then judged, and only then looked at,
//! so that no answer depends on something that the caller may not read.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, ResolvedPath};
use toold_host::read_access;
use toold_proto::permission::Verdict;

/// Where a path of the arguments leads.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    /// See [`ResolvedPath::veil`].
    veil: Option<PathBuf>,
}

impl Located {
    pub(crate) fn new(path: &str, cx: &Cx) -> anyhow::Result<Self> {
        anyhow::ensure!(!path.is_empty(), "the path is empty");
        let ResolvedPath { path, veil } = files::resolve_for(Path::new(path), &cx.cwd, &mut |place| knows(place, cx))
            .with_context(|| format!("can't resolve {path}"))?;
        Ok(Self { path, veil })
    }

    /// The permission to read there that a call needs before it runs.
    pub(crate) fn to_read(&self) -> Need {
        file_needs::read_need(self.veil.as_ref().unwrap_or(&self.path), &mut Exclusions::default())
    }

    /// The same to write.
    pub(crate) fn to_write(&self) -> Need {
        file_needs::write_need(self.veil.as_ref().unwrap_or(&self.path), &mut Exclusions::default())
    }

    /// Whether a place on the way needs permission before anything is known of where it leads.
    pub(crate) fn is_veiled(&self) -> bool {
        self.veil.is_some()
    }

    /// Judged again when a call runs: a link on the way may lead elsewhere by now. This time all of the way.
    pub(crate) async fn require_read(&self, cx: &Cx) -> Result<(), ToolError> {
        cx.require(self.to_read()).await?;
        match &self.veil {
            Some(_) => cx.require(file_needs::read_need(&self.path, &mut Exclusions::default())).await,
            None => Ok(()),
        }
    }
}

/// Whether the call may read a file without anybody being asked.
pub(crate) fn may_read(path: &Path, cx: &Cx) -> bool {
    verdict(&file_needs::read_need(path, &mut Exclusions::default()), cx) == Verdict::Allow
}

/// The policy's verdict on a need of this call. Nobody is asked.
pub(crate) fn verdict(need: &Need, cx: &Cx) -> Verdict {
    decide_need(cx, &cx.outer_chain, need).verdict
}

/// Whether the caller may know if there is a link at `place`.
pub(crate) fn knows(place: &Path, cx: &Cx) -> bool {
    read_access::may_see_link(place, cx, &cx.outer_chain)
}

/// As short as it can be written for the reader: relative where it lies below `cwd`.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}
