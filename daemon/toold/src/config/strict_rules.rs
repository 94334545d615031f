//! The rules that deny or ask, of each configuration as last read: they apply while its file cannot
//! be read, also after a restart. Of its hooks, which may refuse calls as well, only the number is
//! stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toold_engine::policy::rules::{RuleConfig, RulePlace};
use toold_host::state_file;

/// The number of files whose rules are stored; those that changed longest ago are dropped when
/// there are more.
const MAX_FILES: usize = 1_000;
/// A daemon never writes a larger file.
const MAX_BYTES: u64 = 64 << 20;

/// The stored rules of all configurations, in a file of the daemon's own.
pub struct StrictRules {
    path: PathBuf,
    kept: Mutex<SavedRules>,
}

#[derive(Default)]
struct SavedRules {
    /// By the configuration's path.
    files: BTreeMap<PathBuf, SavedFileRules>,
    /// The file exists, but its previous content is unknown.
    is_unreadable: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedFileRules {
    rules: Vec<StrictRule>,
    #[serde(default)]
    hooks: usize,
    /// Seconds since 1970.
    at: u64,
}

/// A rule that denies or asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrictRule {
    pub rule: RuleConfig,
    /// Its location, for the user.
    pub origin: String,
}

impl StrictRule {
    /// `None` for one that allows.
    pub fn of(rule: &RuleConfig, origin: &str) -> Option<Self> {
        (rule.action != "allow").then(|| Self { rule: rule.clone(), origin: origin.to_owned() })
    }
}

impl StrictRules {
    /// Blocks.
    pub fn load(path: PathBuf) -> Self {
        let files: Option<BTreeMap<PathBuf, SavedFileRules>> = state_file::load(&path, MAX_BYTES);
        let is_unreadable = files.is_none() && path.symlink_metadata().is_ok();
        Self { path, kept: Mutex::new(SavedRules { files: files.unwrap_or_default(), is_unreadable }) }
    }

    /// Stores the rules of a file that was read, and the number of its hooks, in place of the
    /// earlier ones. Writes, and then blocks, only when they changed.
    pub fn remember(&self, file: &Path, rules: Vec<StrictRule>, hooks: usize) {
        let mut kept = self.kept.lock();
        let before = kept.files.get(file).map(|kept| (kept.rules.as_slice(), kept.hooks)).unwrap_or_default();
        if before == (rules.as_slice(), hooks) && !kept.is_unreadable {
            return;
        }
        // Other daemons of the user store rules there as well.
        if let Some(theirs) = state_file::load::<BTreeMap<PathBuf, SavedFileRules>>(&self.path, MAX_BYTES) {
            kept.files = theirs;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        match rules.is_empty() && hooks == 0 {
            true => _ = kept.files.remove(file),
            false => _ = kept.files.insert(file.to_owned(), SavedFileRules { rules, hooks, at: now.as_secs() }),
        }
        while kept.files.len() > MAX_FILES {
            let oldest = kept.files.iter().min_by_key(|(_, kept)| kept.at).map(|(file, _)| file.clone());
            oldest.map(|oldest| kept.files.remove(&oldest));
        }
        match state_file::save_durably(&self.path, &kept.files) {
            Ok(()) => kept.is_unreadable = false,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "can't save the rules that deny for the next start");
            }
        }
    }

    /// The stored rules of a file that can no longer be read.
    pub fn of(&self, file: &Path, place: &RulePlace) -> Vec<(RuleConfig, RulePlace)> {
        let kept = self.kept.lock();
        let rules = kept.files.get(file).map(|kept| kept.rules.as_slice()).unwrap_or_default();
        let placed = |kept: &StrictRule| {
            let origin = format!("{} (as it was read last)", kept.origin);
            (kept.rule.clone(), RulePlace { origin, ..place.clone() })
        };
        rules.iter().map(placed).collect()
    }

    /// Why the denials of an unreadable file, with this many active hooks, are unknown; `None` when
    /// they are known.
    pub fn problem(&self, file: &Path, hooks_in_force: usize) -> Option<String> {
        let kept = self.kept.lock();
        if kept.is_unreadable {
            return Some(format!(
                "neither the configuration nor {}, which holds what it denied before, can be read: fix the \
                 configuration. Until then toold asks about everything",
                self.path.display()
            ));
        }
        let hooks = kept.files.get(file).map_or(0, |kept| kept.hooks);
        (hooks > hooks_in_force).then(|| {
            format!(
                "{} cannot be read, and its hooks ({hooks} when it was read last) might refuse this call: fix the \
                 configuration. Until then toold asks about everything",
                file.display()
            )
        })
    }
}
