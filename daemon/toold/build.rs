//! Lists the files of [the page](../../clients/page), which the daemon contains: `page_files.rs` is a slice of their names and
//! contents.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let dist = Path::new("../../clients/page/dist").canonicalize()?;
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    find_files(&dist, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&dist).expect("it was found below this folder").display().to_string();
        list += &format!("    ({name:?}, include_bytes!({:?})),\n", file.display().to_string());
    }
    list += "]\n";
    let output = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&output).join("page_files.rs"), list)
}

fn find_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => find_files(&entry.path(), found)?,
            false => found.push(entry.path()),
        }
    }
    Ok(())
}
