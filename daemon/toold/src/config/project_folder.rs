//! Finds the project that a folder belongs to.

use std::io;
use std::path::{Path, PathBuf};

use toold_host::file_systems::answering;
use toold_host::files;

/// The nearest ancestor with a `.toold` folder, else the Git top level, else the folder itself; its real path.
///
/// # Errors
/// When the path does not exist or is not a folder.
pub fn project_of(cwd: &Path) -> io::Result<PathBuf> {
    let cwd = real_dir(cwd)?;
    answering::ask(&cwd)?;
    let marked = |marker: &str| cwd.ancestors().find(|dir| dir.join(marker).exists()).map(Path::to_path_buf);
    Ok(marked(".toold").or_else(|| marked(".git")).unwrap_or_else(|| cwd.clone()))
}

/// A folder with its links resolved.
pub fn real_dir(path: &Path) -> io::Result<PathBuf> {
    let real = files::resolve(path, Path::new("/"))?;
    if answering::at(&real, || real.metadata())??.is_dir() {
        Ok(real)
    } else {
        Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"))
    }
}
