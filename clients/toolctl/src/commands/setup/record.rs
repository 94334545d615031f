//! What setup changed, so that it can be taken back: `setup.json` in the state folder. It holds no secret.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toold_client::place::state_folder;

use crate::commands::setup::text::{ConfigForm, ServerEntryKind, spliced};
use crate::config_file::{read, replace_own};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    pub(super) version: u32,
    /// The path of toolctl in the entries.
    pub(super) program: String,
    pub(super) files: Vec<ChangedFile>,
    /// Names of secrets that stood in files.
    pub(super) secrets: Vec<String>,
    /// Folders that the person chose.
    pub(super) workspaces: Vec<String>,
    /// Ids of grants for servers.
    #[serde(default)]
    pub(super) grants: Vec<String>,
}

/// A file that setup changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ChangedFile {
    pub(super) path: PathBuf,
    /// Whether it was there before.
    pub(super) existed: bool,
    /// Hashes of the file before the first step and after the last one.
    pub(super) before: String,
    pub(super) after: String,
    /// States of the file between two setups. A setup that was killed may not have reached its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    between: Vec<FileStage>,
    /// In the order in which they were made.
    pub(super) steps: Vec<TextStep>,
    pub(super) entries: Vec<ChangedEntry>,
    /// The entry for toold itself, by its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) added: Vec<Vec<String>>,
    /// The agent whose hooks are in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hooks: Option<String>,
    /// They also put `toolctl confine` before the agent's command lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) confines: bool,
    /// Parts of toold's own configuration, as they were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) blocks: Vec<String>,
}

/// The file after a number of steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileStage {
    steps: usize,
    hash: String,
}

/// Bytes that were replaced: `len` of them stand at `at` now, where `old` was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TextStep {
    at: usize,
    len: usize,
    old: KeptText,
}

/// An entry of a server that became one of a bridge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedEntry {
    /// The agent or editor.
    pub(super) place: String,
    pub(super) path: Vec<String>,
    pub(super) kind: ServerEntryKind,
    /// The server in toold's configuration.
    pub(super) source: String,
    pub(super) old: KeptText,
}

/// A text whose secrets are named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KeptText(Vec<KeptPart>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptPart {
    Text(String),
    Secret(String),
    /// The same with the escapes of a string in JSON or TOML, as a secret with quotes or line ends has them.
    Escaped(String),
}

/// A text as it stands in a string of JSON, and most often in one of TOML.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

impl KeptText {
    /// `secrets`: names and values.
    pub(super) fn new(text: &str, secrets: &[(String, String)]) -> Self {
        let mut kept = Self(vec![KeptPart::Text(text.to_owned())]);
        kept.hide(secrets);
        kept
    }

    fn hide(&mut self, secrets: &[(String, String)]) {
        let mut parts = std::mem::take(&mut self.0);
        // The longest first: another one may be a part of it.
        let mut secrets: Vec<_> = secrets.iter().collect();
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        for (name, value) in secrets {
            parts = parts.into_iter().flat_map(|part| part.without(value, &KeptPart::Secret(name.clone()))).collect();
            let escaped = escaped(value);
            if escaped != *value {
                let part = KeptPart::Escaped(name.clone());
                parts = parts.into_iter().flat_map(|kept| kept.without(&escaped, &part)).collect();
            }
        }
        self.0 = parts;
    }

    /// The text with its secrets.
    ///
    /// # Errors
    /// `secret` has no value for one of them.
    pub(super) fn filled(&self, secret: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                KeptPart::Text(plain) => text.push_str(plain),
                KeptPart::Secret(name) | KeptPart::Escaped(name) => {
                    let value = secret(name).with_context(|| format!("the secret {name} is gone"))?;
                    text.push_str(&if matches!(part, KeptPart::Escaped(_)) { escaped(&value) } else { value });
                }
            }
        }
        Ok(text)
    }
}

impl KeptPart {
    /// The parts with `place` where the text has this value.
    fn without(self, value: &str, place: &Self) -> Vec<Self> {
        let Self::Text(text) = self else { return vec![self] };
        let mut parts = Vec::new();
        for (at, piece) in text.split(value).enumerate() {
            if at > 0 {
                parts.push(place.clone());
            }
            if !piece.is_empty() {
                parts.push(Self::Text(piece.to_owned()));
            }
        }
        parts
    }
}

impl TextStep {
    /// The one region in which two texts differ, and the white space that differs around it. So a text that only gets
    /// something in one place, and is laid out in another way around that, is not kept: it may have secrets of others.
    pub(super) fn between(before: &str, after: &str, secrets: &[(String, String)]) -> Vec<Self> {
        let printed =
            |text: &str| -> Vec<(usize, char)> { text.char_indices().filter(|(_, c)| !c.is_whitespace()).collect() };
        let (old, new) = (printed(before), printed(after));
        let same = |((_, one), (_, other)): &(&(usize, char), &(usize, char))| one == other;
        let start = old.iter().zip(&new).take_while(same).count();
        let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(same).count();
        // The text in front of each character that both have, from the end of the one before it, and the text at the end.
        let common =
            (0..start).map(|at| (at, at)).chain((0..end).rev().map(|at| (old.len() - 1 - at, new.len() - 1 - at)));
        let common = common.map(|(at, then)| (old[at].0, new[then].0, old[at].1.len_utf8()));
        let (mut from, mut to) = (0, 0);
        let mut steps = Vec::new();
        for (old_at, new_at, len) in common.chain([(before.len(), after.len(), 0)]) {
            let (old, new) = (&before[from..old_at], &after[to..new_at]);
            if old != new {
                steps.push(Self { at: to, len: new.len(), old: KeptText::new(old, secrets) });
            }
            (from, to) = (old_at + len, new_at + len);
        }
        steps
    }
}

impl ChangedFile {
    /// Names these secrets in the texts that are kept: an earlier version kept more, and knew fewer secrets.
    pub(super) fn hide(&mut self, secrets: &[(String, String)]) {
        let texts = self.steps.iter_mut().map(|step| &mut step.old);
        texts.chain(self.entries.iter_mut().map(|entry| &mut entry.old)).for_each(|text| text.hide(secrets));
    }

    /// The text before all steps; `None` if the file is not as setup left it.
    ///
    /// # Errors
    /// A secret is missing.
    pub(super) fn original(
        &self,
        now: &str,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Option<String>> {
        let Some(made) = self.steps_in(now) else { return Ok(None) };
        let mut text = now.to_owned();
        for step in self.steps[..made].iter().rev() {
            let range = step.at..step.at + step.len;
            if text.get(range.clone()).is_none() {
                return Ok(None);
            }
            text = spliced(&text, range, &step.old.filled(secret)?);
        }
        Ok(Some(text).filter(|text| hash(text) == self.before))
    }

    /// The number of steps that led to this text; `None` if somebody else changed it.
    fn steps_in(&self, text: &str) -> Option<usize> {
        let hash = hash(text);
        let last = (hash == self.after).then_some(self.steps.len());
        let between = || self.between.iter().find(|stage| stage.hash == hash).map(|stage| stage.steps);
        last.or_else(between).or_else(|| (hash == self.before).then_some(0)).filter(|made| *made <= self.steps.len())
    }

    /// Adds what changes the text `before` into `after`.
    pub(super) fn extend(&mut self, before: &str, after: &str, steps: impl IntoIterator<Item = TextStep>) {
        match self.steps_in(before) {
            // A setup that was killed before it wrote has made none of its steps.
            Some(made) => {
                self.steps.truncate(made);
                self.between.retain(|stage| stage.steps < made);
                self.between.push(FileStage { steps: made, hash: hash(before) });
                self.steps.extend(steps);
            }
            // Somebody changed it since: its bytes before cannot be had again, its entries can.
            None => {
                self.steps.clear();
                self.between.clear();
                self.before.clear();
            }
        }
        self.after = hash(after);
    }

    pub(super) fn form(&self) -> ConfigForm {
        ConfigForm::of(&self.path)
    }
}

impl SetupRecord {
    /// The record; `None` if setup has changed nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read() -> anyhow::Result<Option<Self>> {
        let file = record_file()?;
        let Some(text) = read(&file)? else { return Ok(None) };
        let record: Self = serde_json::from_str(&text).with_context(|| format!("{} is damaged", file.display()))?;
        if record.version != VERSION {
            bail!("{} was written by another version of toolctl: use that one", file.display());
        }
        Ok(Some(record))
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let file = record_file()?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
        }
        replace_own(&file, &format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    pub(super) fn remove() -> anyhow::Result<()> {
        let file = record_file()?;
        std::fs::remove_file(&file).with_context(|| format!("can't remove {}", file.display()))
    }

    pub(super) fn new(program: &str) -> Self {
        Self { version: VERSION, program: program.to_owned(), ..Self::default() }
    }

    /// The entry for this file, which is added if there is none.
    pub(super) fn file(&mut self, path: &Path, before: Option<&str>) -> &mut ChangedFile {
        let at = match self.files.iter().position(|file| file.path == path) {
            Some(at) => at,
            None => {
                let text = before.unwrap_or_default();
                self.files.push(ChangedFile {
                    path: path.to_owned(),
                    existed: before.is_some(),
                    before: hash(text),
                    after: hash(text),
                    ..ChangedFile::default()
                });
                self.files.len() - 1
            }
        };
        &mut self.files[at]
    }
}

/// Held while setup changes files: of several, one at a time does.
pub(super) struct SetupLock {
    _state: File,
}

impl SetupLock {
    /// `seen`: the record as it was when the changes were computed.
    ///
    /// # Errors
    /// Another setup holds it, or has changed something since.
    pub(super) fn take(seen: Option<&SetupRecord>) -> anyhow::Result<Self> {
        let folder = state_folder().context("there is no state folder: set HOME or XDG_STATE_HOME")?;
        std::fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
        let state = File::open(&folder).with_context(|| format!("can't open {}", folder.display()))?;
        if flock(&state, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("nothing is changed: another `toolctl setup` is changing files; run it again when that has ended");
        }
        let text = |record: Option<&SetupRecord>| serde_json::to_string(&record);
        if text(SetupRecord::read()?.as_ref())? != text(seen)? {
            bail!("nothing is changed: another `toolctl setup` has changed files meanwhile; run it again");
        }
        Ok(Self { _state: state })
    }
}

/// Whether the text of an entry starts the bridge of this server.
pub(super) fn is_bridge(entry: &str, source: &str) -> bool {
    entry.contains("toolctl") && entry.contains("--source") && entry.contains(source)
}

const VERSION: u32 = 1;

pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

pub(super) fn record_file() -> anyhow::Result<PathBuf> {
    Ok(state_folder().context("there is no state folder: set HOME or XDG_STATE_HOME")?.join("setup.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_text_has_no_secret_and_is_whole_again() {
        let secrets = [("A", "hidden-1"), ("B", "hidden-22"), ("C", "{\"key\":\"hidden\\n3\"}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = "{\"a\": \"hidden-1\", \"b\": \"Bearer hidden-22\", \"c\": \"hidden-1\", \"d\": \"{\\\"key\\\":\\\"hidden\\\\n3\\\"}\"}";
        let kept = KeptText::new(text, &secrets);
        assert!(!serde_json::to_string(&kept).unwrap().contains("hidden"), "{kept:?}");
        let value = |name: &str| secrets.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(kept.filled(&value).unwrap(), text);
        assert!(kept.filled(&|_| None).is_err());
    }

    #[test]
    fn what_stays_in_the_file_is_not_kept_in_the_record() {
        let before = "{ \"servers\": { \"a\": { \"env\": {\"TOKEN\": \"hidden\"} } }, \"key\": \"hidden\" }";
        let after = "{\n  \"servers\": {\n    \"a\": { \"env\": {\"TOKEN\": \"hidden\"} },\n    \"b\": {}\n  },\n  \"key\": \"hidden\"\n}";
        let steps = TextStep::between(before, after, &[]);
        let kept = serde_json::to_string(&steps).unwrap();
        assert!(!kept.contains("hidden") && !kept.contains("TOKEN"), "{kept}");
        let file = ChangedFile { before: hash(before), after: hash(after), steps, ..ChangedFile::default() };
        assert_eq!(file.original(after, &|_| None).unwrap().as_deref(), Some(before));
    }

    #[test]
    fn steps_are_taken_back_in_reverse() {
        for texts in [
            ["aäb", "aöb", "aöö", ""],
            ["", "x", "xx", "axxa"],
            ["same", "same", "samesame", "s"],
            ["{ \"a\": {} }\n", "{\n  \"a\": {},\n  \"b\": {}\n}\n", "{\"b\":\t{}}", " \n"],
            [" ", "  a ", "a", " a\u{2003}"],
        ] {
            let mut file = ChangedFile { before: hash(texts[0]), ..ChangedFile::default() };
            file.after = file.before.clone();
            for pair in texts.windows(2) {
                // A setup that was killed before it wrote, and the next one.
                for after in ["never", pair[1]] {
                    file.extend(pair[0], after, TextStep::between(pair[0], after, &[]));
                    for text in [pair[0], pair[1]] {
                        let original = file.original(text, &|_| None).unwrap();
                        assert!(original.is_none_or(|original| original == texts[0]), "{text}");
                    }
                    assert_eq!(file.original(pair[0], &|_| None).unwrap().as_deref(), Some(texts[0]));
                }
                assert_eq!(file.original(pair[1], &|_| None).unwrap().as_deref(), Some(texts[0]));
            }
            assert_eq!(file.original("other", &|_| None).unwrap(), None);
        }
    }
}
