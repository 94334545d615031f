//! Options before a subcommand that change nothing about what it does, or only the folder that it works in.

use toold_engine::need::Word;

use super::arg::Arg;

/// Of a program: options without a value, and options with one.
type FirstOptions = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// An approval of `git commit` covers `git -P commit`. The folder behind `-C` needs a permission of its own.
const HARMLESS: &[FirstOptions] = &[
    (
        &["git"],
        &["-p", "-P", "--paginate", "--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs"],
        &["-C"],
    ),
    (
        &["cargo"],
        &[
            "-q",
            "--quiet",
            "-v",
            "--verbose",
            "-vv",
            "--locked",
            "--offline",
            "--frozen",
            "+nightly",
            "+stable",
            "+beta",
        ],
        &["--color"],
    ),
    (
        &["make", "gmake"],
        &["-k", "--keep-going", "-s", "--silent", "--no-print-directory", "-j"],
        &["-C", "-j", "--jobs"],
    ),
    (&["go"], &[], &["-C"]),
    (&["kubectl"], &[], &["-n", "--namespace", "--request-timeout"]),
    (&["npm"], &["-s", "--silent"], &["--prefix", "-C"]),
    (&["pnpm"], &["-s", "--silent", "-r", "--recursive"], &["-C", "--dir", "--filter", "-F"]),
    (&["yarn", "yarnpkg"], &["-s", "--silent"], &["--cwd"]),
    (&["docker", "podman", "nerdctl"], &["-D", "--debug"], &["-l", "--log-level"]),
    (&["npx", "bunx"], &["-y", "--yes", "--no", "--no-install", "-q", "--quiet"], &[]),
    (&["gradle", "gradlew", "./gradlew"], &["-q", "--quiet", "-i", "--info", "-s", "--stacktrace", "--offline"], &[]),
    (&["mvn", "mvnw", "./mvnw"], &["-q", "--quiet", "-B", "--batch-mode", "-ntp", "-o", "--offline"], &[]),
    (&["just", "task"], &["-q", "--quiet", "-v", "--verbose", "-s", "--silent"], &[]),
    (&["aws"], &["--no-cli-pager", "--no-paginate"], &["--output", "--color", "--query"]),
    (&["gcloud"], &[], &["--format", "--verbosity"]),
    (&["az"], &["--only-show-errors"], &["-o", "--output", "--query"]),
    (&["helm"], &["--debug"], &["-n", "--namespace"]),
];

/// Options with a folder.
const FOLDERS: &[&str] = &["-C", "--prefix", "--dir", "--cwd"];

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words without such options; `None` if there are none.
pub(super) fn without_place(words: &[Arg]) -> Option<Vec<Word>> {
    let (name, rest) = words.split_first()?;
    let program = name.literal()?;
    let (_, flags, values) = HARMLESS.iter().find(|(names, ..)| names.contains(&program))?;
    let mut at = 0;
    while let Some(text) = rest.get(at).and_then(Arg::literal) {
        let attached = text.split_once('=').filter(|(name, _)| name.starts_with("--") && values.contains(name));
        // The number is the next word, or it is none: `make -j test`.
        let counts = |at: usize| rest.get(at).and_then(Arg::literal).is_some_and(is_number);
        let is_count = matches!(text, "-j" | "--jobs");
        let has_count = text.strip_prefix("-j").is_some_and(is_number) && values.contains(&"-j");
        let is_public = |value: &str| ["/etc", "/usr"].iter().any(|folder| value.starts_with(folder));
        if attached.is_some_and(|(name, value)| FOLDERS.contains(&name) && is_public(value)) {
            return None;
        }
        if has_count || flags.contains(&text) && !(is_count && counts(at + 1)) || attached.is_some() {
            at += 1;
        } else if values.contains(&text) {
            // Everyone may read these folders, so that naming them needs no permission.
            let value = rest.get(at + 1)?.literal()?;
            if is_count && !is_number(value) {
                return None;
            }
            if FOLDERS.contains(&text) && is_public(value) {
                return None;
            }
            at += 2;
        } else {
            break;
        }
    }
    let behind = rest.get(at..).filter(|behind| at > 0 && !behind.is_empty())?;
    Some(std::iter::once(name).chain(behind).map(Arg::word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_options_are_left_out() {
        for (line, short) in [
            ("git -C src commit -m x", Some("git commit -m x")),
            ("git -P --no-pager -C a -C b push", Some("git push")),
            ("kubectl -n web get pods", Some("kubectl get pods")),
            ("kubectl --namespace=web get pods", Some("kubectl get pods")),
            ("cargo -q --locked build", Some("cargo build")),
            ("git commit -C src", None),
            ("git -c user.name=x commit", None),
            ("git --git-dir=x commit", None),
            ("git -C /usr/share/x commit", None),
            ("git -C", None),
            ("git -P", None),
            ("kubectl --context prod get pods", None),
            ("cargo +nightly build", Some("cargo build")),
            ("cargo +./own build", None),
            ("make -j8 -C web test", Some("make test")),
            ("make -j 8 test", Some("make test")),
            ("make -j test", Some("make test")),
            ("make -f x test", None),
            ("npm --prefix web test", Some("npm test")),
            ("npm --prefix=/usr/lib test", None),
            ("pnpm -C web --filter x test", Some("pnpm test")),
            ("go -C src test", Some("go test")),
            ("gh -R a/b pr view", None),
            ("mytool -q build", None),
        ] {
            let words: Vec<Arg> = line.split(' ').map(Arg::text).collect();
            let found = without_place(&words)
                .map(|words| words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), short, "{line}");
        }
    }
}
