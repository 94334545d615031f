//! Commands that do the same for each of their operands: a rule that names one of them is about the command.

use toold_engine::need::{CommandForm, Word};

use super::{MAX_RESPELLED, NamedCommand};

/// Programs that do the same for each of their operands, and how many words before the first one choose what.
const FOR_EACH: &[(&str, usize)] = &[
    ("systemctl", 1),
    ("docker", 1),
    ("podman", 1),
    ("nerdctl", 1),
    ("kubectl", 2),
    ("oc", 2),
    ("apt", 1),
    ("apt-get", 1),
    ("brew", 1),
    ("dnf", 1),
];

/// Groups of operations of `docker` and the like: the verb stands behind them.
const GROUPS: &[&str] = &[
    "image",
    "container",
    "volume",
    "network",
    "compose",
    "context",
    "system",
    "builder",
    "buildx",
    "manifest",
    "plugin",
    "secret",
    "service",
    "stack",
    "node",
    "config",
    "trust",
    "pod",
];

impl NamedCommand {
    /// `systemctl restart nginx redis` of `systemctl restart redis nginx`: a rule names the first one.
    pub(super) fn for_each_target(&self) -> Vec<Self> {
        let Some((_, verbs)) = FOR_EACH.iter().find(|(program, _)| *program == self.program()) else {
            return Vec::new();
        };
        let plain: Vec<&Word> = match &self.form {
            Some(form) => form.plain.iter().collect(),
            None => self.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect(),
        };
        let is_group = plain.first().is_some_and(|word| GROUPS.contains(&word.text.as_str()));
        let verbs = if *verbs == 1 && is_group { 2 } else { *verbs };
        let Some((first, others)) = plain.get(verbs..).and_then(<[&Word]>::split_first) else { return Vec::new() };
        let before_first = |words: &[Word], target: &Word| {
            let mut words = words.to_vec();
            let (to, from) =
                (words.iter().position(|word| word == *first), words.iter().rposition(|word| word == target));
            if let (Some(to), Some(from)) = (to, from) {
                let target = words.remove(from);
                words.insert(to.min(from), target);
            }
            words
        };
        let for_target = |target: &&&Word| Self {
            words: before_first(&self.words, target),
            form: self
                .form
                .as_ref()
                .map(|form| CommandForm { plain: before_first(&form.plain, target), ..form.clone() }),
        };
        others.iter().filter(|target| target.literal).take(MAX_RESPELLED).map(|target| for_target(&target)).collect()
    }
}
