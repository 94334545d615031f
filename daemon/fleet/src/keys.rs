//! Keys that sign messages, in the text form of NATS's nkeys: Ed25519 with a prefix for the kind of owner.
//!
//! They never log in at the broker: logging in means signing a text that the broker chooses.

use std::fmt;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use nkeys::{KeyPair, KeyPairType};
use toold_host::files;

/// Bytes of a file with a key or with credentials.
const MAX_FILE: u64 = 64 * 1024;

/// The owners of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOwner {
    /// Public keys begin with `V`, private ones with `SV`.
    Daemon,
    /// Public keys begin with `U`, private ones with `SU`.
    Person,
}

impl KeyOwner {
    fn kind(self) -> KeyPairType {
        match self {
            Self::Daemon => KeyPairType::Service,
            Self::Person => KeyPairType::User,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Person => "person",
        }
    }

    fn public_prefix(self) -> char {
        match self {
            Self::Daemon => 'V',
            Self::Person => 'U',
        }
    }
}

/// A key that verifies.
#[derive(Clone)]
pub struct PublicKey {
    text: String,
    pair: Arc<KeyPair>,
}

impl PublicKey {
    /// # Errors
    /// For a text that is not a public key of such an owner, as a sentence for the user.
    pub fn parse(text: &str, owner: KeyOwner) -> Result<Self, String> {
        let kind = owner.as_str();
        let first = owner.public_prefix();
        if text.starts_with('S') {
            return Err(format!(
                "this is a private key, which belongs in a file that only its owner can read: give the public key, which \
                 begins with {first}"
            ));
        }
        let pair = KeyPair::from_public_key(text).map_err(|error| format!("{text:?} is not a public key: {error}"))?;
        if !text.starts_with(first) {
            return Err(format!("{text:?} is not the public key of a {kind}, which begins with {first}"));
        }
        Ok(Self { text: text.to_owned(), pair: Arc::new(pair) })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn verifies(&self, text: &[u8], signature: &[u8]) -> bool {
        // A signature of any other length is refused here: the library takes part of it.
        signature.len() == 64 && self.pair.verify(text, signature).is_ok()
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The text of a file that only its owner may be able to read.
///
/// # Errors
/// As a sentence for the user.
pub(crate) fn read_private(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let failed = |error: std::io::Error| format!("can't read {shown}: {error}");
    if std::fs::metadata(file).map_err(failed)?.mode() & 0o077 != 0 {
        return Err(format!("others can read {shown}: run `chmod 600 {shown}`"));
    }
    files::read_text(file, MAX_FILE).map_err(failed)
}

/// A key that signs.
pub struct SigningKey {
    pair: KeyPair,
    public: PublicKey,
}

impl SigningKey {
    pub fn generate(owner: KeyOwner) -> Self {
        Self::of(KeyPair::new(owner.kind()), owner).expect("a new key has a public part")
    }

    fn of(pair: KeyPair, owner: KeyOwner) -> Result<Self, String> {
        let public = PublicKey::parse(&pair.public_key(), owner)?;
        Ok(Self { pair, public })
    }

    /// Reads a key's file, which only its owner may be able to read.
    ///
    /// # Errors
    /// As a sentence for the user.
    pub fn load(file: &Path, owner: KeyOwner) -> Result<Self, String> {
        let shown = file.display();
        if !file.exists() {
            return Err(format!("there is no key {shown}: `toolctl fleet init` makes the keys of this machine"));
        }
        let text = read_private(file)?;
        let pair = KeyPair::from_seed(text.trim())
            .map_err(|_| format!("{shown} does not contain the private key of a {}", owner.as_str()))?;
        Self::of(pair, owner).map_err(|_| format!("{shown} does not contain the private key of a {}", owner.as_str()))
    }

    /// Writes a new key into a file that does not exist, with its folder.
    ///
    /// # Errors
    /// As a sentence for the user.
    pub fn create(file: &Path, owner: KeyOwner) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't write the key {}: {error}", file.display());
        let key = Self::generate(owner);
        let seed = key.pair.seed().map_err(|error| format!("can't make a key: {error}"))?;
        if let Some(dir) = file.parent() {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        }
        let mut made =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
        made.write_all(format!("{seed}\n").as_bytes()).map_err(failed)?;
        made.sync_all().map_err(failed)?;
        Ok(key)
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.pair.sign(text).expect("a signing key has a private part")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.public.text)
    }
}
