//! Changes that an upgrade from version 0.1 makes for this user.

use serde::{Deserialize, Serialize};

/// Params of `upgrade.check`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckUpgrade {
    /// The grants of version 0.1 in the answer have been reviewed: they are not listed again.
    #[serde(default)]
    pub reviewed: bool,
}

/// Answer of `upgrade.check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UpgradeReport {
    pub changes: Vec<UpgradeChange>,
}

/// Something that version 0.1 allowed, and that this version asks about, ignores or suggests to review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UpgradeChange {
    pub kind: UpgradeKind,
    /// The rule, grant, variable, folder or session, and its location.
    pub subject: String,
    /// How it is treated now.
    pub now: String,
    /// A command or a configuration that allows it again.
    pub replacement: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UpgradeKind {
    Rule,
    Grant,
    Environment,
    Workspace,
    Join,
}
