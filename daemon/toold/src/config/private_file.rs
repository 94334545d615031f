//! Files with tokens and keys, which only their owner may read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::Mode;
use toold_host::files;

/// The content of such a file. Links on the way to its folder are followed, and the file itself is none.
///
/// # Errors
/// It cannot be read, is larger than `limit`, is another user's, or is open to others.
pub(crate) fn read(file: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let folder = file.parent().context("the file lies in a folder")?;
    let folder = folder.canonicalize().with_context(|| format!("can't find {}", folder.display()))?;
    let mut opened = files::open(&folder.join(file.file_name().context("the file has a name")?))?;
    let metadata = opened.metadata()?;
    let others = Mode::from_raw_mode(metadata.mode()).intersects(Mode::RWXG | Mode::RWXO);
    if others || metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!("{} is open to others: run chmod 600 on it", file.display());
    }
    Ok(files::read_opened(&mut opened, file, limit)?)
}
