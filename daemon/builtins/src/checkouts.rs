//! The files that Git overwrites when it puts the files of other commits into its working tree. It refuses to overwrite a file that
//! it does not track, but replaces one that it ignores, and removes a folder of such files that is in its way.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toold_engine::need::{CheckedOutCommits, CheckoutKind, Need};
use toold_engine::policy::Policy;
use toold_engine::session::Session;
use toold_host::environment::Environment;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::write_need;
use toold_host::process::{self, OutputTap, ProcessCommand, ProcessEnding};
use toold_host::sandbox::Sandbox;
use toold_proto::call::Stream;
use toold_proto::level::Level;

/// The sandbox, the variables and the rules under which Git is asked.
type CheckoutReader<'r> = (&'r Sandbox, &'r Environment, &'r Policy);

const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest list of names, in bytes.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// More files are not named one by one.
const MAX_FILES: usize = 64;

/// Prints the names of the files, each ended by a NUL, that the commits have and the index does not. `added` prints what commits
/// on the way add or remove; then the names in the index follow behind an empty one. A name may be that of a branch on another
/// machine, which Git then checks out.
const SCRIPT: &str = r#"
dir=$1 how=$2; shift 2
git() { command git --git-dir="$dir" -c core.fsmonitor=false "$@"; }
absent() { git diff-index --cached -r -z --no-renames --name-only --diff-filter=D "$1" -- || exit 1; }
added() {
  list=$(git rev-list "$@" --) || exit 1
  [ -z "$list" ] || printf '%s\n' "$list" |
    git diff-tree --stdin --no-commit-id --root -r -m -z --no-renames --name-only --diff-filter=AD || exit 1
}
if [ "$how" = bisected ]; then
  set -- "$@" $(git for-each-ref --format='%(objectname)' refs/bisect) $(cat "$dir/BISECT_START" 2>/dev/null)
fi
for name; do
  if [ "$how" = changes ]; then added --no-walk "$name"; continue; fi
  found=$(git rev-parse -q --verify "$name^{commit}" 2>/dev/null) ||
    found=$(git for-each-ref --format='%(objectname)' "refs/remotes/*/$name")
  for commit in $found; do
    absent "$commit"
    [ "$how" = these ] || added "$commit...HEAD"
  done
done
[ "$how" = these ] || { printf '\0'; git ls-files -z; }
"#;

/// Adds the files that commands of Git overwrite in this way, as needs of these commands. A command of which that cannot be found
/// out is free at no level. Nothing is looked up where the level frees no such command.
pub(crate) async fn add_overwritten(
    needs: &mut Vec<Need>,
    level: Level,
    session: &Session,
    (sandbox, environment, policy): CheckoutReader<'_>,
    cancel: &CancellationToken,
) {
    if level < Level::Edit || !needs.iter().any(checks_out) || sandbox.unconfined().is_some() {
        return;
    }
    let mut found: Vec<(Need, Vec<PathBuf>)> = Vec::new();
    for need in needs.iter_mut().filter(|need| checks_out(need)) {
        let Some(commits) = need.command().and_then(|command| command.checks_out.clone()) else { continue };
        let names = names(&commits, session, (sandbox, environment, policy), cancel).await;
        match names.and_then(|names| overwritten(&commits.top, &names)) {
            Some(files) => found.push((need.clone(), files)),
            None => {
                if let Some(command) = need.command_mut() {
                    command.never_free = true;
                }
                need.reason.get_or_insert_with(|| "which files it overwrites could not be found out".to_owned());
            }
        }
    }
    let mut exclusions = Exclusions::default();
    for (need, files) in found {
        needs.extend(files.iter().map(|file| {
            let file = write_need(file, &mut exclusions).with_file(|file| file.of_command = Some(need.target.clone()));
            Need { line: need.line.clone(), ..file }
        }));
    }
}

fn checks_out(need: &Need) -> bool {
    need.command().is_some_and(|command| command.checks_out.is_some())
}

/// The names of files that reach the working tree and that are not in the index; `None` if Git does not tell.
async fn names(
    commits: &CheckedOutCommits,
    session: &Session,
    (sandbox, environment, policy): CheckoutReader<'_>,
    cancel: &CancellationToken,
) -> Option<Vec<u8>> {
    let how = match commits.how {
        CheckoutKind::These => "these",
        CheckoutKind::Between => "between",
        CheckoutKind::Bisected => "bisected",
        CheckoutKind::Changes => "changes",
    };
    // A partial clone fetches no objects for it.
    let variables = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0")];
    let mut command = ProcessCommand::new("/bin/sh", "/", environment.clone().with(variables))
        .args(["-c", SCRIPT, "sh"])
        .args([commits.git.as_os_str(), OsStr::new(how)])
        .args(&commits.revisions);
    command.confinement = Some(sandbox.confine_reader(session, policy).ok()?);
    command.timeout = Some(TIMEOUT);
    command.keep = 0;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let hears = kept.clone();
    command.tap = Some(OutputTap::new(move |stream, bytes| {
        let mut kept = hears.lock();
        if stream == Stream::Stdout && kept.len() <= MAX_OUTPUT {
            kept.extend_from_slice(bytes);
        }
    }));
    let finished = process::run(command, cancel, |_, _| {}).await.ok()?;
    let names = std::mem::take(&mut *kept.lock());
    (finished.ending == ProcessEnding::Exited && finished.code == Some(0) && names.len() <= MAX_OUTPUT).then_some(names)
}

/// The files that these names would replace, unless they are in the index: files of the same name, a file in place of a folder
/// above it, and all files in a folder of the same name. `None` if there are too many.
fn overwritten(top: &Path, names: &[u8]) -> Option<Vec<PathBuf>> {
    let (mut found, mut missing) = (Vec::new(), HashSet::new());
    let mut all = names.split(|byte| *byte == 0);
    let names: Vec<&[u8]> = all.by_ref().take_while(|name| !name.is_empty()).collect();
    let tracked: HashSet<&[u8]> = all.collect();
    for name in names.into_iter().filter(|name| !tracked.contains(name)) {
        let mut path = top.to_owned();
        let mut parts = Path::new(OsStr::from_bytes(name)).iter().peekable();
        while let Some(part) = parts.next() {
            path.push(part);
            if missing.contains(&path) {
                break;
            }
            match path.symlink_metadata() {
                Ok(entry) if entry.is_dir() && parts.peek().is_some() => {}
                Ok(entry) if entry.is_dir() => add_files(&path, &mut found),
                Ok(_) => {
                    found.push(path.clone());
                    break;
                }
                Err(_) => {
                    missing.insert(path.clone());
                    break;
                }
            }
            if found.len() > MAX_FILES {
                return None;
            }
        }
    }
    found.sort();
    found.dedup();
    (found.len() <= MAX_FILES).then_some(found)
}

/// Adds the files in a folder and below it, one more than are allowed at most.
fn add_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if found.len() > MAX_FILES {
            return;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&entry.path(), found),
            Ok(_) | Err(_) => found.push(entry.path()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs a script in the folder, and returns its output.
    fn sh(top: &Path, script: &str, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", script, "sh"]).args(arguments).current_dir(top).envs([
            ("HOME", top.as_os_str()),
            ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            ("GIT_AUTHOR_NAME", OsStr::new("n")),
            ("GIT_AUTHOR_EMAIL", OsStr::new("e@example.org")),
            ("GIT_COMMITTER_NAME", OsStr::new("n")),
            ("GIT_COMMITTER_EMAIL", OsStr::new("e@example.org")),
        ]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// A repository whose branch `other` has files that `main` ignores, one of them only in a commit on the way.
    const REPOSITORY: &str = "git init -q -b main .; echo 'out*' > .gitignore; echo 1 > a; git add -A; git commit -qm one; \
                              git checkout -q -b other; mkdir out; echo 1 > out/f; echo 1 > out-way; git add -f out out-way; \
                              git commit -qm two; git rm -q out-way; echo 2 > a; git commit -qam three; \
                              git update-ref refs/remotes/origin/far other; git checkout -q main; echo 1 > b; git add b; \
                              git commit -qm four; mkdir out; echo precious > out/f; echo precious > out-way";

    #[test]
    fn files_that_git_ignores_are_found_under_the_names_of_other_commits() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        sh(&top, REPOSITORY, &[]);
        let git = top.join(".git");
        let of = |how: &str, revisions: &[&str]| {
            let names = sh(&top, SCRIPT, &[&[git.to_str().unwrap(), how], revisions].concat());
            let found = overwritten(&top, &names).unwrap();
            found.iter().map(|path| path.strip_prefix(&top).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        for (how, revisions, files) in [
            ("these", &["other"][..], &["out/f"][..]),
            ("these", &["far"], &["out/f"]),
            ("these", &["main"], &[]),
            ("these", &["main", "other"], &["out/f"]),
            ("these", &["no-such-branch", "a"], &[]),
            ("between", &["other"], &["out/f", "out-way"]),
            ("between", &["main"], &[]),
            ("bisected", &["other"], &["out/f", "out-way"]),
            ("changes", &["other"], &["out-way"]),
            ("changes", &["other~1"], &["out/f", "out-way"]),
            ("changes", &["main..other"], &["out/f", "out-way"]),
            ("changes", &["main"], &[]),
        ] {
            assert_eq!(of(how, revisions), files, "{how} {revisions:?}");
        }
        // A file in place of a folder, and a folder in place of a file.
        sh(
            &top,
            "rm -r out; echo precious > out; rm out-way; mkdir -p out-way/deep; echo precious > out-way/deep/x",
            &[],
        );
        assert_eq!(of("between", &["other"]), ["out", "out-way/deep/x"]);
    }
}
