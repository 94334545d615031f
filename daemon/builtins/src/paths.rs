//! Paths in arguments and in results.
//!
//! [`Located`] is the only way from a path argument to a file: the path is resolved, then checked, and only then looked
//! at. So no answer depends on something that the caller may not read.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use toold_engine::cx::Cx;
use toold_engine::decision::decide_need;
use toold_engine::need::Need;
use toold_engine::tool::ToolError;
use toold_host::exclude::Exclusions;
use toold_host::file_needs;
use toold_host::files::{self, FileType, ResolvedPath};
use toold_host::ignore_files::IgnoreFiles;
use toold_host::read_access::{self, ReadAccess};
use toold_proto::cut::cut_bytes;
use toold_proto::permission::Verdict;

use crate::blocking::with_heartbeat;
use crate::journal::SpecialKind;
pub(crate) use crate::quoted_names::quoted;

/// The resolved path of an argument.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    /// The whole path as it was named: links are not followed.
    pub(crate) named: PathBuf,
    /// See [`ResolvedPath::judged_as`].
    judged_as: Option<PathBuf>,
    /// The type of the entry at the path, if resolving the path has shown it.
    pub(crate) kind: Option<FileType>,
}

impl Located {
    /// A call that names the same path again in a moment gets the same answer: what was judged is what it uses, and whoever
    /// opens it refuses links that were put on the way meanwhile.
    pub(crate) fn new(path: &str, cx: &Cx) -> anyhow::Result<Self> {
        let known = cx.slot::<LastLocated>();
        let mut last = known.0.lock();
        if let Some((at, named, located)) = &*last
            && named == path
            && at.elapsed() < SAME_PLACE
        {
            return Ok(located.clone());
        }
        let at = Instant::now();
        let located = Self::look(path, cx)?;
        *last = Some((at, path.to_owned(), located.clone()));
        Ok(located)
    }

    fn look(path: &str, cx: &Cx) -> anyhow::Result<Self> {
        anyhow::ensure!(!path.is_empty(), "the path is empty");
        if let Some(bare) = path.strip_prefix("file://") {
            anyhow::bail!("{path} is a URL: give the path alone, such as {bare}");
        }
        let named = match unquoted(path) {
            // A file of which this is the name is meant itself, and so it is for what an agent opens on its own.
            Some(name) if cx.agent.is_none() && !is_there(&cx.cwd.join(path), cx) => Cow::Owned(PathBuf::from(name)),
            Some(_) | None => below_home(path, cx)?,
        };
        let ResolvedPath { path, judged_as, kind } = files::resolve_for(&named, &cx.cwd, &mut |place| knows(place, cx))
            .with_context(|| format!("can't resolve {}", cut_bytes(path, MAX_NAMED, "…")))?;
        Ok(Self { path, named: cx.cwd.join(named), judged_as, kind })
    }

    /// The permission to read that a call needs before it runs.
    pub(crate) fn to_read(&self, cx: &Cx) -> Need {
        match &self.judged_as {
            Some(judged_as) => file_needs::read_need(judged_as, &mut Exclusions::default()),
            None => self.target_to_read(cx),
        }
    }

    /// The permission to write that a call needs before it runs.
    pub(crate) fn to_write(&self, cx: &Cx) -> Need {
        match &self.judged_as {
            Some(judged_as) => file_needs::write_need(judged_as, &mut Exclusions::default()),
            None => self.target_to_write(cx),
        }
    }

    /// The permission to read the path itself.
    pub(crate) fn target_to_read(&self, cx: &Cx) -> Need {
        with_exclusions(cx, |exclusions| match self.kind {
            Some(kind) => file_needs::entry_read_need(&self.path, kind.is_dir(), exclusions),
            None => file_needs::read_need(&self.path, exclusions),
        })
    }

    /// The permission to write the path itself.
    pub(crate) fn target_to_write(&self, cx: &Cx) -> Need {
        with_exclusions(cx, |exclusions| match self.kind {
            Some(kind) => file_needs::entry_write_need(&self.path, kind.is_dir(), exclusions),
            None => file_needs::write_need(&self.path, exclusions),
        })
    }

    /// Whether the call may read the path itself without an ask.
    pub(crate) fn may_read(&self, cx: &Cx) -> bool {
        verdict(&self.target_to_read(cx), cx) == Verdict::Allow
    }

    /// Whether the path crosses a place that needs permission before the caller may learn where it leads.
    pub(crate) fn hides_its_target(&self) -> bool {
        self.judged_as.is_some()
    }

    /// Checked again when a call runs, because a link on the way may lead elsewhere by now. This time the complete path
    /// is checked.
    pub(crate) async fn require_read(&self, cx: &Cx) -> Result<(), ToolError> {
        cx.require(self.to_read(cx)).await?;
        match &self.judged_as {
            Some(_) => cx.require(self.target_to_read(cx)).await,
            None => Ok(()),
        }
    }
}

/// Bytes of a path that a message shows, which are all of any path that can be opened.
const MAX_NAMED: usize = 4096;

/// How long a path of a call leads to the same place.
const SAME_PLACE: Duration = Duration::from_millis(50);

/// The path that a call has named last, and when it was resolved.
#[derive(Default)]
struct LastLocated(Mutex<Option<(Instant, String, Located)>>);

/// The exclusions of the folders that a call has come to.
#[derive(Default)]
struct CallExclusions(Mutex<Option<Exclusions>>);

/// Judges with the call's exclusions. The path must be resolved, so that none of its folders is a link.
fn with_exclusions<T>(cx: &Cx, judge: impl FnOnce(&mut Exclusions) -> T) -> T {
    let slot = cx.slot::<CallExclusions>();
    let mut kept = slot.0.lock();
    let fresh = kept.take().filter(Exclusions::is_fresh);
    judge(kept.insert(fresh.unwrap_or_else(Exclusions::of_walk)))
}

/// The path with `~` replaced by the home folder, as a shell does. `./~` is a file of that name.
fn below_home<'a>(path: &'a str, cx: &Cx) -> anyhow::Result<Cow<'a, Path>> {
    let Some(rest) = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Ok(Cow::Borrowed(Path::new(path)));
    };
    let home = cx.engine.policy.load().home.clone();
    let home =
        home.with_context(|| format!("can't resolve {path}: the home folder is unknown; give the whole path"))?;
    Ok(Cow::Owned(home.join(rest.trim_start_matches('/'))))
}

/// Whether something is at a path, as far as the call may read it without an ask.
fn is_there(path: &Path, cx: &Cx) -> bool {
    let resolved = files::resolve_for(path, &cx.cwd, &mut |place| knows(place, cx));
    resolved.is_ok_and(|found| {
        found.judged_as.is_none() && may_read(&found.path, cx) && found.path.symlink_metadata().is_ok()
    })
}

/// The files below a path that a call may read. `glob`, `grep` and `list` search it.
pub(crate) struct ReadableTree {
    pub(crate) root: PathBuf,
    pub(crate) access: Arc<ReadAccess>,
    /// The type of the entry at the root; `None` if there is none.
    pub(crate) kind: Option<FileType>,
    /// Words for a root that does not exist and to which a link leads.
    pub(crate) dangling: Option<String>,
    /// The call's working folder, for [`shown`].
    pub(crate) cwd: PathBuf,
    /// Whether a folder of a few files may be read in place: its ignore files are short.
    pub(crate) is_quick: bool,
    /// The turn of the walk, until this is dropped.
    pub(crate) turn: OwnedSemaphorePermit,
}

impl ReadableTree {
    /// The permissions that [`ReadableTree::open`] needs. `None` is the working folder.
    pub(crate) fn needs(path: Option<&str>, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(vec![Self::locate(path, cx)?.to_read(cx)])
    }

    /// Checks that the call may read the root, which may not exist, and waits for the turn of a walk.
    pub(crate) async fn open(path: Option<&str>, cx: &Cx) -> anyhow::Result<Self> {
        let located = Self::locate(path, cx)?;
        located.require_read(cx).await?;
        let kind = located.kind.or_else(|| files::facts(&located.path).ok().flatten().map(|facts| facts.kind));
        let is_link = || located.named.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        let dangling = (kind.is_none() && !located.hides_its_target() && is_link()).then(|| {
            let [link, target] = [&located.named, &located.path].map(|path| shown(path, &cx.cwd));
            format!("{link} is a link to {target}, which does not exist")
        });
        let root = located.path;
        let is_folder = kind.is_some_and(|kind| kind.is_dir());
        let access = with_exclusions(cx, |exclusions| {
            if is_folder {
                exclusions.visit(&root);
            }
            ReadAccess::of_entry(cx, cx.outer_chain.clone(), root.clone(), is_folder, exclusions)
        });
        let access = Arc::new(access);
        let waiting = with_heartbeat(cx, cx.engine.walks.clone().acquire_owned());
        let turn = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
            turn = waiting => turn.map_err(|_| ToolError::Cancelled)?,
        };
        let is_quick = IgnoreFiles::are_short(&root, &access);
        Ok(Self { root, kind, dangling, access, cwd: cx.cwd.clone(), is_quick, turn })
    }

    /// What is at the root, in words, if it is no folder; `None` for a folder and for nothing.
    pub(crate) fn other_kind(&self) -> Option<&'static str> {
        match self.kind? {
            kind if kind.is_dir() => None,
            kind if kind.is_file() => Some("a file"),
            kind => Some(SpecialKind::of(kind).words()),
        }
    }

    fn locate(path: Option<&str>, cx: &Cx) -> anyhow::Result<Located> {
        Located::new(path.unwrap_or("."), cx)
    }
}

/// Whether the call may read a file without an ask.
pub(crate) fn may_read(path: &Path, cx: &Cx) -> bool {
    verdict(&file_needs::read_need(path, &mut Exclusions::default()), cx) == Verdict::Allow
}

/// The policy's verdict on a need of this call. Asks nobody.
pub(crate) fn verdict(need: &Need, cx: &Cx) -> Verdict {
    decide_need(cx, &cx.outer_chain, need).verdict
}

/// Whether the caller may know if there is a link at `place`.
pub(crate) fn knows(place: &Path, cx: &Cx) -> bool {
    read_access::may_see_link(place, cx, &cx.outer_chain)
}

/// The shortest form for readers: relative if it is below `cwd`; [`quoted`] where it has to be.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => quoted(rest.as_os_str()),
        Err(_) => quoted(path.as_os_str()),
    }
}

/// The name of which [`quoted`] makes this text, if that put it in quotes.
pub(crate) fn unquoted(text: &str) -> Option<OsString> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let (mut name, mut rest) = (Vec::with_capacity(inside.len()), inside.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        name.push(match byte {
            b'\\' => {
                let (escaped, after) = rest.split_first()?;
                rest = after;
                match escaped {
                    b'"' | b'\\' => *escaped,
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    _ => {
                        let (more, after) = rest.split_at_checked(2)?;
                        rest = after;
                        let digits = [*escaped, more[0], more[1]];
                        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                    }
                }
            }
            byte => *byte,
        });
    }
    let name = OsString::from_vec(name);
    (quoted(&name) == text).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_are_one_line_of_text() {
        for (name, expected) in [
            (b"plain \\ 'name' \xc3\xbc".as_slice(), "plain \\ 'name' \u{fc}"),
            (b"new\nline", r#""new\nline""#),
            (b"bad\xff", r#""bad\377""#),
            (b"\"in quotes\" ", r#""\"in quotes\" ""#),
            ("\u{202e}gnp.exe".as_bytes(), r#""\342\200\256gnp.exe""#),
            (b"\x1b[2J\\\xc2\x9b", r#""\033[2J\\\302\233""#),
        ] {
            let name = OsStr::from_bytes(name);
            assert_eq!(quoted(name), expected);
            assert_eq!(unquoted(expected).as_deref(), (expected != name).then_some(name));
        }
    }

    #[test]
    fn only_names_that_need_quotes_are_taken_out_of_them() {
        for text in [r#""plain""#, r#"""#, "\"a\nb\"", r#""a\q""#, r#""a\8""#, r#""a\\""#, "", r#"a\nb"#, r#""\141\n""#]
        {
            assert_eq!(unquoted(text), None, "{text}");
        }
    }
}
