//! Secrets as clients see them: their names, never their values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that is sent to the daemon, and back only where it came from another program's file. Its debug form does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SecretValue(pub String);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Params of `secrets.set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetSecret {
    /// 1 to 64 letters, digits, `_`, `-` or `.`, not beginning with a digit.
    pub name: String,
    /// A text of 6 characters or more.
    pub value: SecretValue,
    /// It stood in a file of another program, and `secrets.give_back` may return it for that file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_file: bool,
}

/// Answer of `secrets.give_back`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GivenBackSecret {
    pub value: SecretValue,
}

/// Params of `secrets.remove`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NameSecret {
    /// The name of the secret.
    pub name: String,
}

/// Params of `secrets.unlock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnlockSecrets {
    /// That of the encrypted file; chosen now, with 8 characters or more, if there is no file yet.
    pub passphrase: SecretValue,
}

/// Answer of `secrets.list`, `secrets.set`, `secrets.remove` and `secrets.unlock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SecretList {
    pub store: SecretStoreKind,
    pub state: SecretStoreState,
    /// The secrets that are set, that `[secrets] names` lists, or that an MCP server uses; sorted by name.
    pub secrets: Vec<SecretInfo>,
}

/// Where secrets are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecretStoreKind {
    /// The desktop's keyring, over the Secret Service of D-Bus.
    Keyring,
    /// An encrypted file in the daemon's folder of state.
    File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecretStoreState {
    Unlocked,
    /// `secrets.unlock` opens the file, or makes it; a keyring that does not answer is locked too.
    Locked,
    /// There is no file yet: `secrets.unlock` makes it.
    Absent,
}

/// One secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SecretInfo {
    pub name: String,
    /// Unknown while the secrets are locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_set: Option<bool>,
    /// The MCP servers whose configuration names it, and `[notify]`.
    pub used_by: Vec<String>,
}
