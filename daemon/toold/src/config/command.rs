//! `toold config`: the commands on configurations that need no daemon.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toold_builtins::agents::option_mistake;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{RulePlace, read_rule, rule_mistakes};
use toold_host::files;

use crate::config::options::Options;
use crate::config::overrides::{Overrides, overrides};
use crate::config::read::{ConfigText, ReadConfig, read};
use crate::config::warnings::{of_levels, of_project_level, of_rule, warnings};
use crate::config::{self, hooks, mount_mistakes, project, project_folder, schema, tools};

/// Prints the JSON Schema.
///
/// # Errors
/// Stdout is gone.
pub fn print_schema() -> anyhow::Result<()> {
    Ok(io::stdout().lock().write_all(schema::TEXT.as_bytes())?)
}

/// Prints the path of the configuration file, whether or not it exists.
///
/// # Errors
/// Stdout is gone.
pub fn print_path(options: &Options) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{}", options.config_file().display())?;
    Ok(())
}

/// Prints the errors of a file, or of the whole configuration when none is named: yours, and that of the project in the
/// current folder. Also prints the settings that have no effect now. As text or as a JSON document. True when there are
/// no errors.
///
/// A file below a `.toold` folder is checked as a project's.
///
/// # Errors
/// Stdout is gone.
pub fn check(options: &Options, file: Option<PathBuf>, json: bool) -> anyhow::Result<bool> {
    let (report, project) = match file {
        None => (of_user(options, options.config_file()), of_current_project(options)),
        Some(file) if is_of_project(&file) => (of_project(options, file), None),
        Some(file) => (of_user(&Options { config: Some(std::path::absolute(&file)?), ..options.clone() }, file), None),
    };
    let reports: Vec<&FileReport> = std::iter::once(&report).chain(&project).collect();
    let is_valid = reports.iter().all(|report| report.problems.is_empty());
    let mut out = io::stdout().lock();
    if json {
        let whole =
            ConfigFindings { project: project.as_ref().map(|project| Box::new(project.located())), ..report.located() };
        writeln!(out, "{}", serde_json::to_string_pretty(&whole)?)?;
        return Ok(is_valid);
    }
    for report in reports {
        for finding in report.problems.iter().chain(&report.warnings) {
            writeln!(out, "{finding}")?;
        }
        if report.problems.is_empty() {
            writeln!(out, "{}: no errors", report.file.display())?;
        }
    }
    Ok(is_valid)
}

/// The findings in a file.
struct FileReport {
    file: PathBuf,
    problems: Vec<String>,
    /// Settings that have no effect now.
    warnings: Vec<String>,
}

/// The findings of a check for programs.
#[derive(Serialize)]
struct ConfigFindings<'a> {
    file: &'a Path,
    problems: Vec<PlacedFinding<'a>>,
    warnings: Vec<PlacedFinding<'a>>,
    /// What was found in the project's file, in a check of the whole configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Box<ConfigFindings<'a>>>,
}

impl FileReport {
    fn located(&self) -> ConfigFindings<'_> {
        let located = |findings| located(findings, &self.file);
        let (problems, warnings) = (located(&self.problems), located(&self.warnings));
        ConfigFindings { file: &self.file, problems, warnings, project: None }
    }
}

/// A finding, and its place in the file as far as it has one. Lines and columns count from 1.
#[derive(Debug, PartialEq, Serialize)]
struct PlacedFinding<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    message: &'a str,
}

/// The findings name the file as it was given, or by its absolute path.
fn located<'a>(findings: &'a [String], file: &Path) -> Vec<PlacedFinding<'a>> {
    let names = [
        file.to_string_lossy().into_owned(),
        std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string(),
    ];
    findings.iter().map(|text| PlacedFinding::of(text, &names)).collect()
}

impl<'a> PlacedFinding<'a> {
    fn of(text: &'a str, names: &[String]) -> Self {
        let mut found = Self { line: None, column: None, message: text };
        let Some(rest) = names.iter().find_map(|name| text.strip_prefix(name.as_str())) else { return found };
        let mut rest = rest;
        for number in [&mut found.line, &mut found.column] {
            let digits =
                rest.strip_prefix(':').map(|after| after.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
            let Some(value) = digits.and_then(|digits| digits.parse().ok()) else { break };
            *number = Some(value);
            rest = &rest[1 + digits.map_or(0, str::len)..];
        }
        found.message = rest.strip_prefix(": ").unwrap_or(text);
        found
    }
}

fn is_of_project(file: &Path) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|folder| folder == ".toold")
}

/// The report on the configuration that these options have, under the name that the caller knows.
fn of_user(options: &Options, file: PathBuf) -> FileReport {
    let mut loaded = config::load(options);
    loaded.problems.extend(tools::unmatched(options, &loaded));
    let mut warnings = warnings(options, &loaded);
    // The loaded configuration is empty when there is a problem, but each mistake is to be named.
    let name = options.config_file().display().to_string();
    let text = files::read_text(&options.config_file(), config::MAX_BYTES).unwrap_or_default();
    let Overrides { found: overrides, unknown, .. } = overrides(&options.environment, &options.set);
    // Variables of other programs, perhaps: they make nothing invalid.
    loaded.problems.retain(|problem| !unknown.contains(problem));
    let source = ConfigText { name: &name, text: &text, overrides: &overrides, sections: None };
    let (of_mounts, doubtful) = mount_mistakes::of(&read(source).readable, &source, options);
    loaded.problems.extend(of_mounts);
    warnings.extend(of_levels(&source, options, &loaded));
    warnings.extend(unknown.into_iter().chain(doubtful));
    FileReport { file, problems: config::in_order(loaded.problems, &name), warnings }
}

/// `None` when the current folder's project has no file.
fn of_current_project(options: &Options) -> Option<FileReport> {
    let project = project_folder::project_of(&std::env::current_dir().ok()?).ok()?;
    let file = project::file_of(&project);
    let is_there = file.symlink_metadata().is_ok() || config::dangling_link(&file).is_some();
    // In the home folder, this may be the user's own.
    let is_users = file.canonicalize().is_ok_and(|real| Some(real) == options.config_file().canonicalize().ok());
    (is_there && !is_users).then(|| of_project(options, file))
}

fn of_project(options: &Options, file: PathBuf) -> FileReport {
    let text = match files::read_text(&file, config::MAX_BYTES) {
        Ok(text) => text,
        Err(error) => {
            let problems = vec![config::unreadable(&file, &error)];
            return FileReport { file, problems, warnings: Vec::new() };
        }
    };
    let name = file.display().to_string();
    let source = ConfigText { name: &name, text: &text, overrides: &[], sections: Some(project::SECTIONS) };
    let ReadConfig { readable: config, mut problems, unknown_choices, .. } = read(source);
    let absolute = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
    let base = absolute.parent().and_then(Path::parent).map(Path::to_owned);
    let mut warnings = Vec::new();
    for rule in &config.permission.rules {
        let origin = source.place(Some(rule.span()));
        let place = RulePlace {
            origin: origin.clone(),
            project: base.clone(),
            trusted: true,
            base: base.clone(),
            home: options.paths.home.clone(),
        };
        match read_rule(rule.get_ref(), &place) {
            Ok(rule) => warnings.extend(of_rule(&rule)),
            Err(_) => {
                problems.extend(rule_mistakes(rule.get_ref(), &place).iter().map(|why| format!("{origin}: {why}")))
            }
        }
    }
    warnings.extend(of_project_level(&source, config.permission.level, options));
    for hook in &config.hooks {
        let origin = source.place(Some(hook.span()));
        problems.extend(hooks::mistakes(hook.get_ref()).iter().map(|why| format!("{origin}: {why}")));
    }
    for (name, subagent) in &config.subagents {
        let mistake = subagent.command.as_deref().and_then(option_mistake);
        problems.extend(mistake.map(|why| source.placed(&format!("subagents.{name}.command: {why}"))));
    }
    problems.extend(unknown_choices.into_iter().map(|choice| choice.problem));
    let (of_mounts, doubtful) = mount_mistakes::of(&config, &source, options);
    problems.extend(of_mounts);
    warnings.extend(doubtful);
    let mut protected = Policy::default();
    for pattern in &config.permission.protected_writes {
        protected.protect(pattern.get_ref(), &source.place(Some(pattern.span())), None);
    }
    problems.extend(protected.broken);
    FileReport { problems: config::in_order(problems, &name), file, warnings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_split_into_place_and_message() {
        let names = ["c.toml".to_owned(), "/c.toml".to_owned()];
        let of = |text: &'static str| PlacedFinding::of(text, &names);
        let located = |line, column, message| PlacedFinding { line, column, message };
        assert_eq!(of("/c.toml:3:7: limits: wrong"), located(Some(3), Some(7), "limits: wrong"));
        assert_eq!(of("c.toml:3:7: wrong"), located(Some(3), Some(7), "wrong"));
        assert_eq!(of("/c.toml:3: wrong"), located(Some(3), None, "wrong"));
        assert_eq!(of("/c.toml: sandbox: wrong"), located(None, None, "sandbox: wrong"));
        assert_eq!(of("flag --set x: wrong"), located(None, None, "flag --set x: wrong"));
    }
}
