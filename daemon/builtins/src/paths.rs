//! Paths in arguments and in results.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toold_engine::cx::Cx;

/// Where a path of the arguments leads.
pub(crate) fn resolve(path: &str, cx: &Cx) -> anyhow::Result<PathBuf> {
    anyhow::ensure!(!path.is_empty(), "the path is empty");
    toold_host::files::resolve(Path::new(path), &cx.cwd).with_context(|| format!("can't resolve {path}"))
}

/// As short as it can be written for the reader: relative where it lies below `cwd`.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}
