//! The variables that a client passes to `session.open`, so that commands find the toolchains that the client finds.
//!
//! The daemon's own environment comes from the client that started it, perhaps days ago. Only the client knows a virtual
//! environment or a version of Node that was activated since.

use std::collections::BTreeMap;
use std::ffi::OsString;

use toold_proto::session::ClientRole;

/// Variables by which programs find their toolchains; a final `*` stands for any text. All clients of toold pass the
/// same ones.
pub const TOOLCHAIN: &[&str] = &[
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_VERSION",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "JAVA_HOME",
    "SDKMAN_DIR",
    "GEM_HOME",
    "RBENV_VERSION",
    "ASDF_DIR",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "SSH_AUTH_SOCK",
    "LANG",
    "LC_*",
    "TZ",
];

/// The variables that a client of this role passes: the [`TOOLCHAIN`] for a user's frontend, and all but those of toold
/// itself for a client that acts for a model. The daemon removes secrets. Values that are not UTF-8 are left out.
pub fn passed_on(
    role: Option<ClientRole>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    let texts =
        variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let passes = |name: &str| match role {
        Some(ClientRole::Agent) => !name.starts_with("TOOLD_"),
        Some(ClientRole::Person) | None => is_of_toolchain(name),
    };
    texts.filter(|(name, _)| passes(name)).collect()
}

fn is_of_toolchain(name: &str) -> bool {
    TOOLCHAIN.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[track_caller]
    fn check(role: Option<ClientRole>, expected: &[&str]) {
        let names = ["PATH", "LC_TIME", "LC", "PATHS", "GITHUB_TOKEN", "TOOLD_SOCKET"];
        let mut variables: Vec<(OsString, OsString)> = names.map(|name| (name.into(), "x".into())).into();
        variables.push(("LANG".into(), OsString::from_vec(vec![0xff])));
        let passed = passed_on(role, variables);
        assert_eq!(passed.keys().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_person_s_frontend_passes_the_toolchain_and_nothing_else() {
        check(None, &["LC_TIME", "PATH"]);
        check(Some(ClientRole::Person), &["LC_TIME", "PATH"]);
    }

    #[test]
    fn an_agent_passes_all_but_the_variables_of_toold() {
        check(Some(ClientRole::Agent), &["GITHUB_TOKEN", "LC", "LC_TIME", "PATH", "PATHS"]);
    }
}
