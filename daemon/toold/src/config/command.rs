//! `toold config`: the commands on configurations that need no daemon.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{RulePlace, read_rule, rule_mistakes};
use toold_host::files;

use crate::config::options::Options;
use crate::config::read::{ConfigText, ReadConfig, read};
use crate::config::warnings::{of_rule, warnings};
use crate::config::{self, project, schema, tools};

/// Prints the JSON Schema.
///
/// # Errors
/// Stdout is gone.
pub fn print_schema() -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{:#}", schema::schema())?;
    Ok(())
}

/// Prints the path of the configuration file, whether or not it exists.
///
/// # Errors
/// Stdout is gone.
pub fn print_path(options: &Options) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{}", options.config_file().display())?;
    Ok(())
}

/// Prints the errors of a file, or of the whole configuration when none is named, and the settings
/// that have no effect now, as text or as a JSON document. True when there are no errors.
///
/// A file below a `.toold` folder is checked as a project's.
///
/// # Errors
/// The file cannot be read, or stdout is gone.
pub fn check(options: &Options, file: Option<PathBuf>, json: bool) -> anyhow::Result<bool> {
    let (shown, problems, warnings) = match file {
        None => {
            let mut loaded = config::load(options);
            loaded.problems.extend(tools::unmatched(options, &loaded));
            let warnings = warnings(options, &loaded);
            (options.config_file(), loaded.problems, warnings)
        }
        Some(file) => {
            let (problems, warnings) = findings_of(options, &file)?;
            (file, problems, warnings)
        }
    };
    let mut out = io::stdout().lock();
    if json {
        let report =
            ConfigFindings { file: &shown, problems: located(&problems, &shown), warnings: located(&warnings, &shown) };
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
        return Ok(problems.is_empty());
    }
    for finding in problems.iter().chain(&warnings) {
        writeln!(out, "{finding}")?;
    }
    if problems.is_empty() {
        writeln!(out, "{}: no errors", shown.display())?;
    }
    Ok(problems.is_empty())
}

/// The findings of a check for programs.
#[derive(Serialize)]
struct ConfigFindings<'a> {
    file: &'a Path,
    problems: Vec<PlacedFinding<'a>>,
    warnings: Vec<PlacedFinding<'a>>,
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

fn located<'a>(findings: &'a [String], file: &Path) -> Vec<PlacedFinding<'a>> {
    findings.iter().map(|text| PlacedFinding::of(text, file)).collect()
}

impl<'a> PlacedFinding<'a> {
    fn of(text: &'a str, file: &Path) -> Self {
        let mut found = Self { line: None, column: None, message: text };
        let Some(rest) = text.strip_prefix(&*file.to_string_lossy()) else { return found };
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

/// Errors, and settings that have no effect now.
fn findings_of(options: &Options, file: &Path) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let text = files::read_text(file, config::MAX_BYTES).with_context(|| format!("can't read {}", file.display()))?;
    let of_project = file.parent().and_then(Path::file_name).is_some_and(|folder| folder == ".toold");
    if !of_project {
        let alone = Options { config: Some(std::path::absolute(file)?), ..options.clone() };
        let mut loaded = config::load(&alone);
        loaded.problems.extend(tools::unmatched(&alone, &loaded));
        let warnings = warnings(&alone, &loaded);
        return Ok((loaded.problems, warnings));
    }
    let name = file.display().to_string();
    let source = ConfigText { name: &name, text: &text, overrides: &[], sections: Some(project::SECTIONS) };
    let ReadConfig { readable: config, mut problems, unknown_choices, .. } = read(source);
    let base = std::path::absolute(file)?.parent().and_then(Path::parent).map(Path::to_owned);
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
    problems.extend(unknown_choices.into_iter().map(|choice| choice.problem));
    let mut protected = Policy::default();
    for pattern in &config.permission.protected_writes {
        protected.protect(pattern.get_ref(), &source.place(Some(pattern.span())), None);
    }
    problems.extend(protected.broken);
    Ok((config::in_order(problems, &name), warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_split_into_place_and_message() {
        let of = |text: &'static str| PlacedFinding::of(text, Path::new("/c.toml"));
        let located = |line, column, message| PlacedFinding { line, column, message };
        assert_eq!(of("/c.toml:3:7: limits: wrong"), located(Some(3), Some(7), "limits: wrong"));
        assert_eq!(of("/c.toml:3: wrong"), located(Some(3), None, "wrong"));
        assert_eq!(of("/c.toml: sandbox: wrong"), located(None, None, "sandbox: wrong"));
        assert_eq!(of("flag --set x: wrong"), located(None, None, "flag --set x: wrong"));
    }
}
