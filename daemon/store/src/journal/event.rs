//! The lines of a journal: a hash, a blank, and an event as JSON.

use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalHead {
    /// The version of the format.
    pub(super) journal: u32,
    pub(super) id: String,
}

/// `Row` is a [`StoredRow`](crate::audit_rows::StoredRow), borrowed where the event is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JournalEvent<Row> {
    /// Counts the events of one journal, from 1.
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) kind: EventKind,
    #[serde(flatten)]
    pub(super) row: Row,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum EventKind {
    /// The row is what is known until the call ends.
    Begin {
        /// The number of an earlier begin of the call, in whose place this one is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
    },
    End {
        /// The number of the begin, if that was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
    },
}

const HASH_BYTES: usize = 16;
pub(super) const HASH_CHARS: usize = 2 * HASH_BYTES;

/// The hash of the last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JournalChain([u8; HASH_BYTES]);

impl JournalChain {
    /// Adds a line to the chain and to `out`.
    pub(super) fn add(&mut self, line: &impl Serialize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + HASH_CHARS + 1, b' ');
        serde_json::to_writer(&mut *out, line).expect("texts and numbers have a form in JSON");
        *self = self.after(&out[start + HASH_CHARS + 1..]);
        self.write_hex(&mut out[start..start + HASH_CHARS]);
        out.push(b'\n');
    }

    /// The hash of a line with this JSON behind this one.
    pub(super) fn after(&self, json: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(json);
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..HASH_BYTES]);
        Self(hash)
    }

    pub(super) fn is_written_as(&self, hex: &[u8]) -> bool {
        let mut own = [0; HASH_CHARS];
        self.write_hex(&mut own);
        own == hex
    }

    /// `None` for what is no hash.
    pub(super) fn parse(hex: &[u8]) -> Option<Self> {
        let mut hash = [0; HASH_BYTES];
        for (byte, digits) in hash.iter_mut().zip(hex.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }

    fn write_hex(&self, out: &mut [u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (byte, hex) in self.0.iter().zip(out.chunks_mut(2)) {
            hex[0] = DIGITS[usize::from(byte >> 4)];
            hex[1] = DIGITS[usize::from(byte & 15)];
        }
    }
}

/// A new id: no two journals have the same.
pub(super) fn new_id() -> String {
    let mut hasher = blake3::Hasher::new();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    hasher.update(&now.as_nanos().to_le_bytes()).update(&std::process::id().to_le_bytes());
    // Two that are opened at one moment by one process.
    let here = Box::new(0_u8);
    hasher.update(&(std::ptr::from_ref(&*here) as usize).to_le_bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}
