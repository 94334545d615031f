//! What lock files name: packages, and the hosts that they come from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Table;
use url::Url;

/// The most packages that a difference names.
const MAX_NAMED: usize = 12;

/// How a lock file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockFormat {
    /// `package-lock.json` and `npm-shrinkwrap.json`.
    Npm,
    Cargo,
    Uv,
    Poetry,
    Pnpm,
    /// `requirements.txt` in which each package has a hash.
    Requirements,
    /// A file whose packages are not read, with the host that its program fetches from by default.
    Unread(&'static str),
}

const NPM: &[&str] = &["registry.npmjs.org:443"];
const PYPI: &[&str] = &["pypi.org:443", "files.pythonhosted.org:443"];
const CRATES: &[&str] = &["index.crates.io:443", "static.crates.io:443"];

/// What a lock file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockedPackages {
    /// By name, the versions with what else identifies them: a hash and a source.
    packages: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Each as `host:port`.
    pub(super) hosts: BTreeSet<String>,
}

impl LockFormat {
    /// What a lock file names; `None` if it cannot be read, or if a package comes from elsewhere than a web server.
    pub(super) fn read(self, text: &str) -> Option<LockedPackages> {
        let mut found = LockedPackages::default();
        match self {
            Self::Npm => of_npm(&serde_json::from_str(text).ok()?, &mut found)?,
            Self::Cargo => of_tables(text, &mut found, cargo_source)?,
            Self::Uv => of_tables(text, &mut found, uv_source)?,
            Self::Poetry => of_tables(text, &mut found, poetry_source)?,
            Self::Pnpm => of_pnpm(&serde_saphyr::from_str(text).ok()?, &mut found)?,
            Self::Requirements => of_requirements(text, &mut found)?,
            Self::Unread(host) => found.add_hosts(&[host]),
        }
        Some(found)
    }

    /// Whether the packages are known.
    pub(super) fn names_packages(self) -> bool {
        !matches!(self, Self::Unread(_))
    }
}

impl LockedPackages {
    fn add(&mut self, name: &str, version: &str, identity: String) {
        self.packages.entry(name.to_owned()).or_default().insert((version.to_owned(), identity));
    }

    fn add_hosts(&mut self, hosts: &[&str]) {
        self.hosts.extend(hosts.iter().map(|host| (*host).to_owned()));
    }

    /// Adds the host of a URL; `None` if it has none that is connected to by HTTP.
    fn add_url(&mut self, url: &str) -> Option<()> {
        let url = Url::parse(url.strip_prefix("git+").unwrap_or(url)).ok()?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        self.hosts.insert(format!("{}:{}", url.host_str()?, url.port_or_known_default()?));
        Some(())
    }

    /// How it differs from an earlier version, for people. Without one, what it names.
    pub(super) fn difference(&self, before: Option<&Self>) -> String {
        let nothing = Self::default();
        let before = before.unwrap_or(&nothing);
        let versions = |of: &BTreeSet<(String, String)>| {
            let all: BTreeSet<&str> = of.iter().map(|(version, _)| version.as_str()).collect();
            all.into_iter().collect::<Vec<_>>().join(" and ")
        };
        let mut words: Vec<String> = Vec::new();
        for (name, now) in &self.packages {
            match before.packages.get(name) {
                None => words.push(format!("adds {name} {}", versions(now))),
                Some(was) if was == now => {}
                Some(was) if versions(was) == versions(now) => {
                    words.push(format!("has another source or content of {name} {}", versions(now)));
                }
                Some(was) => words.push(format!("has {name} {} instead of {}", versions(now), versions(was))),
            }
        }
        let gone = before.packages.keys().filter(|name| !self.packages.contains_key(*name));
        words.extend(gone.map(|name| format!("leaves out {name}")));
        let more = words.len().saturating_sub(MAX_NAMED);
        words.truncate(MAX_NAMED);
        if more > 0 {
            words.push(format!("and {more} more changes"));
        }
        if words.is_empty() {
            words.push("names the same packages in another form".to_owned());
        }
        let hosts: Vec<&str> = self.hosts.difference(&before.hosts).map(String::as_str).collect();
        let hosts = if hosts.is_empty() { String::new() } else { format!("; new hosts: {}", hosts.join(", ")) };
        format!("{}{hosts}", words.join(", "))
    }
}

fn of_npm(file: &Value, found: &mut LockedPackages) -> Option<()> {
    match file.get("packages").and_then(Value::as_object) {
        Some(packages) => {
            for (path, package) in packages {
                let Some((_, name)) = path.rsplit_once("node_modules/") else { continue };
                let is_here = |name: &str| package.get(name).and_then(Value::as_bool) == Some(true);
                if !is_here("link") && !is_here("inBundle") {
                    add_npm(package.get("name").and_then(Value::as_str).unwrap_or(name), package, found)?;
                }
            }
            Some(())
        }
        None => of_npm_1(file, found),
    }
}

/// The first version of the format, in which packages lie in others.
fn of_npm_1(of: &Value, found: &mut LockedPackages) -> Option<()> {
    for (name, package) in of.get("dependencies").and_then(Value::as_object).into_iter().flatten() {
        if package.get("bundled").and_then(Value::as_bool) != Some(true) {
            add_npm(name, package, found)?;
        }
        of_npm_1(package, found)?;
    }
    Some(())
}

fn add_npm(name: &str, package: &Value, found: &mut LockedPackages) -> Option<()> {
    let text = |name: &str| package.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, source) = (text("version"), text("resolved"));
    // The version of a package that is not from the registry is its source, in the first version of the format.
    let source = if source.is_empty() && version.contains(':') { version } else { source };
    if source.is_empty() {
        found.add_hosts(NPM);
    } else if !source.starts_with("file:") {
        found.add_url(source)?;
    }
    found.add(name, version, format!("{source} {}", text("integrity")));
    Some(())
}

fn of_pnpm(file: &Value, found: &mut LockedPackages) -> Option<()> {
    for (key, package) in file.get("packages").and_then(Value::as_object).into_iter().flatten() {
        // `@scope/name@1.2.3(peer@1.0.0)`, in older versions of the format with a slash in front.
        let plain = key.trim_start_matches('/').split('(').next()?;
        let (name, version) = plain.get(1..)?.rfind('@').map(|at| plain.split_at(at + 1))?;
        let version = version.strip_prefix('@')?;
        let resolution = package.get("resolution")?.as_object()?;
        for (kind, value) in resolution {
            match kind.as_str() {
                "tarball" => found.add_url(value.as_str()?)?,
                "integrity" => {}
                _ => return None,
            }
        }
        if !resolution.contains_key("tarball") {
            found.add_hosts(NPM);
        }
        found.add(name, version, serde_json::to_string(resolution).ok()?);
    }
    Some(())
}

/// A file with an array of tables, one for each package.
fn of_tables(
    text: &str,
    found: &mut LockedPackages,
    add_source: fn(&Table, &mut LockedPackages) -> Option<()>,
) -> Option<()> {
    let file: Table = toml::from_str(text).ok()?;
    for package in file.get("package").and_then(toml::Value::as_array).into_iter().flatten() {
        let package = package.as_table()?;
        add_source(package, found)?;
        let mut rest = package.clone();
        let text = |value: Option<toml::Value>| value.and_then(|value| value.as_str().map(str::to_owned));
        let (name, version) = (text(rest.remove("name"))?, text(rest.remove("version")).unwrap_or_default());
        found.add(&name, &version, rest.to_string());
    }
    Some(())
}

fn cargo_source(package: &Table, found: &mut LockedPackages) -> Option<()> {
    let Some(source) = package.get("source") else { return Some(()) };
    let (kind, url) = source.as_str()?.split_once('+')?;
    let is_of_crates = matches!(url, "https://github.com/rust-lang/crates.io-index" | "https://index.crates.io/");
    match kind {
        "registry" | "sparse" if is_of_crates => found.add_hosts(CRATES),
        "registry" | "sparse" | "git" => found.add_url(url)?,
        _ => return None,
    }
    Some(())
}

fn uv_source(package: &Table, found: &mut LockedPackages) -> Option<()> {
    let source = package.get("source")?.as_table()?;
    for (kind, place) in source {
        match kind.as_str() {
            // A registry may also be a folder.
            "registry" | "git" | "url" if place.as_str()?.contains("://") => found.add_url(place.as_str()?)?,
            "registry" | "path" | "directory" | "editable" | "virtual" | "subdirectory" => {}
            _ => return None,
        }
    }
    let wheels = package.get("wheels").and_then(toml::Value::as_array).into_iter().flatten();
    for file in package.get("sdist").into_iter().chain(wheels) {
        if let Some(url) = file.get("url").and_then(toml::Value::as_str) {
            found.add_url(url)?;
        }
    }
    Some(())
}

fn poetry_source(package: &Table, found: &mut LockedPackages) -> Option<()> {
    let Some(source) = package.get("source") else {
        found.add_hosts(PYPI);
        return Some(());
    };
    match source.get("type").and_then(toml::Value::as_str)? {
        "file" | "directory" => Some(()),
        _ => found.add_url(source.get("url")?.as_str()?),
    }
}

fn of_requirements(text: &str, found: &mut LockedPackages) -> Option<()> {
    for line in text.replace("\\\n", " ").lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (package, hashes) = line.split_once("--hash=")?;
        // Options of pip would lead elsewhere, and so would a URL.
        let (name, version) = package.split(';').next()?.trim().split_once("==")?;
        if name.starts_with('-') || name.contains(['@', '/', ' ']) || hashes.contains(" -") && !only_hashes(hashes) {
            return None;
        }
        found.add_hosts(PYPI);
        found.add(name, version, hashes.to_owned());
    }
    Some(())
}

fn only_hashes(text: &str) -> bool {
    text.split_whitespace().skip(1).all(|word| word.starts_with("--hash="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: LockFormat, text: &str, packages: &[&str], hosts: &[&str]) {
        let found = format.read(text).unwrap_or_else(|| panic!("{text}"));
        let named = |(name, versions): (&String, &BTreeSet<(String, String)>)| {
            let versions: Vec<&str> = versions.iter().map(|(version, _)| version.as_str()).collect();
            format!("{name} {}", versions.join(" "))
        };
        assert_eq!(found.packages.iter().map(named).collect::<Vec<_>>(), packages, "{text}");
        assert_eq!(found.hosts.iter().map(String::as_str).collect::<Vec<_>>(), hosts, "{text}");
    }

    const NPM_3: &str = r#"{"lockfileVersion": 3, "packages": {
        "": {"name": "app"},
        "web": {"version": "1.0.0"},
        "node_modules/web": {"resolved": "web", "link": true},
        "node_modules/a": {"version": "1.2.3", "resolved": "https://registry.example/a.tgz", "integrity": "sha512-x"},
        "node_modules/a/node_modules/@b/c": {"version": "2.0.0"},
        "node_modules/local": {"version": "1.0.0", "resolved": "file:local.tgz"}}}"#;

    #[test]
    fn each_format_is_read() {
        check(
            LockFormat::Npm,
            NPM_3,
            &["@b/c 2.0.0", "a 1.2.3", "local 1.0.0"],
            &["registry.example:443", "registry.npmjs.org:443"],
        );
        let first = r#"{"dependencies": {"a": {"version": "1.0.0", "resolved": "http://r.example:81/a.tgz",
            "dependencies": {"b": {"version": "https://other.example/b.tgz"}}}}}"#;
        check(
            LockFormat::Npm,
            first,
            &["a 1.0.0", "b https://other.example/b.tgz"],
            &["other.example:443", "r.example:81"],
        );
        let cargo = "[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                     source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"x\"\n\
                     [[package]]\nname = \"b\"\nversion = \"2.0.0\"\nsource = \"git+https://git.example/b?rev=1#1\"\n\
                     [[package]]\nname = \"c\"\nversion = \"3.0.0\"\nsource = \"sparse+https://crates.example/index/\"\n";
        let hosts = ["crates.example:443", "git.example:443", "index.crates.io:443", "static.crates.io:443"];
        check(LockFormat::Cargo, cargo, &["a 1.0.0", "b 2.0.0", "c 3.0.0", "own 0.1.0"], &hosts);
        let uv = "[[package]]\nname = \"own\"\nsource = { editable = \".\" }\n[[package]]\nname = \"a\"\nversion = \"1\"\n\
                  source = { registry = \"https://index.example/simple\" }\n\
                  wheels = [{ url = \"https://files.example/a.whl\", hash = \"sha256:x\" }]\n";
        check(LockFormat::Uv, uv, &["a 1", "own "], &["files.example:443", "index.example:443"]);
        let poetry = "[[package]]\nname = \"a\"\nversion = \"1\"\n[[package]]\nname = \"b\"\nversion = \"2\"\n\
                      [package.source]\ntype = \"legacy\"\nurl = \"https://own.example/simple\"\n";
        let hosts = ["files.pythonhosted.org:443", "own.example:443", "pypi.org:443"];
        check(LockFormat::Poetry, poetry, &["a 1", "b 2"], &hosts);
        let pip = "# made by pip-compile\na==1.0 \\\n    --hash=sha256:x \\\n    --hash=sha256:y\n    # via b\n\
                   b==2.0 ; python_version > \"3\" --hash=sha256:z\n";
        check(LockFormat::Requirements, pip, &["a 1.0", "b 2.0"], &["files.pythonhosted.org:443", "pypi.org:443"]);
        let pnpm = "lockfileVersion: '9.0'\npackages:\n  '@b/c@2.0.0(d@1.0.0)':\n    resolution: {integrity: sha512-x}\n  \
                    e@1.0.0:\n    resolution: {integrity: sha512-y, tarball: https://own.example/e.tgz}\n";
        check(LockFormat::Pnpm, pnpm, &["@b/c 2.0.0", "e 1.0.0"], &["own.example:443", "registry.npmjs.org:443"]);
        check(LockFormat::Unread("r.example:443"), "anything", &[], &["r.example:443"]);
    }

    #[test]
    fn what_comes_from_elsewhere_is_not_read() {
        for (format, text) in [
            (LockFormat::Npm, "x"),
            (
                LockFormat::Npm,
                r#"{"packages": {"node_modules/a": {"resolved": "git+ssh://git@github.com/a/a.git#1"}}}"#,
            ),
            (LockFormat::Cargo, "[[package]]\nname = \"a\"\nsource = \"git+ssh://git@git.example/a\"\n"),
            (LockFormat::Cargo, "[[package]]\nname = \"a\"\nsource = \"new+https://git.example/a\"\n"),
            (LockFormat::Uv, "[[package]]\nname = \"a\"\nsource = { other = \"x\" }\n"),
            (LockFormat::Requirements, "a==1\n"),
            (LockFormat::Requirements, "--index-url https://evil.example\na==1 --hash=sha256:x\n"),
            (LockFormat::Requirements, "a @ https://evil.example/a.whl --hash=sha256:x\n"),
            (LockFormat::Requirements, "a==1 --hash=sha256:x --index-url https://evil.example\n"),
        ] {
            assert_eq!(format.read(text), None, "{text}");
        }
    }

    #[test]
    fn a_difference_names_packages_and_hosts() {
        let npm = |text: &str| LockFormat::Npm.read(text).unwrap();
        let before = npm(NPM_3);
        assert_eq!(before.difference(Some(&before)), "names the same packages in another form");
        let now = NPM_3.replace("sha512-x", "sha512-y").replace("2.0.0", "2.0.1").replace("/local", "/left-pad");
        let now = now.replace("file:local.tgz", "https://evil.example/l.tgz");
        assert_eq!(
            npm(&now).difference(Some(&before)),
            "has @b/c 2.0.1 instead of 2.0.0, has another source or content of a 1.2.3, adds left-pad 1.0.0, leaves out \
             local; new hosts: evil.example:443"
        );
        assert!(before.difference(None).starts_with("adds @b/c 2.0.0, adds a 1.2.3"), "{}", before.difference(None));
    }
}
