//! Texts that exceed the message limit, in the object store. The broker is trusted with nothing: whoever reads one has its
//! digest from a signed message, and its key too, since all machines of a fleet can read the store.

use std::sync::Arc;

use chacha20poly1305::aead::Aead;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use tokio::io::AsyncReadExt;

use crate::member::Member;
use crate::messages::Blob;
use crate::signed::random_id;
use crate::subjects;

/// Bytes of one text.
const MAX_BLOB: u64 = 256 * 1024 * 1024;
/// Bytes that encryption adds.
const TAG: u64 = 16;
/// Bytes of a message that its signature and its other members may need.
const ROOM: usize = 8 * 1024;

/// Derives the keys of texts from their random parts.
const KEY_USE: &str = "toold fleet 2026 text in the object store";

/// The cipher of one text. Its key is used once, so that the nonce may always be the same.
fn cipher(key: &str) -> (XChaCha20Poly1305, XNonce) {
    (XChaCha20Poly1305::new(&blake3::derive_key(KEY_USE, key.as_bytes()).into()), XNonce::default())
}

/// The longest text that fits into a message.
pub(crate) fn message_limit(member: &Member) -> usize {
    member.broker.client.max_payload().saturating_sub(ROOM).max(ROOM)
}

fn object_name(call_id: &str, digest: &str) -> String {
    format!("{digest}.{call_id}")
}

/// Stores a text of a call.
///
/// # Errors
/// As a part of a sentence.
pub(crate) async fn put(member: &Member, call_id: &str, text: &[u8]) -> Result<Blob, String> {
    let size = text.len() as u64;
    if size > MAX_BLOB {
        return Err(format!("it has {size} bytes, and at most {MAX_BLOB} are sent"));
    }
    let key = random_id();
    let (cipher, nonce) = cipher(&key);
    let stored = cipher.encrypt(&nonce, text).map_err(|_| "it cannot be encrypted".to_owned())?;
    let digest = blake3::hash(&stored).to_hex().to_string();
    let store = member.broker.jetstream.get_object_store(subjects::BLOBS).await.map_err(|error| error.to_string())?;
    let mut rest = stored.as_slice();
    store.put(object_name(call_id, &digest).as_str(), &mut rest).await.map_err(|error| error.to_string())?;
    Ok(Blob { digest, size: stored.len() as u64, key })
}

/// Fetches a text of a call, and checks that it is the one.
///
/// # Errors
/// As a part of a sentence.
pub(crate) async fn get(member: &Member, call_id: &str, blob: &Blob) -> Result<Vec<u8>, String> {
    if blob.size > MAX_BLOB + TAG {
        return Err(format!("it has {} bytes, and at most {MAX_BLOB} are fetched", blob.size));
    }
    let store = member.broker.jetstream.get_object_store(subjects::BLOBS).await.map_err(|error| error.to_string())?;
    let object = store.get(object_name(call_id, &blob.digest)).await.map_err(|error| error.to_string())?;
    let mut stored = Vec::new();
    object.take(blob.size + 1).read_to_end(&mut stored).await.map_err(|error| error.to_string())?;
    let other = || "the broker returned another text than the one that was stored".to_owned();
    if stored.len() as u64 != blob.size || blake3::hash(&stored).to_hex().as_str() != blob.digest {
        return Err(other());
    }
    let (cipher, nonce) = cipher(&blob.key);
    cipher.decrypt(&nonce, stored.as_slice()).map_err(|_| other())
}

/// Deletes a text that is no longer needed. When this fails, it expires.
pub(crate) async fn delete(member: &Member, call_id: &str, blob: &Blob) {
    let deleted = async {
        let store =
            member.broker.jetstream.get_object_store(subjects::BLOBS).await.map_err(|error| error.to_string())?;
        store.delete(object_name(call_id, &blob.digest)).await.map_err(|error| error.to_string())
    };
    if let Err(error) = deleted.await {
        tracing::debug!(error, "a text was not deleted from the broker");
    }
}

/// A text that is deleted when this is dropped.
pub(crate) struct OwnBlob {
    member: Arc<Member>,
    call_id: String,
    blob: Blob,
}

impl OwnBlob {
    pub(crate) fn new(member: &Arc<Member>, call_id: &str, blob: Blob) -> Self {
        Self { member: member.clone(), call_id: call_id.to_owned(), blob }
    }
}

impl Drop for OwnBlob {
    fn drop(&mut self) {
        let (member, call_id, blob) = (self.member.clone(), self.call_id.clone(), self.blob.clone());
        let tasks = member.tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = delete(&member, &call_id, &blob) => {}
                () = member.stop.cancelled() => {}
            }
        });
    }
}
