//! Secrets in the desktop's keyring, over the Secret Service of D-Bus: one item for each daemon.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use secret_service::{EncryptionType, SecretService};
use tokio::time::timeout;
use zbus::connection::Builder;

use super::SecretError;

/// How long the keyring may take to answer. A person may be asked to unlock it meanwhile.
const ANSWER: Duration = Duration::from_secs(120);
/// How long it may take to be found.
const FIND: Duration = Duration::from_secs(10);

/// The item of one daemon.
pub(super) struct Keyring {
    bus: String,
    /// Tells the items of several daemons of one user apart.
    state: String,
}

impl Keyring {
    /// # Errors
    /// The bus has no Secret Service.
    pub(super) async fn find(bus: &str, file: &Path) -> Result<Self, SecretError> {
        let state = file.parent().unwrap_or(file).display().to_string();
        let keyring = Self { bus: bus.to_owned(), state };
        match timeout(FIND, keyring.connect()).await {
            Ok(Ok(service)) => drop(service.get_default_collection().await.map_err(failed)?),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(SecretError::Keyring("it took too long to connect".to_owned())),
        }
        Ok(keyring)
    }

    /// The item's content; `None` while there is none. May ask a person to unlock the keyring.
    pub(super) async fn read(&self) -> Result<Option<Vec<u8>>, SecretError> {
        in_time(async {
            let service = self.connect().await?;
            let found = service.search_items(self.attributes()).await.map_err(failed)?;
            let Some(item) = found.unlocked.first().or(found.locked.first()) else { return Ok(None) };
            item.unlock().await.map_err(failed)?;
            Ok(Some(item.get_secret().await.map_err(failed)?))
        })
        .await
    }

    /// Makes or replaces the item. May ask a person to unlock the keyring.
    pub(super) async fn write(&self, json: &str) -> Result<(), SecretError> {
        in_time(async {
            let service = self.connect().await?;
            let collection = service.get_default_collection().await.map_err(failed)?;
            collection.unlock().await.map_err(failed)?;
            let item = collection.create_item(
                "Secrets of toold",
                self.attributes(),
                json.as_bytes(),
                true,
                "application/json",
            );
            item.await.map_err(failed)?;
            Ok(())
        })
        .await
    }

    async fn connect(&self) -> Result<SecretService<'static>, SecretError> {
        let bus = Builder::address(self.bus.as_str()).map_err(|error| SecretError::Keyring(error.to_string()))?;
        let bus = bus.build().await.map_err(|error| SecretError::Keyring(error.to_string()))?;
        SecretService::connect_with_existing(EncryptionType::Dh, bus).await.map_err(failed)
    }

    fn attributes(&self) -> HashMap<&str, &str> {
        HashMap::from([("application", "toold"), ("state", self.state.as_str())])
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, SecretError>>) -> Result<T, SecretError> {
    match timeout(ANSWER, work).await {
        Ok(done) => done,
        Err(_) => Err(SecretError::Keyring(format!("no answer within {} s", ANSWER.as_secs()))),
    }
}

fn failed(error: secret_service::Error) -> SecretError {
    SecretError::Keyring(error.to_string())
}
