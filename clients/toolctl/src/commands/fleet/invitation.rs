//! An invitation: one line without secrets that tells another machine how to take part in a fleet.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "toold-fleet:";
const VERSION: u32 = 1;
/// Bytes of the digest before the content, so that a line that was cut or changed is noticed.
const CHECKSUM: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Invitation {
    version: u32,
    pub(super) servers: Vec<String>,
    /// Public keys by name.
    pub(super) daemons: BTreeMap<String, String>,
    pub(super) people: BTreeMap<String, String>,
}

impl Invitation {
    pub(super) fn new(
        servers: Vec<String>,
        daemons: BTreeMap<String, String>,
        people: BTreeMap<String, String>,
    ) -> Self {
        Self { version: VERSION, servers, daemons, people }
    }

    /// As one line.
    pub(super) fn line(&self) -> anyhow::Result<String> {
        let json = serde_json::to_vec(self)?;
        let mut content = blake3::hash(&json).as_bytes()[..CHECKSUM].to_vec();
        content.extend_from_slice(&json);
        Ok(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(content)))
    }

    /// Line breaks and spaces, as a terminal or a mail adds them, are left out.
    pub(super) fn read(line: &str) -> anyhow::Result<Self> {
        let line: String = line.split_whitespace().collect();
        let Some(text) = line.strip_prefix(PREFIX) else {
            bail!("this is not an invitation, which begins with {PREFIX}; `toolctl fleet invite` prints one");
        };
        let not_whole = "the invitation is not whole: copy all of the line that `toolctl fleet invite` prints";
        let content = BASE64_URL_SAFE_NO_PAD.decode(text).context(not_whole)?;
        let Some((checksum, json)) = content.split_at_checked(CHECKSUM) else { bail!(not_whole) };
        if blake3::hash(json).as_bytes()[..CHECKSUM] != *checksum {
            bail!(not_whole);
        }
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_slice(json).context(not_whole)?;
        if version != VERSION {
            bail!(
                "the invitation has version {version}, and this toolctl reads version {VERSION}: use one version of toold"
            );
        }
        serde_json::from_slice(json).context("the invitation has no servers or keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation() -> Invitation {
        let keys = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), format!("K{name}"))).collect();
        Invitation::new(vec!["tls://build:4222".to_owned()], keys(&["build", "laptop"]), keys(&["anna"]))
    }

    #[test]
    fn an_invitation_survives_line_breaks() {
        let line = invitation().line().unwrap();
        assert_eq!(Invitation::read(&line).unwrap(), invitation());
        let (start, end) = line.split_at(40);
        assert_eq!(Invitation::read(&format!("  {start}\n  {end}\n")).unwrap(), invitation());
    }

    #[test]
    fn an_invitation_that_was_cut_or_changed_is_noticed() {
        let line = invitation().line().unwrap();
        for length in 0..line.len() {
            assert!(Invitation::read(&line[..length]).is_err(), "{length} characters");
        }
        let other = if line.ends_with('A') { 'Q' } else { 'A' };
        for at in PREFIX.len()..line.len() - 1 {
            let changed = format!("{}{other}{}", &line[..at], &line[at + 1..]);
            assert!(changed == line || Invitation::read(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn an_invitation_of_another_version_says_so() {
        let error = Invitation::read(&Invitation { version: 2, ..invitation() }.line().unwrap()).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
    }
}
