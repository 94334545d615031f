//! The commit that a repository of Git had checked out at some moment, and what its files hold.
//!
//! Its name is kept. Git reads its objects later, and each of them must have the content that its name stands for, so that a
//! command that writes into the repository cannot change what was committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use crate::file_systems::answering;
use crate::files;

/// References are short, but for the list of those that Git has packed.
const MAX_REFERENCES: u64 = 16 << 20;
/// Hexadecimal digits in the name of an object. Repositories with longer names have no commit here.
const NAME: usize = 40;

/// A commit of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOutCommit {
    /// The folder of its files.
    top: PathBuf,
    git: PathBuf,
    commit: String,
}

impl CheckedOutCommit {
    /// That of the nearest repository around a folder. Reads two or three small files.
    pub fn around(folder: &Path) -> Option<Self> {
        answering::ask(folder).ok()?;
        let top = top_around(folder)?;
        let git = git_folder(top)?;
        let text = |path: PathBuf| files::read_text(&path, MAX_REFERENCES).ok();
        let head = text(git.join("HEAD"))?;
        let commit = match head.strip_prefix("ref: ").map(str::trim) {
            None => head.trim().to_owned(),
            Some(branch) => {
                // Linked worktrees share their branches.
                let common = text(git.join("commondir")).map_or_else(|| git.clone(), |common| git.join(common.trim()));
                let packed = || {
                    let all = text(common.join("packed-refs"))?;
                    all.lines().find_map(|line| Some(line.strip_suffix(branch)?.strip_suffix(' ')?.to_owned()))
                };
                text(common.join(branch)).map(|name| name.trim().to_owned()).or_else(packed)?
            }
        };
        let is_name = commit.len() == NAME && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| Self { top: top.to_owned(), git, commit })
    }

    /// Whether a file is of this repository, and not of one within it.
    pub fn has(&self, file: &Path) -> bool {
        file.parent().and_then(top_around) == Some(&self.top)
    }

    /// The arguments with which `git` tells about the commit's objects.
    pub fn arguments(&self) -> Vec<String> {
        vec![format!("--git-dir={}", self.git.display()), "cat-file".to_owned(), "--batch".to_owned()]
    }

    /// The input with which it tells about a file of the commit: the commit, its folders down to the file, and the file.
    pub fn question(&self, file: &Path) -> Option<Vec<u8>> {
        let names = self.names(file)?;
        let mut lines = format!("{0}\n{0}^{{tree}}\n", self.commit).into_bytes();
        for depth in 1..=names.len() {
            let path = names[..depth].join(OsStr::new("/"));
            lines.extend(format!("{}:", self.commit).bytes().chain(path.as_bytes().iter().copied()).chain([b'\n']));
        }
        Some(lines)
    }

    /// The content of the file in the commit, from the answer to [`Self::question`]; `None` if it is not in there, or if an
    /// object is not what its name says.
    pub fn answer(&self, file: &Path, answer: &[u8]) -> Option<Vec<u8>> {
        let mut objects = GitObjects(answer);
        let commit = objects.next("commit", &self.commit)?;
        let mut name = std::str::from_utf8(commit.strip_prefix(b"tree ")?.get(..NAME)?).ok()?.to_owned();
        for part in self.names(file)? {
            name = entry(objects.next("tree", &name)?, part.as_bytes())?;
        }
        objects.next("blob", &name).map(<[u8]>::to_vec)
    }

    /// The names of the folders below the top, and of the file.
    fn names<'f>(&self, file: &'f Path) -> Option<Vec<&'f OsStr>> {
        let below = file.strip_prefix(&self.top).ok()?;
        let names: Vec<&OsStr> = below.iter().collect();
        (!names.is_empty() && !below.as_os_str().as_bytes().contains(&b'\n')).then_some(names)
    }
}

/// The folder of the nearest repository's files.
pub(crate) fn top_around(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// The folder of the repository whose files lie in `top`.
pub(crate) fn git_folder(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    // A worktree or a submodule.
    let text = String::from_utf8(files::read_named(&git, 4096).ok()?).ok()?;
    Some(top.join(text.strip_prefix("gitdir: ")?.trim_end()))
}

/// The objects that `git cat-file --batch` has written.
struct GitObjects<'a>(&'a [u8]);

impl<'a> GitObjects<'a> {
    /// The content of the next one, which must have this kind and name.
    fn next(&mut self, kind: &str, name: &str) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = (std::str::from_utf8(&self.0[..end]).ok()?, &self.0[end + 1..]);
        let size: usize =
            head.strip_prefix(name)?.strip_prefix(' ')?.strip_prefix(kind)?.strip_prefix(' ')?.parse().ok()?;
        let content = rest.get(..size)?;
        self.0 = rest.get(size + 1..)?;
        (name_of(kind, content) == name).then_some(content)
    }
}

/// The name of an object in hexadecimal digits.
fn name_of(kind: &str, content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("{kind} {}\0", content.len()));
    hash.update(content);
    hexadecimal(&hash.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of the object of a file or a folder in a tree; `None` for a link or a submodule.
fn entry(mut tree: &[u8], name: &[u8]) -> Option<String> {
    loop {
        let blank = tree.iter().position(|byte| *byte == b' ')?;
        let (mode, rest) = (&tree[..blank], &tree[blank + 1..]);
        let end = rest.iter().position(|byte| *byte == 0)?;
        let object = rest.get(end + 1..end + 1 + NAME / 2)?;
        if &rest[..end] == name {
            return (mode.starts_with(b"100") || mode == b"40000").then(|| hexadecimal(object));
        }
        tree = &rest[end + 1 + NAME / 2..];
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn git(top: &Path, arguments: &[String], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new("git");
        command.arg("-C").arg(top).args(["-c", "user.name=n", "-c", "user.email=e@example.org"]).args(arguments);
        command.env("HOME", top).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        output.stdout
    }

    fn run(top: &Path, line: &str) {
        git(top, &line.split(' ').map(str::to_owned).collect::<Vec<_>>(), b"");
    }

    #[test]
    fn the_content_of_a_commit_is_known_whatever_happens_to_the_repository_later() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            std::fs::write(top.join(name), text).unwrap();
        };
        run(&top, "init -q");
        assert_eq!(CheckedOutCommit::around(&top), None);
        write("a/b/lock", "first\n");
        write("lock", "of the top\n");
        run(&top, "add -A");
        run(&top, "commit -q -m first");
        let commit = CheckedOutCommit::around(&top.join("a")).unwrap();
        let content = |name: &str| {
            let file = top.join(name);
            let answer = git(&top, &commit.arguments(), &commit.question(&file)?);
            commit.answer(&file, &answer)
        };
        assert_eq!(content("a/b/lock").as_deref(), Some(&b"first\n"[..]));
        assert_eq!(content("lock").as_deref(), Some(&b"of the top\n"[..]));
        assert_eq!((content("a/b"), content("none"), content("a/none/lock")), (None, None, None));
        assert!(commit.has(&top.join("a/b/lock")));
        // Another commit, packed references, and a linked worktree.
        write("a/b/lock", "second\n");
        run(&top, "commit -q -a -m second");
        assert_eq!(content("a/b/lock").as_deref(), Some(&b"first\n"[..]));
        let now = CheckedOutCommit::around(&top).unwrap();
        assert_ne!(now, commit);
        run(&top, "pack-refs --all");
        assert_eq!(CheckedOutCommit::around(&top), Some(now.clone()));
        run(&top, "worktree add -q linked -b other");
        let linked = CheckedOutCommit::around(&top.join("linked/a")).unwrap();
        assert_eq!((linked.commit, linked.top), (now.commit, top.join("linked")));
        assert!(!commit.has(&top.join("linked/a/b/lock")));
        // An object with another content than its name says.
        let file = top.join("lock");
        let answer = git(&top, &commit.arguments(), &commit.question(&file).unwrap());
        let text = String::from_utf8_lossy(&answer).replace("of the top", "by somebody");
        assert_eq!(commit.answer(&file, text.as_bytes()), None);
    }
}
