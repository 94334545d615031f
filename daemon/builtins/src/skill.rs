//! `skill`: the text of a skill.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::policy::is_secret;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::files;

use crate::blocking::blocking;
use crate::builtin::{Builtin, READS, ToolFacts, make_described};
use crate::skills::{Skill, Skills, find_skills};
use crate::toolkit::Toolkit;

/// The limit of the skill list in the tool's description, which takes space in the model's context.
const MAX_LISTED: usize = 8 * 1024;
/// The limit of files that are listed below the text.
const MAX_FILES: usize = 50;

/// Arguments of `skill`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillInput {
    /// The skill's name.
    name: String,
}

pub(crate) struct SkillTool {
    toolkit: Arc<Toolkit>,
}

/// The tool. Its description lists these skills.
pub fn tool(toolkit: &Arc<Toolkit>, skills: &Skills) -> Arc<dyn Callable> {
    make_described::<SkillTool>(toolkit, description(skills))
}

fn description(skills: &Skills) -> String {
    let mut text = SkillTool::FACTS.description.to_owned();
    if skills.skills.is_empty() {
        text.push_str(" There are none yet.");
        return text;
    }
    text.push_str(" There are:");
    for (at, skill) in skills.skills.iter().enumerate() {
        let line = format!("\n- {}: {}", skill.name, skill.description.replace('\n', " "));
        if text.len() + line.len() > MAX_LISTED {
            text.push_str(&format!("\n- and {} more", skills.skills.len() - at));
            break;
        }
        text.push_str(&line);
    }
    text
}

impl Builtin for SkillTool {
    type Input = SkillInput;

    const NAME: &'static str = "skill";
    const FACTS: ToolFacts = ToolFacts {
        label: "Learn a skill",
        description: "Returns the text of a skill: how something is done here. Read it before you begin such work.",
        parallelizable: true,
        permissions: &[],
        timeout: None,
        annotations: READS,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, _: &SkillInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        // Skills are meant to be read; files that are excluded from tools are never skills.
        Ok(Vec::new())
    }

    async fn run(&self, SkillInput { name }: SkillInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let (toolkit, cwd, session) = (self.toolkit.clone(), cx.cwd.clone(), cx.session.clone());
        blocking(cx, move |_| {
            let skills = find_skills(&toolkit.places.skills, session.looks_in(&cwd));
            match skills.find(&name) {
                Some(skill) => Ok(output(skill)),
                None => Ok(ToolOutput::error(unknown(&name, &skills))),
            }
        })
        .await
    }
}

fn output(skill: &Skill) -> ToolOutput {
    let text = ToolOutput::text(to_text(skill));
    text.with("file", skill.file.to_string_lossy().as_ref()).with("scope", skill.whose.as_str())
}

/// The text, and a list of the files beside it.
pub(crate) fn to_text(skill: &Skill) -> String {
    let mut text = skill.text.trim_end().to_owned();
    if let Some(folder) = &skill.folder {
        let files = files_beside(folder);
        text.push_str(&format!("\n\n[the skill's folder is {}", folder.display()));
        if !files.is_empty() {
            text.push_str(&format!("; it holds {}", files.join(", ")));
        }
        text.push(']');
    }
    text
}

/// The files beside the text, down to one level, sorted.
fn files_beside(folder: &Path) -> Vec<String> {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let mut names = Vec::new();
    let mut exclusions = Exclusions::default();
    let mut may_be_named = |path: &Path, is_folder: bool| {
        files::resolve(path.parent().unwrap_or(folder), Path::new("/")).is_ok_and(|parent| {
            let real = parent.join(path.file_name().unwrap_or_default());
            !is_secret(&real) && exclusions.reason(&real, is_folder).is_none()
        })
    };
    for path in entries(folder) {
        let is_folder = path.is_dir() && !path.is_symlink();
        if !may_be_named(&path, is_folder) {
            continue;
        }
        let mut below = if is_folder { entries(&path) } else { vec![path] };
        below.retain(|path| may_be_named(path, false));
        let relative = below.iter().filter_map(|path| path.strip_prefix(folder).ok()?.to_str());
        names.extend(relative.filter(|name| *name != "SKILL.md").map(str::to_owned));
    }
    names.truncate(MAX_FILES);
    names
}

fn unknown(name: &str, skills: &Skills) -> String {
    if skills.skills.is_empty() {
        return format!("there is no skill {name}, and no other");
    }
    let names: Vec<&str> = skills.skills.iter().map(|skill| skill.name.as_str()).collect();
    format!("there is no skill {name}; there are: {}", names.join(", "))
}
