//! Texts that exceed the message limit, in the object store. The broker is trusted with nothing: whoever reads one has its
//! digest from a signed message.

use std::sync::Arc;

use tokio::io::AsyncReadExt;

use crate::member::Member;
use crate::messages::Blob;
use crate::subjects;

/// Bytes of one text.
const MAX_BLOB: u64 = 256 * 1024 * 1024;
/// Bytes of a message that its signature and its other members may need.
const ROOM: usize = 8 * 1024;

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
    let digest = blake3::hash(text).to_hex().to_string();
    let store = member.broker.jetstream.get_object_store(subjects::BLOBS).await.map_err(|error| error.to_string())?;
    let mut rest = text;
    store.put(object_name(call_id, &digest).as_str(), &mut rest).await.map_err(|error| error.to_string())?;
    Ok(Blob { digest, size })
}

/// Fetches a text of a call, and checks that it is the one.
///
/// # Errors
/// As a part of a sentence.
pub(crate) async fn get(member: &Member, call_id: &str, blob: &Blob) -> Result<Vec<u8>, String> {
    if blob.size > MAX_BLOB {
        return Err(format!("it has {} bytes, and at most {MAX_BLOB} are fetched", blob.size));
    }
    let store = member.broker.jetstream.get_object_store(subjects::BLOBS).await.map_err(|error| error.to_string())?;
    let object = store.get(object_name(call_id, &blob.digest)).await.map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    object.take(blob.size + 1).read_to_end(&mut text).await.map_err(|error| error.to_string())?;
    if text.len() as u64 != blob.size || blake3::hash(&text).to_hex().as_str() != blob.digest {
        return Err("the broker returned another text than the one that was stored".to_owned());
    }
    Ok(text)
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
