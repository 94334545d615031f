//! What a path was before and after a change.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toold_host::files::{FileType, UserAttributes};

use crate::stamps::FileDigest;

/// A file, a folder, a link or a special file. Nothing at all is `None` in its place.
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
        /// `None` if the change did not touch them, or if they are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<UserAttributes>,
    },
    Folder {
        /// As of a file.
        mode: Option<u32>,
        /// As of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attributes: Option<UserAttributes>,
    },
    Link {
        target: RawPath,
    },
    /// What is none of these and has no content.
    Special {
        what: SpecialKind,
        mode: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecialKind {
    Pipe,
    Socket,
    Device,
}

impl SpecialKind {
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// The largest file whose content is kept.
pub(crate) const MAX_KEPT_FILE: u64 = 64 << 20;

impl PathState {
    pub(crate) fn content(&self) -> Option<FileDigest> {
        match self {
            Self::File { content, .. } => *content,
            Self::Folder { .. } | Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// Why this cannot be brought back, if it cannot.
    pub(crate) fn lost_because(&self) -> Option<&'static str> {
        match self {
            Self::File { content: None, size, .. } if *size > MAX_KEPT_FILE => {
                Some("the contents of files over 64 MiB are not kept")
            }
            Self::File { content: None, .. } => Some("its content could not be read"),
            Self::Special { what: SpecialKind::Socket, .. } => Some("a socket cannot be made again"),
            Self::Special { what: SpecialKind::Device, .. } => Some("a device cannot be made again"),
            Self::File { .. } | Self::Folder { .. } | Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// The same with no word about the permission bits.
    pub(crate) fn without_mode(&self) -> Self {
        match self {
            Self::File { content, size, attributes, .. } => {
                Self::File { content: *content, mode: None, size: *size, attributes: attributes.clone() }
            }
            Self::Folder { attributes, .. } => Self::Folder { mode: None, attributes: attributes.clone() },
            Self::Link { target } => Self::Link { target: target.clone() },
            Self::Special { what, .. } => Self::Special { what: *what, mode: None },
        }
    }

    /// The same with these extended attributes.
    pub(crate) fn with_attributes(mut self, of_entry: Option<UserAttributes>) -> Self {
        if let Self::File { attributes, .. } | Self::Folder { attributes, .. } = &mut self {
            *attributes = of_entry;
        }
        self
    }

    /// The extended attributes, if they are known.
    pub(crate) fn attributes(&self) -> Option<&UserAttributes> {
        match self {
            Self::File { attributes, .. } | Self::Folder { attributes, .. } => attributes.as_ref(),
            Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// Whether the two are the same but for permission bits and attributes.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        let plain = |state: &Self| state.without_mode().without_attributes();
        plain(self) == plain(other)
    }

    /// The same with the permission bits and attributes of a later state, where a change between the two did not touch them.
    pub(crate) fn with_untouched_of(mut self, later: &Self) -> Self {
        if self.mode().is_none() && std::mem::discriminant(&self) == std::mem::discriminant(later) {
            self.set_mode(later.mode());
        }
        match self.attributes() {
            None => self.with_attributes(later.attributes().cloned()),
            Some(_) => self,
        }
    }

    fn without_attributes(&self) -> Self {
        self.clone().with_attributes(None)
    }

    /// Whether the two are the same, as far as permission bits and attributes are known of both.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let has_mode = self.mode().zip(other.mode()).is_none_or(|(one, other)| one == other);
        let has_attributes = self.attributes().zip(other.attributes()).is_none_or(|(one, other)| one == other);
        has_mode && has_attributes && self.has_content_of(other)
    }

    pub(crate) fn set_mode(&mut self, bits: Option<u32>) {
        match self {
            Self::File { mode, .. } | Self::Folder { mode, .. } | Self::Special { mode, .. } => *mode = bits,
            Self::Link { .. } => {}
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    pub(crate) fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode, .. } | Self::Special { mode, .. } => *mode,
            Self::Link { .. } => None,
        }
    }
}

/// Which file a path names. A path that is written to keeps it, and one at which another file is put gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InodeId {
    pub device: u64,
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970: the system uses the numbers again. Not all file systems know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<u64>,
}

impl InodeId {
    /// Whether the two are one file, as far as both are known.
    pub(crate) fn is(self, other: Self) -> bool {
        self.number() == other.number() && self.born.zip(other.born).is_none_or(|(born, other)| born == other)
    }

    /// Device and inode number.
    pub(crate) fn number(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    pub(crate) fn of(facts: &Metadata) -> Self {
        let born = facts.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let born = born.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { device: facts.dev(), inode: facts.ino(), born }
    }
}

/// A file that is older than a call and that the call put at a path: by a link, or by moving it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignFile {
    /// It has other names elsewhere, and has not been written since.
    Linked,
    /// It has other names elsewhere, and may have been written through this one: what they showed before is not known.
    Written,
    /// It has no other name.
    Moved,
}

impl ForeignFile {
    /// Why the change cannot be undone, if it cannot.
    pub(crate) fn lost_because(self) -> Option<&'static str> {
        match self {
            Self::Linked => None,
            Self::Written => {
                Some("it is another name of a file outside of the session's folders, which was written and is not kept")
            }
            Self::Moved => Some("it was moved here from outside of the session's folders, and would be lost"),
        }
    }
}

/// A version of a file, by what the file system says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    pub file: InodeId,
    pub size: u64,
    /// When the content was written last: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
}

impl FileVersion {
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self { file: InodeId::of(facts), size: facts.size(), modified: (facts.mtime(), facts.mtime_nsec()) }
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
