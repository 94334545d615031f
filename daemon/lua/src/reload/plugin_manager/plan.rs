//! What one revision changes: decided from what was seen and what serves, without doing any of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use toold_engine::registry::SourceScope;

use crate::reload::plugin_manager::EntryKey;

/// An entry, as far as a plan depends on it.
#[derive(Clone, Debug)]
pub(super) struct KnownPlugin {
    pub(super) name: String,
    pub(super) scope: SourceScope,
    /// A version of it is in service.
    pub(super) serves: bool,
    /// It is disabled or not trusted.
    pub(super) is_withheld: bool,
}

/// What a load found, with the name that the plugin has now.
#[derive(Clone, Debug)]
pub(super) enum SeenPlugin {
    Unchanged,
    Gone,
    Disabled {
        name: String,
    },
    /// `kept` is the name of its last good version, which may serve meanwhile.
    Untrusted {
        name: String,
        kept: Option<String>,
    },
    Failed {
        name: String,
        kept: Option<String>,
    },
    Loaded {
        name: String,
    },
}

/// A step of a revision. Steps are carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RevisionStep {
    /// The entry is gone: its version leaves service.
    Forget(EntryKey),
    /// Its version leaves service.
    Disable(EntryKey),
    /// The version in service stays there, here and in the next step.
    Distrust(EntryKey),
    Fail(EntryKey),
    /// A plugin that comes first has its name: its version leaves service.
    Shadow(EntryKey),
    /// The version that was loaded enters service.
    Serve(EntryKey),
    /// Its last good version enters service.
    ServeKept(EntryKey),
    /// Other plugins may use this name now.
    Free(String),
}

/// All entries, found by key and by name.
#[derive(Debug, Default)]
pub(super) struct KnownPlugins {
    entries: BTreeMap<EntryKey, KnownPlugin>,
    by_name: HashMap<String, BTreeSet<EntryKey>>,
}

impl FromIterator<(EntryKey, KnownPlugin)> for KnownPlugins {
    fn from_iter<T: IntoIterator<Item = (EntryKey, KnownPlugin)>>(entries: T) -> Self {
        let mut all = Self::default();
        for (key, entry) in entries {
            all.by_name.entry(entry.name.clone()).or_default().insert(key.clone());
            all.entries.insert(key, entry);
        }
        all
    }
}

/// Plans the revision that puts what was seen into service. If two plugins want the same name, the one with the smaller
/// key gets it. Results for entries that are not known are ignored.
pub(super) fn plan(mut known: KnownPlugins, mut seen: Vec<(EntryKey, SeenPlugin)>) -> Vec<RevisionStep> {
    seen.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut steps = Vec::new();
    for (key, seen) in seen {
        let Some(serves) = known.entries.get(&key).map(|entry| entry.serves) else { continue };
        let kept = match seen {
            SeenPlugin::Unchanged => None,
            SeenPlugin::Gone => {
                let name = known.remove(&key);
                steps.extend([RevisionStep::Forget(key.clone()), RevisionStep::Free(name)]);
                None
            }
            SeenPlugin::Disabled { name } => {
                // A version in service keeps its name.
                let name = if serves { known.name(&key) } else { name };
                known.change(&key, |entry| (entry.serves, entry.is_withheld) = (false, true));
                known.rename(&key, &name);
                steps.extend([RevisionStep::Disable(key.clone()), RevisionStep::Free(name)]);
                None
            }
            SeenPlugin::Untrusted { name, kept } => {
                known.change(&key, |entry| entry.is_withheld = true);
                if !serves {
                    known.rename(&key, &name);
                }
                steps.push(RevisionStep::Distrust(key.clone()));
                kept
            }
            SeenPlugin::Failed { name, kept } => {
                known.change(&key, |entry| entry.is_withheld = false);
                if !serves {
                    known.rename(&key, &name);
                }
                steps.push(RevisionStep::Fail(key.clone()));
                kept
            }
            SeenPlugin::Loaded { name } => {
                known.change(&key, |entry| entry.is_withheld = false);
                let before = known.rename(&key, &name);
                if before != name {
                    steps.push(RevisionStep::Free(before));
                }
                if known.is_shadowed(&key) {
                    known.change(&key, |entry| entry.serves = false);
                    steps.push(RevisionStep::Shadow(key.clone()));
                } else {
                    known.put(&key, RevisionStep::Serve(key.clone()), &mut steps);
                }
                None
            }
        };
        if let Some(kept) = kept.filter(|_| !serves) {
            known.rename(&key, &kept);
            if !known.is_shadowed(&key) {
                known.put(&key, RevisionStep::ServeKept(key.clone()), &mut steps);
            }
        }
    }
    steps
}

impl KnownPlugins {
    fn name(&self, key: &EntryKey) -> String {
        self.entries.get(key).map(|entry| entry.name.clone()).unwrap_or_default()
    }

    fn change(&mut self, key: &EntryKey, change: impl FnOnce(&mut KnownPlugin)) {
        self.entries.entry(key.clone()).and_modify(change);
    }

    /// Returns the name before.
    fn rename(&mut self, key: &EntryKey, name: &str) -> String {
        let Some(entry) = self.entries.get_mut(key) else { return String::new() };
        let before = std::mem::replace(&mut entry.name, name.to_owned());
        if before != name {
            self.unlist(key, &before);
            self.by_name.entry(name.to_owned()).or_default().insert(key.clone());
        }
        before
    }

    fn remove(&mut self, key: &EntryKey) -> String {
        let name = self.entries.remove(key).map(|entry| entry.name).unwrap_or_default();
        self.unlist(key, &name);
        name
    }

    fn unlist(&mut self, key: &EntryKey, name: &str) {
        if let Some(keys) = self.by_name.get_mut(name) {
            keys.remove(key);
        }
    }

    /// The version of an entry enters service: those of later entries with its name leave it.
    fn put(&mut self, key: &EntryKey, step: RevisionStep, steps: &mut Vec<RevisionStep>) {
        let later: Vec<EntryKey> = self.rivals(key).filter(|rival| *rival > key).cloned().collect();
        for rival in later {
            self.change(&rival, |entry| entry.serves = false);
            steps.push(RevisionStep::Shadow(rival));
        }
        self.change(key, |entry| entry.serves = true);
        steps.push(step);
    }

    fn is_shadowed(&self, key: &EntryKey) -> bool {
        self.rivals(key).any(|rival| rival < key)
    }

    /// Other entries that some session would see under the same name, and that may run.
    fn rivals<'a>(&'a self, key: &'a EntryKey) -> impl Iterator<Item = &'a EntryKey> {
        let own = self.entries.get(key);
        let named = own.and_then(|own| self.by_name.get(&own.name));
        named.into_iter().flatten().filter(move |other| {
            let (Some(own), Some(rival)) = (own, self.entries.get(*other)) else { return false };
            let overlaps =
                rival.scope == SourceScope::Global || own.scope == SourceScope::Global || rival.scope == own.scope;
            *other != key && overlaps && (rival.serves || !rival.is_withheld)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVES: (bool, bool) = (true, false);
    const WAITS: (bool, bool) = (false, false);
    const WITHHELD: (bool, bool) = (false, true);

    /// `1` is the entry `/1` of folder 1.
    fn key(number: usize) -> EntryKey {
        (number, format!("/{number}").into())
    }

    fn loaded(name: &str) -> SeenPlugin {
        SeenPlugin::Loaded { name: name.to_owned() }
    }

    fn failed(name: &str, kept: Option<&str>) -> SeenPlugin {
        SeenPlugin::Failed { name: name.to_owned(), kept: kept.map(str::to_owned) }
    }

    /// Plans for entries of all sessions.
    fn steps_of(known: &[(usize, &str, (bool, bool))], seen: Vec<(usize, SeenPlugin)>) -> Vec<RevisionStep> {
        let known = known.iter().map(|(number, name, (serves, is_withheld))| {
            let (name, scope) = ((*name).to_owned(), SourceScope::Global);
            (key(*number), KnownPlugin { name, scope, serves: *serves, is_withheld: *is_withheld })
        });
        plan(known.collect(), seen.into_iter().map(|(number, seen)| (key(number), seen)).collect())
    }

    #[test]
    fn one_entry() {
        let (free, own) = (|name: &str| RevisionStep::Free(name.to_owned()), key(1));
        let disabled = || SeenPlugin::Disabled { name: "b".to_owned() };
        let untrusted =
            |kept: Option<&str>| SeenPlugin::Untrusted { name: "b".to_owned(), kept: kept.map(str::to_owned) };
        for (state, seen, expected) in [
            (WAITS, loaded("a"), vec![RevisionStep::Serve(own.clone())]),
            (SERVES, loaded("a"), vec![RevisionStep::Serve(own.clone())]),
            (WITHHELD, loaded("a"), vec![RevisionStep::Serve(own.clone())]),
            (SERVES, loaded("b"), vec![free("a"), RevisionStep::Serve(own.clone())]),
            (SERVES, SeenPlugin::Unchanged, vec![]),
            (SERVES, SeenPlugin::Gone, vec![RevisionStep::Forget(own.clone()), free("a")]),
            (WAITS, disabled(), vec![RevisionStep::Disable(own.clone()), free("b")]),
            (SERVES, disabled(), vec![RevisionStep::Disable(own.clone()), free("a")]),
            (SERVES, untrusted(None), vec![RevisionStep::Distrust(own.clone())]),
            (
                WAITS,
                untrusted(Some("a")),
                vec![RevisionStep::Distrust(own.clone()), RevisionStep::ServeKept(own.clone())],
            ),
            (SERVES, untrusted(Some("a")), vec![RevisionStep::Distrust(own.clone())]),
            (SERVES, failed("b", None), vec![RevisionStep::Fail(own.clone())]),
            (
                WAITS,
                failed("b", Some("a")),
                vec![RevisionStep::Fail(own.clone()), RevisionStep::ServeKept(own.clone())],
            ),
        ] {
            let told = format!("{state:?} {seen:?}");
            assert_eq!(steps_of(&[(1, "a", state)], vec![(1, seen)]), expected, "{told}");
        }
        assert_eq!(steps_of(&[], vec![(1, loaded("a"))]), [], "an entry that nobody knows");
    }

    #[test]
    fn the_first_of_two_with_one_name_serves() {
        let (first, second) = (key(1), key(2));
        let shadow = || RevisionStep::Shadow(second.clone());
        // Whichever is loaded first, and together.
        assert_eq!(
            steps_of(&[(1, "a", WAITS), (2, "a", WAITS)], vec![(2, loaded("a")), (1, loaded("a"))]),
            [shadow(), RevisionStep::Serve(first.clone()), shadow()]
        );
        assert_eq!(
            steps_of(&[(1, "a", WITHHELD), (2, "a", WAITS)], vec![(1, loaded("a")), (2, loaded("a"))]),
            [shadow(), RevisionStep::Serve(first.clone()), shadow()]
        );
        assert_eq!(steps_of(&[(1, "a", SERVES), (2, "a", WAITS)], vec![(2, loaded("a"))]), [shadow()]);
        assert_eq!(
            steps_of(&[(1, "a", WAITS), (2, "a", SERVES)], vec![(1, loaded("a"))]),
            [shadow(), RevisionStep::Serve(first.clone())]
        );
        // One that may not run leaves its name to others, as one that is gone does.
        assert_eq!(
            steps_of(&[(1, "a", WITHHELD), (2, "a", WAITS)], vec![(2, loaded("a"))]),
            [RevisionStep::Serve(second.clone())]
        );
        assert_eq!(
            steps_of(&[(1, "a", SERVES), (2, "a", WAITS)], vec![(1, SeenPlugin::Gone), (2, loaded("a"))]),
            [
                RevisionStep::Forget(first.clone()),
                RevisionStep::Free("a".to_owned()),
                RevisionStep::Serve(second.clone())
            ]
        );
        assert_eq!(
            steps_of(&[(1, "a", SERVES), (2, "b", WAITS)], vec![(2, failed("b", Some("a")))]),
            [RevisionStep::Fail(second.clone())],
            "nor does a version that was kept"
        );
    }

    #[test]
    fn plugins_of_two_projects_may_have_one_name() {
        let entry = |project: &str| {
            let scope = SourceScope::Project(std::path::Path::new(project).into());
            KnownPlugin { name: "a".to_owned(), scope, serves: false, is_withheld: false }
        };
        let known = KnownPlugins::from_iter([(key(1), entry("/x")), (key(2), entry("/y")), (key(3), entry("/x"))]);
        let steps = plan(known, (1..=3).map(|number| (key(number), loaded("a"))).collect());
        let expected = [
            RevisionStep::Shadow(key(3)),
            RevisionStep::Serve(key(1)),
            RevisionStep::Serve(key(2)),
            RevisionStep::Shadow(key(3)),
        ];
        assert_eq!(steps, expected);
    }
}
