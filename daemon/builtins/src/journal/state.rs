//! What a path was before and after a change.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stamps::FileDigest;

/// A file, a folder or a link. Nothing at all is `None` in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PathState {
    File {
        /// `None` if the content was not kept.
        #[serde(with = "hexadecimal")]
        content: Option<FileDigest>,
        /// The permission bits; `None` if the change did not touch them.
        mode: Option<u32>,
        size: u64,
    },
    Folder {
        /// As of a file.
        mode: Option<u32>,
    },
    Link {
        target: RawPath,
    },
}

impl PathState {
    pub(crate) fn content(&self) -> Option<FileDigest> {
        match self {
            Self::File { content, .. } => *content,
            Self::Folder { .. } | Self::Link { .. } => None,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    pub(crate) fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => *mode,
            Self::Link { .. } => None,
        }
    }
}

/// A path of any bytes: text in JSON if it is UTF-8, else a list of bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawPath(pub PathBuf);

impl RawPath {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Serialize for RawPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_os_str().as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RawPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum TextOrBytes {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Self(match TextOrBytes::deserialize(deserializer)? {
            TextOrBytes::Text(text) => text.into(),
            TextOrBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}

mod hexadecimal {
    use super::{Deserialize, Deserializer, FileDigest, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(digest: &Option<FileDigest>, serializer: S) -> Result<S::Ok, S::Error> {
        digest.map(|digest| digest.to_hex().to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FileDigest>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| FileDigest::from_hex(text).map_err(serde::de::Error::custom)).transpose()
    }
}
