//! The secrets of one daemon: values that its configuration names, and the tokens of its logins.
//!
//! All of them are one JSON object, which is an item of the desktop's [`keyring`] or, where there is none, an
//! [`encrypted`] file. A small file of the daemon's own remembers which, so that secrets never seem to be gone because
//! the keyring cannot be reached. Each value that is read or set is hidden from logs from then on.

mod encrypted;
mod keyring;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use toold_engine::blocking::run_elsewhere;
use toold_engine::kept::{ChangeEffect, NotKept};
use toold_engine::redact;
use toold_proto::secret::{SecretStoreKind, SecretStoreState};

use crate::secret_text::SecretText;
use crate::{files, state_file};
use encrypted::{EncryptedSecrets, FileKey};
use keyring::Keyring;

/// The length limit of a value, in bytes.
const MAX_VALUE: usize = 64 * 1024;
/// The size limit of the file.
const MAX_FILE: u64 = 16 << 20;
/// Files of systemd credentials and passphrases are not longer.
const MAX_KEY: u64 = 64 * 1024;
/// The name of the systemd credential that the key of the file is derived from.
pub const CREDENTIAL: &str = "toold-secrets";

/// The surroundings of a store.
#[derive(Clone, Debug)]
pub struct SecretOptions {
    /// The daemon's own file.
    pub file: PathBuf,
    /// The address of the D-Bus session bus, with which the keyring is reached.
    pub bus: Option<String>,
    /// The folder of systemd credentials.
    pub credentials: Option<PathBuf>,
}

/// The secrets. Reading is lazy: nothing asks for a keyring or a passphrase before a secret is used.
pub struct SecretStore {
    options: SecretOptions,
    /// Held during each change, so that changes follow each other.
    opened: Mutex<Option<OpenedSecrets>>,
    /// How often another daemon may have changed them.
    changes: AtomicU64,
}

struct OpenedSecrets {
    place: SecretPlace,
    values: BTreeMap<String, String>,
    /// Those that were removed, and still stand in the place because it could not be written.
    removed: BTreeSet<String>,
    /// `changes` of the store before they were read.
    read_at: u64,
}

enum SecretPlace {
    Keyring(Keyring),
    File(FileKey),
}

impl SecretPlace {
    fn kind(&self) -> SecretStoreKind {
        match self {
            Self::Keyring(_) => SecretStoreKind::Keyring,
            Self::File(_) => SecretStoreKind::File,
        }
    }
}

/// The daemon's own file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "store", rename_all = "snake_case")]
enum SecretsFile {
    Keyring {},
    File(EncryptedSecrets),
}

/// Why a secret cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "there is no desktop keyring, and the file with the secrets is not made yet: choose its passphrase with toolctl secrets unlock"
    )]
    NoPassphrase,
    #[error("the secrets are locked: run toolctl secrets unlock")]
    Locked,
    #[error("the passphrase does not open the file with the secrets")]
    WrongKey,
    #[error("the systemd credential {CREDENTIAL} does not open the file with the secrets; another key made it")]
    WrongCredential,
    #[error("there is nothing to unlock: the secrets are in the desktop's keyring")]
    NothingToUnlock,
    #[error("the desktop's keyring does not answer: {0}")]
    Keyring(String),
    #[error("{path} is damaged: {why}; restore it from a copy, or remove it and set the secrets again")]
    Damaged { path: String, why: String },
    // No colon behind the name: the log would take what follows `GITHUB_TOKEN: ` for a secret.
    #[error("there is no secret {0}; `toolctl secrets set {0}` sets it")]
    Missing(String),
    #[error("a secret's name must be 1 to 64 letters, digits, _, - or ., and must not begin with a digit, not {0:?}")]
    Name(String),
    #[error("{0}")]
    Value(String),
    #[error("can't use {path}: {source}")]
    System { path: String, source: io::Error },
    #[error(transparent)]
    NotKept(#[from] NotKept),
}

impl SecretStore {
    pub fn new(options: SecretOptions) -> Self {
        Self { options, opened: Mutex::new(None), changes: AtomicU64::new(0) }
    }

    /// The value of a secret; `None` if it is not set.
    ///
    /// # Errors
    /// The secrets cannot be read.
    pub async fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        let mut opened = self.opened.lock().await;
        Ok(self.open(&mut opened).await?.and_then(|opened| opened.values.get(name).cloned()))
    }

    /// A text of the configuration with its secrets.
    ///
    /// # Errors
    /// A secret is not set, or the secrets cannot be read.
    pub async fn fill(&self, text: &SecretText) -> Result<String, SecretError> {
        if let Some(plain) = text.plain() {
            return Ok(plain.to_owned());
        }
        let mut opened = self.opened.lock().await;
        let opened = self.open(&mut opened).await?;
        let value = |name: &str| opened.as_ref().and_then(|opened| opened.values.get(name).cloned());
        text.filled(|name| value(name).ok_or_else(|| SecretError::Missing(name.to_owned())))
    }

    /// The names of all secrets, sorted.
    ///
    /// # Errors
    /// The secrets cannot be read.
    pub async fn names(&self) -> Result<Vec<String>, SecretError> {
        let mut opened = self.opened.lock().await;
        let opened = self.open(&mut opened).await?;
        Ok(opened.map(|opened| opened.values.keys().cloned().collect()).unwrap_or_default())
    }

    /// Sets a secret that people name.
    ///
    /// # Errors
    /// The name or the value is not possible, or the secrets cannot be stored.
    pub async fn set(&self, name: &str, value: &str) -> Result<(), SecretError> {
        if !is_secret_name(name) {
            return Err(SecretError::Name(name.to_owned()));
        }
        let min = redact::MIN_HIDDEN;
        if value.trim().chars().count() < min {
            return Err(SecretError::Value(format!(
                "a secret must have {min} characters or more: a shorter one can't be told from ordinary text in logs"
            )));
        }
        if value.len() > MAX_VALUE || value.contains('\0') {
            let why = format!("a secret must be a text of at most {MAX_VALUE} bytes without the character NUL");
            return Err(SecretError::Value(why));
        }
        self.keep(name, value).await
    }

    /// Stores a value of the daemon's own, under a name that is not one of people's.
    ///
    /// # Errors
    /// The secrets cannot be stored.
    pub async fn keep(&self, name: &str, value: &str) -> Result<(), SecretError> {
        redact::hide(hidden_parts(value).iter().map(String::as_str));
        let set = |values: &mut BTreeMap<String, String>| {
            values.insert(name.to_owned(), value.to_owned()).as_deref() != Some(value)
        };
        self.change(ChangeEffect::Widens, set).await?;
        Ok(())
    }

    /// Whether there was one. It is gone from now on, also where that cannot be stored.
    ///
    /// # Errors
    /// The secrets cannot be stored.
    pub async fn remove(&self, name: &str) -> Result<bool, SecretError> {
        self.change(ChangeEffect::Narrows, |values| values.remove(name).is_some()).await
    }

    /// Reads the secrets again when they are needed next: another daemon may have changed them.
    pub fn expect_changes(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Opens the file with a passphrase, or makes it.
    ///
    /// # Errors
    /// It is the wrong passphrase, or there is a keyring.
    pub async fn unlock(&self, passphrase: &str) -> Result<(), SecretError> {
        let mut opened = self.opened.lock().await;
        let read_at = self.changes.load(Ordering::Relaxed);
        let made = match self.load().await? {
            Some(SecretsFile::Keyring {}) => return Err(SecretError::NothingToUnlock),
            Some(SecretsFile::File(file)) => {
                self.decrypt(file, passphrase.as_bytes(), SecretError::WrongKey, read_at).await?
            }
            None if self.keyring().await.is_ok() => return Err(SecretError::NothingToUnlock),
            None => {
                if passphrase.chars().count() < 8 {
                    return Err(SecretError::Value("the passphrase must have 8 characters or more".to_owned()));
                }
                let key = self.new_key(passphrase.as_bytes().to_vec()).await?;
                let made = OpenedSecrets {
                    place: SecretPlace::File(key),
                    values: BTreeMap::new(),
                    removed: BTreeSet::new(),
                    read_at,
                };
                self.save(&made).await?;
                made
            }
        };
        *opened = Some(made);
        Ok(())
    }

    /// Where the secrets are or would be, and whether they can be read now.
    ///
    /// # Errors
    /// The file is damaged.
    pub async fn place(&self) -> Result<(SecretStoreKind, SecretStoreState), SecretError> {
        let mut opened = self.opened.lock().await;
        let found = match self.open(&mut opened).await {
            Ok(Some(opened)) => opened.place.kind(),
            Ok(None) if self.keyring().await.is_ok() => SecretStoreKind::Keyring,
            Ok(None) if self.credential().await?.is_none() => {
                return Ok((SecretStoreKind::File, SecretStoreState::Absent));
            }
            Ok(None) => SecretStoreKind::File,
            Err(SecretError::Locked) => return Ok((SecretStoreKind::File, SecretStoreState::Locked)),
            Err(SecretError::Keyring(_)) => return Ok((SecretStoreKind::Keyring, SecretStoreState::Locked)),
            Err(error) => return Err(error),
        };
        Ok((found, SecretStoreState::Unlocked))
    }

    /// Checks that a secret could be stored now.
    ///
    /// # Errors
    /// Why not.
    pub async fn check_writable(&self) -> Result<(), SecretError> {
        let mut opened = self.opened.lock().await;
        match self.open(&mut opened).await? {
            Some(_) => Ok(()),
            None if self.keyring().await.is_ok() || self.credential().await?.is_some() => Ok(()),
            None => Err(SecretError::NoPassphrase),
        }
    }

    /// Applies a change and stores it. `change` returns whether it changed anything.
    async fn change(
        &self,
        effect: ChangeEffect,
        change: impl FnOnce(&mut BTreeMap<String, String>) -> bool,
    ) -> Result<bool, SecretError> {
        let mut opened = self.opened.lock().await;
        // The change applies to what is stored now, since all of it is stored again.
        self.expect_changes();
        if self.open(&mut opened).await?.is_none() {
            *opened = Some(self.make().await?);
        }
        let current = opened.as_mut().expect("it was opened or made just now");
        let before = current.values.clone();
        if !change(&mut current.values) {
            return Ok(false);
        }
        match (self.save(current).await, effect) {
            (Ok(()), _) => {
                current.removed.clear();
                Ok(true)
            }
            (Err(error), ChangeEffect::Narrows) => {
                let OpenedSecrets { values, removed, .. } = current;
                removed.extend(before.into_keys().filter(|name| !values.contains_key(name)));
                Err(NotKept { holds: true, why: error.to_string() }.into())
            }
            (Err(error), ChangeEffect::Widens) => {
                current.values = before;
                Err(match error {
                    SecretError::System { .. } => NotKept { holds: false, why: error.to_string() }.into(),
                    error => error,
                })
            }
        }
    }

    /// The secrets, read if they are not yet; `None` while there are none.
    async fn open<'o>(
        &self,
        opened: &'o mut Option<OpenedSecrets>,
    ) -> Result<Option<&'o mut OpenedSecrets>, SecretError> {
        let read_at = self.changes.load(Ordering::Relaxed);
        if let Some(before) = opened.as_mut()
            && before.read_at != read_at
        {
            match self.stored_in(&before.place).await? {
                Some(mut values) => {
                    values.retain(|name, _| !before.removed.contains(name));
                    (before.values, before.read_at) = (values, read_at);
                }
                None => *opened = None,
            }
        }
        if opened.is_none() {
            *opened = match self.load().await? {
                None => None,
                Some(SecretsFile::Keyring {}) => {
                    let keyring = self.keyring().await?;
                    let values = keyring.read().await?.map(|json| self.parse(&json)).transpose()?.unwrap_or_default();
                    Some(OpenedSecrets {
                        place: SecretPlace::Keyring(keyring),
                        values,
                        removed: BTreeSet::new(),
                        read_at,
                    })
                }
                Some(SecretsFile::File(file)) => match self.credential().await? {
                    Some(key) => Some(self.decrypt(file, &key, SecretError::WrongCredential, read_at).await?),
                    None => return Err(SecretError::Locked),
                },
            };
            opened.iter().for_each(|opened| hide(&opened.values));
        }
        Ok(opened.as_mut())
    }

    /// The values that are stored now; `None` if they are in another place, or the key that opened the file before does
    /// not open it any more.
    async fn stored_in(&self, place: &SecretPlace) -> Result<Option<BTreeMap<String, String>>, SecretError> {
        let json = match (place, self.load().await?) {
            (SecretPlace::Keyring(keyring), Some(SecretsFile::Keyring {})) => keyring.read().await?,
            (SecretPlace::File(key), Some(SecretsFile::File(file))) => key.decrypt(&file),
            _ => None,
        };
        let values = json.map(|json| self.parse(&json)).transpose()?;
        values.iter().for_each(hide);
        Ok(values)
    }

    /// A place for the first secret.
    async fn make(&self) -> Result<OpenedSecrets, SecretError> {
        let place = match self.keyring().await {
            Ok(keyring) => SecretPlace::Keyring(keyring),
            Err(_) => match self.credential().await? {
                Some(key) => SecretPlace::File(self.new_key(key).await?),
                None => return Err(SecretError::NoPassphrase),
            },
        };
        Ok(OpenedSecrets {
            place,
            values: BTreeMap::new(),
            removed: BTreeSet::new(),
            read_at: self.changes.load(Ordering::Relaxed),
        })
    }

    async fn keyring(&self) -> Result<Keyring, SecretError> {
        let Some(bus) = &self.options.bus else { return Err(SecretError::Keyring("there is no D-Bus session".into())) };
        Keyring::find(bus, &self.options.file).await
    }

    /// The systemd credential, if the daemon has one.
    async fn credential(&self) -> Result<Option<Vec<u8>>, SecretError> {
        let Some(path) = self.options.credentials.as_ref().map(|folder| folder.join(CREDENTIAL)) else {
            return Ok(None);
        };
        match run_elsewhere(move || (files::read_named(&path, MAX_KEY), path)).await {
            (Ok(key), _) => Ok(Some(key)),
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            (Err(source), path) => Err(SecretError::System { path: path.display().to_string(), source }),
        }
    }

    async fn load(&self) -> Result<Option<SecretsFile>, SecretError> {
        let path = self.options.file.clone();
        match run_elsewhere(move || files::read_named(&path, MAX_FILE)).await {
            Ok(json) => serde_json::from_slice(&json).map(Some).map_err(|error| self.damaged(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.system(source)),
        }
    }

    async fn save(&self, secrets: &OpenedSecrets) -> Result<(), SecretError> {
        let json = serde_json::to_string(&secrets.values).expect("texts have a form in JSON");
        let file = match &secrets.place {
            SecretPlace::Keyring(keyring) => {
                keyring.write(&json).await?;
                SecretsFile::Keyring {}
            }
            SecretPlace::File(key) => SecretsFile::File(key.encrypt(json.as_bytes()).map_err(|why| self.damaged(why))?),
        };
        let path = self.options.file.clone();
        run_elsewhere(move || state_file::save_durably(&path, &file)).await.map_err(|source| self.system(source))
    }

    async fn new_key(&self, secret: Vec<u8>) -> Result<FileKey, SecretError> {
        run_elsewhere(move || FileKey::new(&secret)).await.map_err(|why| self.damaged(why))
    }

    async fn decrypt(
        &self,
        file: EncryptedSecrets,
        secret: &[u8],
        wrong: SecretError,
        read_at: u64,
    ) -> Result<OpenedSecrets, SecretError> {
        let secret = secret.to_vec();
        let key = run_elsewhere(move || file.key(&secret).map(|key| (key, file))).await;
        let (key, file) = key.map_err(|why| self.damaged(why))?;
        let json = key.decrypt(&file).ok_or(wrong)?;
        Ok(OpenedSecrets {
            place: SecretPlace::File(key),
            values: self.parse(&json)?,
            removed: BTreeSet::new(),
            read_at,
        })
    }

    fn parse(&self, json: &[u8]) -> Result<BTreeMap<String, String>, SecretError> {
        serde_json::from_slice(json).map_err(|error| self.damaged(error.to_string()))
    }

    fn damaged(&self, why: String) -> SecretError {
        SecretError::Damaged { path: self.options.file.display().to_string(), why }
    }

    fn system(&self, source: io::Error) -> SecretError {
        SecretError::System { path: self.options.file.display().to_string(), source }
    }
}

/// Keeps the values out of logs.
fn hide(values: &BTreeMap<String, String>) {
    let hidden: Vec<String> = values.values().flat_map(|value| hidden_parts(value)).collect();
    redact::hide(hidden.iter().map(String::as_str));
}

/// Whether people may give a secret this name. Names of the daemon's own secrets have other characters.
pub fn is_secret_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(allowed)
}

/// A value, and the secret members of one that is JSON, such as the tokens of a login or the key of a service account.
fn hidden_parts(value: &str) -> Vec<String> {
    const MEMBERS: [&str; 6] =
        ["access_token", "refresh_token", "id_token", "client_secret", "private_key", "password"];
    fn collect(value: &Value, parts: &mut Vec<String>) {
        let members = value.as_object().into_iter().flatten();
        for (name, member) in members {
            match member.as_str() {
                Some(text) if MEMBERS.contains(&name.as_str()) => parts.push(text.to_owned()),
                _ => collect(member, parts),
            }
        }
    }
    let mut parts = vec![value.to_owned()];
    if let Ok(json) = serde_json::from_str::<Value>(value) {
        collect(&json, &mut parts);
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn options(folder: &std::path::Path) -> SecretOptions {
        SecretOptions { file: folder.join("secrets.json"), bus: None, credentials: None }
    }

    #[tokio::test]
    async fn a_passphrase_opens_the_file_again_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretStore::new(options(folder.path()));
        assert!(matches!(store.set("A", "canary-one").await, Err(SecretError::NoPassphrase)));
        assert_eq!(store.get("A").await.unwrap(), None);
        assert!(store.unlock("short").await.is_err());
        store.unlock("a long passphrase").await.unwrap();
        store.set("A", "canary-one").await.unwrap();
        store.keep("login:x", "canary-two").await.unwrap();
        assert_eq!(store.names().await.unwrap(), ["A", "login:x"]);

        let bytes = std::fs::read(folder.path().join("secrets.json")).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
        let mode = std::fs::metadata(folder.path().join("secrets.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let again = SecretStore::new(options(folder.path()));
        assert!(matches!(again.get("A").await, Err(SecretError::Locked)));
        assert!(matches!(again.unlock("another passphrase").await, Err(SecretError::WrongKey)));
        assert_eq!(again.place().await.unwrap(), (SecretStoreKind::File, SecretStoreState::Locked));
        again.unlock("a long passphrase").await.unwrap();
        assert_eq!(again.get("A").await.unwrap().as_deref(), Some("canary-one"));
        assert!(again.remove("A").await.unwrap() && !again.remove("A").await.unwrap());
        assert_eq!(again.names().await.unwrap(), ["login:x"]);
    }

    #[tokio::test]
    async fn two_daemons_keep_what_the_other_one_stored() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| SecretStore::new(options(folder.path())));
        one.unlock("a long passphrase").await.unwrap();
        other.unlock("a long passphrase").await.unwrap();
        one.set("A", "canary-one").await.unwrap();
        other.set("B", "canary-two").await.unwrap();
        one.set("A", "canary-three").await.unwrap();
        assert_eq!(other.get("A").await.unwrap().as_deref(), Some("canary-one"), "it was read before");
        other.expect_changes();
        assert_eq!(other.get("A").await.unwrap().as_deref(), Some("canary-three"));
        assert_eq!(other.names().await.unwrap(), ["A", "B"]);
    }

    #[tokio::test]
    async fn a_systemd_credential_opens_the_file_without_a_person() {
        let folder = tempfile::tempdir().unwrap();
        let with_key = SecretOptions { credentials: Some(folder.path().to_owned()), ..options(folder.path()) };
        std::fs::write(folder.path().join(CREDENTIAL), "key of the machine").unwrap();
        SecretStore::new(with_key.clone()).set("A", "canary-one").await.unwrap();
        let again = SecretStore::new(with_key.clone());
        let mut text = SecretText::from("Bearer ");
        text.push_secret("A");
        assert_eq!(again.fill(&text).await.unwrap(), "Bearer canary-one");
        text.push_secret("B");
        assert!(again.fill(&text).await.unwrap_err().to_string().contains("toolctl secrets set B"));
        std::fs::write(folder.path().join(CREDENTIAL), "key of another machine").unwrap();
        assert!(matches!(SecretStore::new(with_key).get("A").await, Err(SecretError::WrongCredential)));
    }

    #[tokio::test]
    async fn a_damaged_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secrets.json"), "{\"store\": \"file\"").unwrap();
        let store = SecretStore::new(options(folder.path()));
        assert!(matches!(store.unlock("a long passphrase").await, Err(SecretError::Damaged { .. })));
        assert!(matches!(store.set("A", "canary-one").await, Err(SecretError::Damaged { .. })));
        assert_eq!(std::fs::read_to_string(folder.path().join("secrets.json")).unwrap(), "{\"store\": \"file\"");
    }

    #[tokio::test]
    async fn names_and_values_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretStore::new(options(folder.path()));
        for name in ["", "1a", "a b", "a:b", "ä", &"a".repeat(65)] {
            assert!(matches!(store.set(name, "canary-one").await, Err(SecretError::Name(_))), "{name}");
        }
        for value in ["", "short", "nul \0 in it", &"a".repeat(MAX_VALUE + 1)] {
            assert!(matches!(store.set("A", value).await, Err(SecretError::Value(_))));
        }
    }
}
