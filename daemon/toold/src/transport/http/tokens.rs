//! What clients show: the token that may call, that of the administrator, and those of profiles. Each is in a file that only
//! its owner reads.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toold_engine::call::Principal;
use toold_proto::mcp::is_profile_name;

use crate::config::paths::{DaemonPaths, private_dir};
use crate::config::private_file;
use crate::config::random::random_hex;
use crate::peer::Peer;

/// Bytes of the file of a token.
const MAX_TOKEN: u64 = 64 << 10;

/// The known tokens, as digests, which are compared in constant time.
pub(super) struct Tokens {
    call: blake3::Hash,
    /// Only where a person has made one.
    admin: Option<blake3::Hash>,
    /// The folder of the tokens of profiles. Their files are read at each request, so that a token is valid from the moment
    /// when it is made until it is revoked.
    of_profiles: PathBuf,
}

/// A valid token.
#[derive(Clone)]
pub(super) struct ShownToken {
    pub(super) principal: Principal,
    /// That it is limited to.
    pub(super) profile: Option<String>,
    pub(super) digest: blake3::Hash,
}

impl ShownToken {
    /// The client that showed it.
    pub(super) fn peer(&self) -> Peer {
        Peer::of_token(self.principal).limited_to(self.profile.clone())
    }
}

impl Tokens {
    pub(super) fn read(places: &DaemonPaths) -> anyhow::Result<Self> {
        let hash = |token: String| blake3::hash(token.as_bytes());
        let admin = places.admin_token();
        let admin = admin.try_exists().is_ok_and(|there| there).then(|| token(&admin)).transpose()?;
        let call = hash(token(&places.mcp_token())?);
        let of_profiles = places.profile_tokens();
        // Before there is a token in it: the sandbox of a command hides only what is there when the command starts.
        private_dir(&of_profiles).with_context(|| format!("can't make {}", of_profiles.display()))?;
        Ok(Self { call, admin: admin.map(hash), of_profiles })
    }

    /// The token that a client shows, if it is valid. Takes the same time wherever the token differs.
    pub(super) fn find(&self, given: &str) -> Option<ShownToken> {
        let digest = blake3::hash(given.as_bytes());
        let (call, admin) = (digest == self.call, self.admin.is_some_and(|admin| digest == admin));
        let shown = |principal| ShownToken { principal, profile: None, digest };
        match (admin, call) {
            (true, _) => Some(shown(Principal::TokenAdmin)),
            (false, true) => Some(shown(Principal::TokenCall)),
            (false, false) => {
                // The token of a profile begins with its name.
                let (profile, _) = given.split_once('.')?;
                let shown = ShownToken { profile: Some(profile.to_owned()), ..shown(Principal::TokenCall) };
                self.is_valid(&shown).then_some(shown)
            }
        }
    }

    /// Whether a token has not been revoked.
    pub(super) fn is_valid(&self, shown: &ShownToken) -> bool {
        let Some(profile) = shown.profile.as_ref().filter(|profile| is_profile_name(profile)) else {
            return shown.profile.is_none();
        };
        match read(&self.of_profiles.join(profile)) {
            Ok(token) => blake3::hash(token.as_bytes()) == shown.digest,
            Err(error) => {
                tracing::debug!(profile, error = format!("{error:#}"), "the profile has no token");
                false
            }
        }
    }
}

/// The token in a file that only its owner reads; made when it is not there.
///
/// # Errors
/// The file cannot be read or made, is another's, or is open to others.
fn token(file: &Path) -> anyhow::Result<String> {
    use std::io::Write;
    if let Some(dir) = file.parent() {
        private_dir(dir).with_context(|| format!("can't make {}", dir.display()))?;
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match made {
        Ok(mut made) => {
            let token = random_hex(32);
            made.write_all(token.as_bytes()).with_context(|| format!("can't write {}", file.display()))?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(file),
        Err(error) => Err(error).with_context(|| format!("can't make {}", file.display())),
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let token = private_file::read(file, MAX_TOKEN)?;
    let token = String::from_utf8_lossy(&token).trim().to_owned();
    if token.len() < 16 {
        bail!("{} holds no token of 16 characters or more: remove it to get a new one", file.display());
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_the_owners_alone() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/mcp-token");
        let made = token(&file).unwrap();
        assert_eq!(made.len(), 64);
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(token(&file).unwrap(), made);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(token(&file).unwrap_err().to_string().contains("open to others"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "short").unwrap();
        assert!(token(&file).is_err());
    }
}
