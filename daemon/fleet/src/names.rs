//! Names of daemons, persons and labels.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name in a fleet: 1 to 32 lower-case letters, digits and `_`, beginning with a letter. It is a token of NATS subjects and
/// the prefix of tools' names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FleetName(String);

/// A text that is no [`FleetName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name: it must be 1 to 32 lower-case letters, digits or _, and begin with a letter")]
pub struct BadFleetName(pub String);

impl FleetName {
    /// # Errors
    /// For any other text.
    pub fn parse(text: &str) -> Result<Self, BadFleetName> {
        let is_name = (1..=32).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_name { Ok(Self(text.to_owned())) } else { Err(BadFleetName(text.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for FleetName {
    type Error = BadFleetName;

    fn try_from(text: String) -> Result<Self, BadFleetName> {
        Self::parse(&text)
    }
}

impl From<FleetName> for String {
    fn from(name: FleetName) -> Self {
        name.0
    }
}

impl std::borrow::Borrow<str> for FleetName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
