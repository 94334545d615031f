//! Options before a subcommand that change nothing about what it does, or only the folder that it works in.

use toold_engine::need::Word;

use super::arg::Arg;
use super::programs::{ProgramTable, Takes, find};

/// The names of a program, its options without a value, and those with one.
type FirstOptions = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// An approval of `git commit` covers `git -P commit`. Options with a folder are in the tables, and the folder needs a
/// permission of its own.
const HARMLESS: &[FirstOptions] = &[
    (
        &["git"],
        &["-p", "-P", "--paginate", "--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs"],
        &[],
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
    (&["make", "gmake"], &["-k", "--keep-going", "-s", "--silent", "--no-print-directory", "-j"], &["-j", "--jobs"]),
    (&["kubectl"], &[], &["-n", "--namespace", "--request-timeout"]),
    (&["npm"], &["-s", "--silent", "-ws", "--workspaces", "--include-workspace-root"], &["-w", "--workspace"]),
    (&["pnpm"], &["-s", "--silent", "-r", "--recursive"], &["--filter", "-F"]),
    (&["yarn", "yarnpkg"], &["-s", "--silent"], &[]),
    (&["docker", "podman", "nerdctl"], &["-D", "--debug"], &["-l", "--log-level"]),
    (&["npx", "bunx"], &["-y", "--yes", "--no", "--no-install", "-q", "--quiet"], &[]),
    (&["gradle", "gradlew", "./gradlew"], &["-q", "--quiet", "-i", "--info", "-s", "--stacktrace", "--offline"], &[]),
    (&["mvn", "mvnw", "./mvnw"], &["-q", "--quiet", "-B", "--batch-mode", "-ntp", "-o", "--offline"], &[]),
    (&["just", "task"], &["-q", "--quiet", "-v", "--verbose", "-s", "--silent"], &[]),
    (&["aws"], &["--no-cli-pager", "--no-paginate"], &["--output", "--color", "--query"]),
    (&["gcloud"], &[], &["--format", "--verbosity"]),
    (&["az"], &["--only-show-errors"], &["-o", "--output", "--query"]),
    (&["helm"], &["--debug"], &["-n", "--namespace"]),
    (&["uv"], &["-q", "--quiet", "--offline", "--no-progress"], &[]),
    (&["poetry"], &["-n", "--no-interaction", "-q", "--quiet", "--no-ansi"], &[]),
    (&["composer"], &["-n", "--no-interaction", "-q", "--quiet", "--no-ansi"], &[]),
];

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words without such options; `None` if there are none.
pub(super) fn without_place(words: &[Arg]) -> Option<Vec<Word>> {
    let (name, rest) = words.split_first()?;
    let program = name.literal()?;
    let (flags, values) = HARMLESS
        .iter()
        .find(|(names, ..)| names.contains(&program))
        .map_or((Default::default(), Default::default()), |(_, flags, values)| (*flags, *values));
    let mut known = find(program);
    let mut kept = vec![name];
    let (mut at, mut is_shorter) = (0, false);
    loop {
        let end = behind_options(rest, at, known, if kept.len() == 1 { (flags, values) } else { (&[], &[]) })?;
        is_shorter |= end > at;
        at = end;
        // `docker compose --project-directory web up`
        let group = rest.get(at).and_then(Arg::literal).and_then(|text| known?.subcommands.get(text));
        let Some(group) = group.filter(|group| !group.subcommands.is_empty()) else { break };
        kept.push(&rest[at]);
        (known, at) = (Some(group), at + 1);
    }
    let behind = rest.get(at..).filter(|behind| is_shorter && !behind.is_empty())?;
    Some(kept.into_iter().chain(behind).map(Arg::word).collect())
}

/// Where the first word is that is neither such an option nor its value; `None` if an option is not harmless here.
fn behind_options(
    rest: &[Arg],
    mut at: usize,
    known: Option<&ProgramTable>,
    (flags, values): (&[&str], &[&str]),
) -> Option<usize> {
    let is_folder = |option: &str| known.is_some_and(|known| known.options.get(option) == Some(&Takes::Folder));
    let one_dash = known.is_some_and(|known| known.one_dash);
    while let Some(text) = rest.get(at).and_then(Arg::literal) {
        let attached = text
            .split_once('=')
            .filter(|(name, _)| (name.starts_with("--") || one_dash) && (values.contains(name) || is_folder(name)));
        // The number is the next word, or it is none: `make -j test`.
        let counts = |at: usize| rest.get(at).and_then(Arg::literal).is_some_and(is_number);
        let is_count = matches!(text, "-j" | "--jobs");
        let has_count = text.strip_prefix("-j").is_some_and(is_number) && values.contains(&"-j");
        let is_public = |value: &str| ["/etc", "/usr"].iter().any(|folder| value.starts_with(folder));
        if attached.is_some_and(|(name, value)| is_folder(name) && is_public(value)) {
            return None;
        }
        if has_count || flags.contains(&text) && !(is_count && counts(at + 1)) || attached.is_some() {
            at += 1;
        } else if values.contains(&text) || is_folder(text) {
            // Everyone may read these folders, so that naming them needs no permission.
            let value = rest.get(at + 1)?.literal()?;
            if is_count && !is_number(value) {
                return None;
            }
            if is_folder(text) && is_public(value) {
                return None;
            }
            at += 2;
        } else {
            break;
        }
    }
    Some(at)
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
            ("go -C=src test", Some("go test")),
            ("uv --directory web -q sync", Some("uv sync")),
            ("poetry --project=web install", Some("poetry install")),
            ("cargo -C web build", Some("cargo build")),
            ("ninja -C out all", Some("ninja all")),
            ("docker compose --project-directory web up -d", Some("docker compose up -d")),
            ("docker compose up -d", None),
            ("docker -D compose up", Some("docker compose up")),
            ("composer -d web install", Some("composer install")),
            ("pnpm --dir=web test", Some("pnpm test")),
            ("gh -R a/b pr view", None),
            ("npm -w web test", Some("npm test")),
            ("npm --workspace=web --workspaces test", Some("npm test")),
            ("mytool -q build", None),
        ] {
            let words: Vec<Arg> = line.split(' ').map(Arg::text).collect();
            let found = without_place(&words)
                .map(|words| words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), short, "{line}");
        }
    }
}
