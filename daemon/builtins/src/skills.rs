//! Skills: texts that explain to an agent how to do something, found in the usual folders.
//!
//! A skill is a folder with a `SKILL.md` (the Agent Skills specification), or a flat `NAME.md`. If several skills have
//! the same name, the nearest one wins: from the working folder up to the project's folder, then the user's folders.
//! Nothing is cached; the disk is read for each request.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toold_host::exclude::Exclusions;
use toold_host::files::{self, OpenError};

use crate::front_matter::{InvalidFrontMatter, Split, split};

/// Below a project, in order of precedence.
const PROJECT_FOLDERS: [&str; 4] = [".toold/skills", ".agents/skills", ".claude/skills", ".claude/commands"];
/// Below the home folder.
const HOME_FOLDERS: [&str; 3] = [".agents/skills", ".claude/skills", ".claude/commands"];
/// Longer descriptions would fill the model's context.
const MAX_BYTES: u64 = 256 * 1024;
/// In one folder.
const MAX_SKILLS: usize = 500;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
/// How many folders above the working folder are searched.
const MAX_LEVELS: usize = 32;

/// Where a user's own skills are.
#[derive(Clone, Debug, Default)]
pub struct SkillPlaces {
    /// The daemon's own folder, such as `~/.config/toold/skills`.
    pub config: Option<PathBuf>,
    pub home: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillOwner {
    Project,
    User,
}

impl SkillOwner {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub whose: SkillOwner,
    /// The text of `SKILL.md`; the skill's folder may contain more files.
    pub file: PathBuf,
    /// `None` for a flat file.
    pub folder: Option<PathBuf>,
    pub text: String,
}

/// A file that looks like a skill but is invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidSkill {
    pub file: PathBuf,
    /// From 1.
    pub line: Option<u64>,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skills {
    /// By name.
    pub skills: Vec<Skill>,
    pub broken: Vec<InvalidSkill>,
    /// Files that a nearer skill of the same name hides.
    pub shadowed: Vec<PathBuf>,
}

impl Skills {
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// The front matter of a skill. Fields of other agents are ignored.
#[derive(Debug, Deserialize)]
struct SkillFrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// All skills for a session that works in `cwd` of `project`; `None` lists the user's only. Blocks.
pub fn find_skills(places: &SkillPlaces, work: Option<(&Path, &Path)>) -> Skills {
    let mut found = Skills::default();
    let mut names = BTreeSet::new();
    let mut exclusions = Exclusions::default();
    // Links are followed within the project only: a project must not expose files outside of it.
    let project = work.map(|(_, project)| files::resolve(project, Path::new("/")).unwrap_or(project.to_owned()));
    for (whose, folder) in folders(places, work) {
        let bounds = project.as_deref().filter(|_| whose == SkillOwner::Project);
        for file in candidates(&folder, bounds) {
            match load(&file, whose, bounds, &mut exclusions) {
                Ok(skill) if names.insert(skill.name.clone()) => found.skills.push(skill),
                Ok(skill) => found.shadowed.push(skill.file),
                Err(InvalidFrontMatter { message, line }) => found.broken.push(InvalidSkill { file, line, message }),
            }
        }
    }
    found.skills.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The folders of skills, the nearest first.
fn folders(places: &SkillPlaces, work: Option<(&Path, &Path)>) -> Vec<(SkillOwner, PathBuf)> {
    let mut folders = Vec::new();
    if let Some((cwd, project)) = work {
        let levels = cwd.ancestors().take(MAX_LEVELS).take_while(|level| level.starts_with(project));
        // A session that works outside its project still gets the project's skills.
        let levels: Vec<&Path> = if cwd.starts_with(project) { levels.collect() } else { vec![project] };
        for level in levels {
            folders.extend(PROJECT_FOLDERS.iter().map(|name| (SkillOwner::Project, level.join(name))));
        }
    }
    folders.extend(places.config.iter().map(|folder| (SkillOwner::User, folder.clone())));
    let home = places.home.iter();
    folders.extend(home.flat_map(|home| HOME_FOLDERS.iter().map(|name| (SkillOwner::User, home.join(name)))));
    // The home folder may be the project.
    let mut seen = BTreeSet::new();
    folders.retain(|(_, folder)| seen.insert(folder.clone()));
    folders
}

/// The files of a folder that look like skills, sorted. Empty if the folder is outside its bounds.
fn candidates(folder: &Path, bounds: Option<&Path>) -> Vec<PathBuf> {
    if !is_within(folder, bounds) {
        return Vec::new();
    }
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter_map(|entry| {
            let path = entry.path();
            // The link's target is not checked here. Loading the skill reports a target outside the folder.
            if is_within(&path, bounds) && path.is_dir() {
                let file = path.join("SKILL.md");
                return file.symlink_metadata().is_ok().then_some(file);
            }
            path.extension().is_some_and(|ending| ending == "md").then_some(path)
        })
        .collect();
    files.sort();
    files.truncate(MAX_SKILLS);
    files
}

fn is_within(path: &Path, bounds: Option<&Path>) -> bool {
    bounds.is_none_or(|bounds| files::resolve(path, Path::new("/")).is_ok_and(|real| real.starts_with(bounds)))
}

fn load(
    file: &Path,
    whose: SkillOwner,
    bounds: Option<&Path>,
    exclusions: &mut Exclusions,
) -> Result<Skill, InvalidFrontMatter> {
    let broken = |message: String| InvalidFrontMatter { message, line: None };
    if !is_within(file, bounds) {
        return Err(broken("points outside of the project".to_owned()));
    }
    let real = file.canonicalize().map_err(|error| broken(format!("can't be read: {error}")))?;
    if let Some(reason) = exclusions.reason(&real, false) {
        return Err(broken(format!("is excluded from tools by {reason}")));
    }
    let mut opened = files::open(&real).map_err(|error| broken(error.to_string()))?;
    let bytes = files::read_opened(&mut opened, &real, MAX_BYTES).map_err(|error| match error {
        OpenError::TooLarge { .. } => broken(format!("is longer than {} KiB", MAX_BYTES / 1024)),
        error => broken(error.to_string()),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| broken("is not UTF-8".to_owned()))?;
    let Split { front, body } = split::<SkillFrontMatter>(&text)?;
    let own_folder = file.file_name().filter(|name| *name == "SKILL.md").and(file.parent()).map(Path::to_owned);
    let named_by = own_folder.as_deref().unwrap_or(file);
    let place_name = named_by.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = front.name.unwrap_or_else(|| place_name.clone());
    check_name(&name).map_err(broken)?;
    if own_folder.is_some() && name != place_name {
        return Err(broken(format!("is named {name:?}, and its folder {place_name:?}: both must be the same")));
    }
    let description = front.description.unwrap_or_else(|| first_line(&body));
    let description = description.trim();
    if description.is_empty() {
        return Err(broken("has no description, so nobody knows when to use it".to_owned()));
    }
    let description: String = description.chars().take(MAX_DESCRIPTION).collect();
    Ok(Skill { name, description, whose, file: real, folder: own_folder, text: body })
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
        return Err(format!(
            "the name {name:?} must consist of 1 to {MAX_NAME} lower-case letters, digits and hyphens"
        ));
    }
    Ok(())
}

/// The first line that contains words, without Markdown heading marks.
fn first_line(text: &str) -> String {
    text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty()).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct SkillFolders {
        _keep: tempfile::TempDir,
        root: PathBuf,
    }

    impl SkillFolders {
        fn new() -> Self {
            let keep = tempfile::tempdir().unwrap();
            let root = keep.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("project/src")).unwrap();
            Self { _keep: keep, root }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn skills(&self) -> Skills {
            let places =
                SkillPlaces { config: Some(self.root.join("config/skills")), home: Some(self.root.join("home")) };
            find_skills(&places, Some((&self.root.join("project/src"), &self.root.join("project"))))
        }
    }

    #[test]
    fn the_nearest_of_a_name_counts() {
        let folders = SkillFolders::new();
        folders.write("home/.claude/skills/commit/SKILL.md", "---\nname: commit\ndescription: user's\n---\n");
        folders.write("project/.claude/skills/commit/SKILL.md", "---\nname: commit\ndescription: project's\n---\n");
        folders.write("project/src/.agents/skills/commit/SKILL.md", "---\nname: commit\ndescription: near\n---\nText");
        folders.write("project/.claude/commands/review.md", "Review $ARGUMENTS.\n");
        folders.write("config/skills/flat.md", "# How to be flat\n\nBe flat.\n");
        let skills = folders.skills();
        let seen: Vec<_> =
            skills.skills.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
        assert_eq!(seen, [("commit", "near"), ("flat", "How to be flat"), ("review", "Review $ARGUMENTS.")]);
        assert_eq!((skills.skills[0].whose, skills.skills[1].whose), (SkillOwner::Project, SkillOwner::User));
        assert_eq!(skills.shadowed.len(), 2);
        assert_eq!(skills.broken, []);
    }

    #[test]
    fn broken_skill_is_reported_and_hides_no_other() {
        let folders = SkillFolders::new();
        folders
            .write("project/.agents/skills/good/SKILL.md", "---\nname: good\ndescription: Says: good things\n---\nx");
        folders.write("project/.agents/skills/other/SKILL.md", "---\nname: else\ndescription: x\n---\n");
        folders.write("project/.agents/skills/Upper.md", "text");
        folders.write("project/.agents/skills/open/SKILL.md", "---\nname: open\n");
        folders.write("project/.agents/skills/empty.md", "");
        folders.write("secret.md", "outside");
        symlink(folders.root.join("secret.md"), folders.root.join("project/.agents/skills/link.md")).unwrap();
        folders.write("project/.aiexclude", "hidden.md\n");
        folders.write("project/.agents/skills/hidden.md", "text");
        let skills = folders.skills();
        assert_eq!(skills.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(skills.skills[0].description, "Says: good things");
        let problem = |name: &str| {
            let broken = skills.broken.iter().find(|broken| broken.file.ends_with(name));
            broken.unwrap_or_else(|| panic!("{name}: {:?}", skills.broken)).message.clone()
        };
        assert!(problem("other/SKILL.md").contains("its folder"));
        assert!(problem("Upper.md").contains("lower-case letters"));
        assert!(problem("open/SKILL.md").contains("no end"));
        assert!(problem("empty.md").contains("no description"));
        assert!(problem("link.md").contains("points outside"));
        assert!(problem("hidden.md").contains(".aiexclude"));
    }
}
