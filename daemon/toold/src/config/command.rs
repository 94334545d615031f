//! `toold config`: the commands on configurations that need no daemon.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use toold_engine::policy::Policy;
use toold_engine::policy::rules::{RulePlace, read_rule};
use toold_host::files;

use crate::config::options::Options;
use crate::config::read::{ConfigText, read};
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
/// that have no effect now. True when there are no errors.
///
/// A file below a `.toold` folder is checked as a project's.
///
/// # Errors
/// The file cannot be read, or stdout is gone.
pub fn check(options: &Options, file: Option<PathBuf>) -> anyhow::Result<bool> {
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
    for finding in problems.iter().chain(&warnings) {
        writeln!(out, "{finding}")?;
    }
    if problems.is_empty() {
        writeln!(out, "{}: no errors", shown.display())?;
    }
    Ok(problems.is_empty())
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
    let config = match read(source).config {
        Ok(config) => config,
        Err(problems) => return Ok((problems, Vec::new())),
    };
    let base = std::path::absolute(file)?.parent().and_then(Path::parent).map(Path::to_owned);
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
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
            Err(problem) => problems.push(format!("{origin}: {problem}")),
        }
    }
    let mut protected = Policy::default();
    for pattern in &config.permission.protected_writes {
        protected.protect(pattern.get_ref(), &source.place(Some(pattern.span())), None);
    }
    problems.extend(protected.broken);
    Ok((problems, warnings))
}
