//! `secrets.*`: the secrets, by name. Only what stood in another program's file is ever returned.

use std::collections::{BTreeMap, BTreeSet};

use jsonrpsee::types::ErrorObjectOwned;
use toold_engine::kept::NotKept;
use toold_host::secret_text::SecretText;
use toold_host::secrets::{SecretError, is_secret_name};
use toold_proto::daemon::NoParams;
use toold_proto::mcp::McpServerState;
use toold_proto::method::{SecretsGiveBack, SecretsList, SecretsRemove, SecretsSet, SecretsUnlock};
use toold_proto::secret::{
    GivenBackSecret, NameSecret, SecretInfo, SecretList, SecretStoreState, SecretValue, SetSecret, UnlockSecrets,
};

use crate::config::plugins;
use crate::rpc::error::{NOT_KEPT, invalid_params, refused, unknown};
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<SecretsList, _>(
        module,
        Right::Administrator,
        |request, NoParams {}| async move { list(&request).await },
    )?;
    add_async::<SecretsSet, _>(module, Right::Administrator, set)?;
    add_async::<SecretsGiveBack, _>(module, Right::LocalPerson, give_back)?;
    add_async::<SecretsRemove, _>(module, Right::Administrator, remove)?;
    add_async::<SecretsUnlock, _>(module, Right::Administrator, unlock)
}

async fn set(request: MethodRequest, set: SetSecret) -> Result<SecretList, ErrorObjectOwned> {
    let SetSecret { name, value, from_file } = set;
    request.services.secrets.set(&name, &value.0).await.map_err(|error| not_done(&error))?;
    if from_file {
        let kept = request.services.secrets.keep(&from_file_name(&name), &value.0).await;
        kept.map_err(|error| not_done(&error))?;
    }
    restart_users(&request, |secrets| secrets.contains(&name));
    list(&request).await
}

/// The internal name that marks a secret that stood in a file of another program. No person can give it.
fn from_file_name(name: &str) -> String {
    format!("from file/{name}")
}

/// Only what a file had in plain text before: no other secret leaves the daemon.
async fn give_back(request: MethodRequest, named: NameSecret) -> Result<GivenBackSecret, ErrorObjectOwned> {
    let secrets = &request.services.secrets;
    let moved = secrets.get(&from_file_name(&named.name)).await.map_err(|error| not_done(&error))?;
    let value = moved.filter(|_| is_secret_name(&named.name)).ok_or_else(|| unknown("secret", &named.name))?;
    Ok(GivenBackSecret { value: SecretValue(value) })
}

async fn remove(request: MethodRequest, named: NameSecret) -> Result<SecretList, ErrorObjectOwned> {
    let secrets = &request.services.secrets;
    // The daemon's own secrets, such as logins, are removed by the methods that made them.
    let removed = match is_secret_name(&named.name) {
        true => secrets.remove(&named.name).await,
        false => Ok(false),
    };
    match &removed {
        Ok(false) => return Err(unknown("secret", &named.name)),
        Err(error) if !matches!(error, SecretError::NotKept(NotKept { holds: true, .. })) => {
            return Err(not_done(error));
        }
        // It is gone, stored or not.
        Ok(true) | Err(_) => {}
    }
    let marked = secrets.remove(&from_file_name(&named.name)).await;
    removed.and(marked).map_err(|error| not_done(&error))?;
    list(&request).await
}

async fn unlock(request: MethodRequest, params: UnlockSecrets) -> Result<SecretList, ErrorObjectOwned> {
    request.services.secrets.unlock(&params.passphrase.0).await.map_err(|error| not_done(&error))?;
    restart_users(&request, |secrets| !secrets.is_empty());
    list(&request).await
}

/// Servers that run with an old value, or wait for one, start again, and plugins with one in their table load again. The others
/// read it when they start.
fn restart_users(request: &MethodRequest, uses: impl Fn(&[String]) -> bool) {
    for (plugin, secrets) in plugins::secrets_in_tables(&request.services.config.loaded()) {
        if uses(&secrets) {
            let plugins = request.services.plugins.clone();
            // It may not be there.
            request.services.engine.tasks.spawn(async move { _ = plugins.reload(Some(&plugin)).await });
        }
    }
    let servers = &request.services.mcp_servers;
    let is_concerned =
        |state| matches!(state, McpServerState::Running | McpServerState::Failed | McpServerState::Starting);
    for server in servers.list().into_iter().filter(|server| is_concerned(server.state) && uses(&server.secrets)) {
        let servers = servers.clone();
        // It may be unmounted meanwhile.
        request.services.engine.tasks.spawn(async move { _ = servers.restart(&server.name).await });
    }
}

async fn list(request: &MethodRequest) -> Result<SecretList, ErrorObjectOwned> {
    let services = &request.services;
    let (store, state) = services.secrets.place().await.map_err(|error| not_done(&error))?;
    let is_locked = state == SecretStoreState::Locked;
    let set: BTreeSet<String> = match is_locked {
        true => BTreeSet::new(),
        false => services.secrets.names().await.map_err(|error| not_done(&error))?.into_iter().collect(),
    };
    let mut used_by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for server in services.mcp_servers.list() {
        for name in server.secrets {
            used_by.entry(name).or_default().push(server.name.clone());
        }
    }
    let config = services.config.loaded();
    for (plugin, secrets) in plugins::secrets_in_tables(&config) {
        for name in secrets {
            used_by.entry(name).or_default().push(format!("[plugins.{plugin}]"));
        }
    }
    let token = config.config.notify.secret_token(&|name| services.config.options.variable(name)).ok().flatten();
    for name in token.iter().flat_map(SecretText::secrets) {
        used_by.entry(name.to_owned()).or_default().push("[notify]".to_owned());
    }
    let mut names: BTreeSet<&String> = set.iter().chain(used_by.keys()).collect();
    names.extend(config.config.secrets.names.iter());
    let info = |name: &String| SecretInfo {
        name: name.clone(),
        is_set: Some(set.contains(name)).filter(|_| !is_locked),
        used_by: used_by.get(name).cloned().unwrap_or_default(),
    };
    // Tokens of logins are kept under names that no person gives.
    let secrets = names.into_iter().filter(|name| is_secret_name(name)).map(info).collect();
    Ok(SecretList { store, state, secrets })
}

pub(super) fn not_done(error: &SecretError) -> ErrorObjectOwned {
    let words = error.to_string();
    match error {
        SecretError::Name(_) | SecretError::Value(_) => invalid_params(&words),
        SecretError::NoPassphrase | SecretError::Locked => refused("secrets_locked", &words),
        SecretError::WrongKey | SecretError::WrongCredential => refused("wrong_passphrase", &words),
        SecretError::NothingToUnlock => refused("nothing_to_unlock", &words),
        SecretError::Keyring(_) => refused("keyring", &words),
        SecretError::Missing(name) => unknown("secret", name),
        SecretError::Damaged { .. } | SecretError::System { .. } | SecretError::NotKept(_) => refused(NOT_KEPT, &words),
    }
}
