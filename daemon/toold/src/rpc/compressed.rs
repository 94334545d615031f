//! Files that the build has compressed for the program.

use std::io;

use flate2::read::GzDecoder;

/// The OpenRPC document of [`toold_proto::openrpc`], in the format of gzip.
pub(crate) const OPENRPC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openrpc.json.gz"));

/// Names, sorted, and contents of the page's files, in the format of gzip.
pub(crate) static PAGE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// The content of such a file.
pub(crate) fn plain(compressed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    io::copy(&mut GzDecoder::new(compressed), &mut plain).expect("the build compressed it");
    plain
}
