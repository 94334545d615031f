//! Finds the project that a folder belongs to.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toold_host::file_systems::answering;
use toold_host::files;

/// A longer file is no link of a worktree.
const MAX_LINK: u64 = 4096;

/// The nearest ancestor with a `.toold` folder, else the Git top level, else the folder itself; its real path.
///
/// # Errors
/// When the path does not exist or is not a folder.
pub fn project_of(cwd: &Path) -> io::Result<PathBuf> {
    let cwd = real_dir(cwd)?;
    answering::ask(&cwd)?;
    let marked = |marker: &str| cwd.ancestors().find(|dir| dir.join(marker).exists()).map(Path::to_path_buf);
    Ok(marked(".toold").or_else(|| marked(".git")).unwrap_or_else(|| cwd.clone()))
}

/// The project whose grants count in this one as well: for a linked worktree of Git, the same folder in the repository's
/// main worktree, else the project itself.
///
/// The repository confirms the worktree, so that a `.git` file alone gives a folder nothing: what the file names lies in
/// the repository's `worktrees`, names this file in turn (`gitrepository-layout(5)`), and belongs to the same user.
pub fn grant_project_of(project: &Path) -> PathBuf {
    linked_worktree(project).unwrap_or_else(|| project.to_owned())
}

fn linked_worktree(project: &Path) -> Option<PathBuf> {
    let top = project.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
    let file = top.join(".git");
    let found = file.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let text = |path: &Path| files::read_text(path, MAX_LINK).ok();
    let named = text(&file)?;
    let own = top.join(named.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let common = own.join(text(&own.join("commondir"))?.trim()).canonicalize().ok()?;
    let is_confirmed = own.parent() == Some(common.join("worktrees").as_path())
        && own.join(text(&own.join("gitdir"))?.trim()).canonicalize().is_ok_and(|back| back == file)
        && common.join("HEAD").is_file()
        && common.metadata().is_ok_and(|common| common.uid() == found.uid());
    if !is_confirmed {
        return None;
    }
    // A bare repository has no main worktree, and stands for itself.
    let Some(main) = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git")) else {
        return Some(common);
    };
    // Not through a link, which could lead to any project.
    let same = main.join(project.strip_prefix(top).ok()?).canonicalize().ok();
    project_of(same.as_deref().filter(|same| same.starts_with(main) && same.is_dir()).unwrap_or(main)).ok()
}

/// A folder with its links resolved.
pub fn real_dir(path: &Path) -> io::Result<PathBuf> {
    let real = files::resolve(path, Path::new("/"))?;
    if answering::at(&real, || real.metadata())??.is_dir() {
        Ok(real)
    } else {
        Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, line: &str) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(line.split(' ')).current_dir(folder);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A repository `app` with a commit, in a new folder.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("app/sub")).unwrap();
        fs::write(root.join("app/sub/a.txt"), "a\n").unwrap();
        git(&root.join("app"), "init --quiet");
        git(&root.join("app"), "add .");
        git(&root.join("app"), "commit --quiet -m a");
        (folder, root)
    }

    #[track_caller]
    fn counts(cwd: &Path, expected: &Path) {
        assert_eq!(grant_project_of(&project_of(cwd).unwrap()), expected, "{}", cwd.display());
    }

    #[test]
    fn linked_worktrees_have_the_grants_of_their_repository() {
        let (_folder, root) = repository();
        let app = root.join("app");
        git(&app, "worktree add --quiet ../feature -b feature");
        git(&app, "worktree add --quiet .claude/worktrees/fix -b fix");
        for cwd in [
            &app,
            &app.join("sub"),
            &root.join("feature"),
            &root.join("feature/sub"),
            &app.join(".claude/worktrees/fix/sub"),
        ] {
            counts(cwd, &app);
        }
        // A project within the repository is that project in each of them.
        for top in [&app, &root.join("feature")] {
            fs::create_dir(top.join("sub/.toold")).unwrap();
            counts(&top.join("sub"), &app.join("sub"));
        }
        // A link in the main worktree leads to no other project.
        fs::create_dir_all(root.join("other/.toold")).unwrap();
        fs::create_dir_all(root.join("feature/linked/.toold")).unwrap();
        std::os::unix::fs::symlink("../other", app.join("linked")).unwrap();
        counts(&root.join("feature/linked"), &app);
        // A link of a worktree is relative with `worktree.useRelativePaths`.
        fs::write(root.join("feature/.git"), "gitdir: ../app/.git/worktrees/feature\n").unwrap();
        fs::write(app.join(".git/worktrees/feature/gitdir"), "../../../../feature/.git\n").unwrap();
        counts(&root.join("feature"), &app);
        git(&root, "clone --quiet --bare app bare.git");
        git(&root.join("bare.git"), "worktree add --quiet ../of-bare -b y");
        counts(&root.join("of-bare"), &root.join("bare.git"));
    }

    #[test]
    fn a_forged_link_gives_no_grants() {
        let (_folder, root) = repository();
        let app = root.join("app");
        git(&app, "worktree add --quiet ../feature -b feature");
        let other = root.join("other");
        fs::create_dir_all(other.join("own/worktrees/x")).unwrap();
        let own = other.join("own");
        for (file, text) in [("HEAD", "ref: refs/heads/main"), ("commondir", "."), ("gitdir", "../.git")] {
            fs::write(own.join(file), text).unwrap();
        }
        let forged = other.join("own/worktrees/x");
        let repository = app.join(".git");
        for (file, text) in [
            ("HEAD", "ref: refs/heads/main".to_owned()),
            ("commondir", repository.display().to_string()),
            ("gitdir", other.join(".git").display().to_string()),
        ] {
            fs::write(forged.join(file), text).unwrap();
        }
        for named in [
            // The repository, and a worktree of it that names another folder.
            repository.clone(),
            repository.join("worktrees/feature"),
            // Folders of this place that claim to belong to the repository.
            own.clone(),
            forged.clone(),
            root.join("missing"),
        ] {
            fs::write(other.join(".git"), format!("gitdir: {}\n", named.display())).unwrap();
            counts(&other, &other);
        }
        // A link to the file of a worktree is no worktree.
        fs::remove_file(other.join(".git")).unwrap();
        std::os::unix::fs::symlink(root.join("feature/.git"), other.join(".git")).unwrap();
        counts(&other, &other);
        // Once the worktree is removed, a copy of its file is nothing.
        let copy = fs::read(root.join("feature/.git")).unwrap();
        git(&app, "worktree remove --force ../feature");
        fs::create_dir(root.join("feature")).unwrap();
        fs::write(root.join("feature/.git"), copy).unwrap();
        counts(&root.join("feature"), &root.join("feature"));
    }
}
