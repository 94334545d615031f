//! Secrets in a file: XChaCha20-Poly1305, with a key that Argon2id derives from a passphrase or a systemd credential.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

use crate::random::random;

/// The work that a derivation takes: 64 MiB, three times.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
/// More work than this is not what this program has written.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 64;

const SALT: usize = 16;
const NONCE: usize = 24;

/// The file's content.
#[derive(Serialize, Deserialize)]
pub(super) struct EncryptedSecrets {
    derivation: KeyDerivation,
    /// In Base64, as `data`.
    nonce: String,
    data: String,
}

/// How the key is derived, which is stored in the clear.
#[derive(Clone, Serialize, Deserialize)]
struct KeyDerivation {
    /// In Base64.
    salt: String,
    memory_kib: u32,
    passes: u32,
}

/// The key of one file.
pub(super) struct FileKey {
    cipher: XChaCha20Poly1305,
    derivation: KeyDerivation,
}

impl FileKey {
    /// A key for a new file. Takes a while, on purpose. Blocks.
    ///
    /// # Errors
    /// The system has no random numbers or too little memory.
    pub(super) fn new(secret: &[u8]) -> Result<Self, String> {
        let salt = BASE64_STANDARD.encode(random::<SALT>()?);
        KeyDerivation { salt, memory_kib: MEMORY_KIB, passes: PASSES }.key(secret)
    }

    /// # Errors
    /// The system has no random numbers.
    pub(super) fn encrypt(&self, plain: &[u8]) -> Result<EncryptedSecrets, String> {
        let nonce = random::<NONCE>()?;
        let payload = Payload { msg: plain, aad: &self.derivation.bytes() };
        let data = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|error| error.to_string())?;
        Ok(EncryptedSecrets {
            derivation: self.derivation.clone(),
            nonce: BASE64_STANDARD.encode(nonce),
            data: BASE64_STANDARD.encode(data),
        })
    }

    /// `None` if it was encrypted with another key, or changed since.
    pub(super) fn decrypt(&self, file: &EncryptedSecrets) -> Option<Vec<u8>> {
        let nonce = BASE64_STANDARD.decode(&file.nonce).ok()?;
        let data = BASE64_STANDARD.decode(&file.data).ok()?;
        let payload = Payload { msg: &data, aad: &self.derivation.bytes() };
        self.cipher.decrypt(&XNonce::try_from(&nonce[..]).ok()?, payload).ok()
    }
}

impl EncryptedSecrets {
    /// The key of this file, if `secret` is the right one. Takes a while, on purpose. Blocks.
    ///
    /// # Errors
    /// The file's derivation is not possible.
    pub(super) fn key(&self, secret: &[u8]) -> Result<FileKey, String> {
        self.derivation.clone().key(secret)
    }
}

impl KeyDerivation {
    fn key(self, secret: &[u8]) -> Result<FileKey, String> {
        if self.memory_kib > MAX_MEMORY_KIB || self.passes > MAX_PASSES {
            return Err("it asks for more work than toold does for a key".to_owned());
        }
        let salt = BASE64_STANDARD.decode(&self.salt).map_err(|error| error.to_string())?;
        let params = Params::new(self.memory_kib, self.passes, 1, None).map_err(|error| error.to_string())?;
        let mut key = [0; 32];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(secret, &salt, &mut key).map_err(|error| error.to_string())?;
        Ok(FileKey { cipher: XChaCha20Poly1305::new(&Key::from(key)), derivation: self })
    }

    /// The associated data of the encryption. It is authenticated, so nobody can weaken the derivation without a key.
    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers have a form in JSON")
    }
}
