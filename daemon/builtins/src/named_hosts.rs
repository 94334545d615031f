//! The hosts that the settings and the lock file of an installation name, so that one ask before it runs names them all.
//! It is no complete list: the guard of the network asks about others when they are connected to.

use std::path::Path;

use toold_engine::need::Need;
use toold_host::environment::Environment;
use toold_host::files;
use toold_proto::effect::Effect;
use url::Url;

/// The longest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// An ask that names more would not be read.
const MAX_HOSTS: usize = 8;

/// The name of the registry in `Cargo.lock`: an address that Cargo does not contact, and those that it does.
const CRATES_IO: &str = "https://github.com/rust-lang/crates.io-index";
const CRATES_IO_HOSTS: [&str; 2] = ["index.crates.io:443", "static.crates.io:443"];

/// Where the hosts of a program's packages stand.
struct PackageSource {
    programs: &'static [&'static str],
    /// Options whose value is a URL.
    options: &'static [&'static str],
    variables: &'static [&'static str],
    /// Files below the working folder, each with what stands in a line that names a host. Only the first one that names
    /// any counts, since it replaces the others.
    settings: &'static [(&'static str, &'static str)],
    lock_file: Option<(&'static str, &'static str)>,
}

const SOURCES: [PackageSource; 3] = [
    PackageSource {
        programs: &["npm", "npx", "pnpm", "yarn"],
        options: &["--registry"],
        variables: &["npm_config_registry"],
        settings: &[(".npmrc", "registry=")],
        lock_file: Some(("package-lock.json", "\"resolved\":")),
    },
    PackageSource {
        programs: &["pip", "pip3", "uv"],
        options: &["-i", "--index-url", "--extra-index-url", "--default-index", "--index"],
        variables: &["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"],
        settings: &[],
        lock_file: Some(("uv.lock", "url = ")),
    },
    PackageSource {
        programs: &["cargo"],
        options: &["--index"],
        variables: &[],
        settings: &[(".cargo/config.toml", "registry = "), (".cargo/config.toml", "index = ")],
        lock_file: Some(("Cargo.lock", "source = ")),
    },
];

/// Each as `host:port`, sorted. Reads a few files.
pub(crate) fn named_hosts(needs: &[Need], cwd: &Path, environment: &Environment) -> Vec<String> {
    let mut hosts: Vec<String> = needs.iter().flat_map(|need| of_command(need, cwd, environment)).collect();
    hosts.sort();
    hosts.dedup();
    if hosts.len() > MAX_HOSTS { Vec::new() } else { hosts }
}

fn of_command(need: &Need, cwd: &Path, environment: &Environment) -> Vec<String> {
    let effects = need.effects();
    let fetches = effects.contains(Effect::Install) || effects.contains(Effect::Fetch);
    let Some(words) = need.words().filter(|_| fetches) else { return Vec::new() };
    let words: Vec<&str> = words.iter().filter(|word| word.literal).map(|word| word.text.as_str()).collect();
    let name = words.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let Some(source) = SOURCES.iter().find(|source| source.programs.contains(&name)) else { return Vec::new() };
    // The line has the last word, then the variables, then the files.
    let options = source.options.iter().flat_map(|option| values(&words, option));
    let of_line: Vec<String> = options.filter_map(|url| host_in(&url)).collect();
    if !of_line.is_empty() {
        return of_line;
    }
    let of_variable = |name: &&str| environment.get(name)?.to_str().and_then(host_in);
    let of_variables: Vec<String> = source.variables.iter().filter_map(of_variable).collect();
    if !of_variables.is_empty() {
        return of_variables;
    }
    let of_files = source.settings.iter().chain(&source.lock_file).map(|(file, mark)| in_file(&cwd.join(file), mark));
    of_files.into_iter().find(|hosts| !hosts.is_empty()).unwrap_or_default()
}

/// The values of an option: `--index-url URL` and `--index-url=URL`.
fn values(words: &[&str], option: &str) -> Vec<String> {
    let apart = words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].to_owned());
    let joined = words.iter().filter_map(|word| word.strip_prefix(option)?.strip_prefix('=').map(str::to_owned));
    apart.chain(joined).collect()
}

fn in_file(file: &Path, mark: &str) -> Vec<String> {
    let Ok(text) = files::read_text(file, MAX_FILE) else { return Vec::new() };
    let of_line = |line: &str| match line.contains(CRATES_IO) {
        true => CRATES_IO_HOSTS.map(str::to_owned).to_vec(),
        false => host_in(line).into_iter().collect(),
    };
    let mut hosts: Vec<String> = text.lines().filter(|line| line.contains(mark)).flat_map(of_line).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// The host and the port of the first URL in a text.
fn host_in(text: &str) -> Option<String> {
    let at = ["https://", "http://"].iter().filter_map(|scheme| text.find(scheme)).min()?;
    let url = text.get(at..)?.split(|c: char| c.is_whitespace() || "\"'<>,#".contains(c)).next()?;
    let url = Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use toold_engine::effects::{CommandEffects, EffectSet};
    use toold_engine::need::{JudgedCommand, Word};

    use super::*;

    fn install(line: &str) -> Need {
        let words = Some(line.split(' ').map(|text| Word { text: text.to_owned(), literal: true }).collect());
        let effects = CommandEffects { operation: EffectSet::EMPTY.with(Effect::Install), ..CommandEffects::default() };
        Need::of_command(line, JudgedCommand { words, effects, ..JudgedCommand::default() })
    }

    #[track_caller]
    fn check(line: &str, files: &[(&str, &str)], variables: &[(&str, &str)], hosts: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let environment = Environment::default().with(variables.iter().copied());
        assert_eq!(named_hosts(&[install(line)], folder.path(), &environment), hosts, "{line}");
    }

    #[test]
    fn settings_and_lock_files_name_hosts() {
        let lock = r#"{"packages": {"a": {
            "resolved": "https://packages.example.org/a.tgz",
            "other": "https://no.example"}, "b": {
            "resolved": "https://mirror.example.net:8443/b.tgz"}}}"#;
        let hosts = ["mirror.example.net:8443", "packages.example.org:443"];
        check("npm ci", &[("package-lock.json", lock)], &[], &hosts);
        let own = (".npmrc", "registry=http://npm.example/\n//npm.example/:_authToken=x\n");
        check("npm install", &[own, ("package-lock.json", lock)], &[], &["npm.example:80"]);
        check("npm install --registry=https://other.example/", &[own], &[], &["other.example:443"]);
        check("npm install", &[], &[("npm_config_registry", "https://env.example")], &["env.example:443"]);
        check("pip install -i https://index.example/simple demo", &[], &[], &["index.example:443"]);
        let crates = "[[package]]\nsource = \"registry+https://index.example/crates\"\n";
        check("cargo fetch", &[("Cargo.lock", crates)], &[], &["index.example:443"]);
        let crates_io = format!("[[package]]\nsource = \"registry+{CRATES_IO}\"\n");
        check("cargo fetch", &[("Cargo.lock", &crates_io)], &[], &CRATES_IO_HOSTS);
        let replaced = "[source.own]\nregistry = \"sparse+http://crates.example:81/index/\"\n";
        check("cargo fetch", &[("Cargo.lock", crates), (".cargo/config.toml", replaced)], &[], &["crates.example:81"]);
        check("make install", &[("package-lock.json", lock)], &[], &[]);
        check("npm ci", &[], &[], &[]);
    }
}
