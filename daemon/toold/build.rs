//! Compresses what the daemon contains, in the format of gzip: the files of [the page](../../clients/page), of which `page_files.rs`
//! is a slice of names and contents, and the description of the protocol. And asks the linker for a smaller program.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Options of a linker that make the program smaller. LLD, which rustc uses on x86-64 Linux, folds functions with the same code
/// into one, of which generic functions leave many; and relocations take a few bits instead of 24 bytes each, which the loader of
/// glibc reads since 2.36. Other linkers refuse these options, and other loaders the program.
const SMALLER: [&str; 2] = ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];

fn main() -> io::Result<()> {
    let output = PathBuf::from(var("OUT_DIR"));
    // In a program that is not optimised, a backtrace should have the names of all functions.
    if var("OPT_LEVEL") != "0" && var("HOST") == var("TARGET") {
        SMALLER.iter().filter(|option| works(option, &output)).for_each(|option| {
            println!("cargo::rustc-link-arg-bins={option}");
        });
    }
    let protocol = Path::new("../../proto/openrpc.json");
    println!("cargo::rerun-if-changed={}", protocol.display());
    compress(protocol, &output.join("openrpc.json.gz"))?;
    compress_page(&output)
}

/// Whether a program that is linked with this option runs here.
fn works(option: &str, output: &Path) -> bool {
    let (source, program) = (output.join("empty.rs"), output.join("empty"));
    let mut rustc = Command::new(var("RUSTC"));
    rustc.arg(&source).arg("-o").arg(&program).args(["-C", &format!("link-arg={option}")]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    fs::write(&source, "fn main() {}").is_ok()
        && rustc.output().is_ok_and(|output| output.status.success())
        && Command::new(&program).status().is_ok_and(|status| status.success())
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(fs::File::create(to)?, Compression::best());
    encoder.write_all(&fs::read(from)?)?;
    encoder.finish().map(drop)
}

fn compress_page(output: &Path) -> io::Result<()> {
    let dist = Path::new("../../clients/page/dist").canonicalize()?;
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    find_files(&dist, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&dist).expect("it was found below this folder");
        let compressed = output.join("page").join(name);
        fs::create_dir_all(compressed.parent().expect("it is below the output's folder"))?;
        compress(file, &compressed)?;
        let [name, compressed] = [name, &compressed].map(|path| path.display().to_string());
        list += &format!("    ({name:?}, include_bytes!({compressed:?})),\n");
    }
    list += "]\n";
    fs::write(output.join("page_files.rs"), list)
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
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
