//! `toold config`: what can be told of configurations without a daemon.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::read::{Text, read};
use crate::config::{self, project, schema};
use crate::daemon::Options;

/// Prints the JSON Schema.
///
/// # Errors
/// Stdout is gone.
pub fn print_schema() -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{:#}", schema::schema())?;
    Ok(())
}

/// Prints where the configuration file is, whether or not it is there.
///
/// # Errors
/// Stdout is gone.
pub fn print_path(options: &Options) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{}", options.config_file().display())?;
    Ok(())
}

/// Prints what is wrong with a file, or with the whole configuration when none is named. True when nothing is.
///
/// A file below a `.toold` folder is judged as a project's.
///
/// # Errors
/// The file cannot be read, or stdout is gone.
pub fn check(options: &Options, file: Option<PathBuf>) -> anyhow::Result<bool> {
    let (shown, problems) = match file {
        None => (options.config_file(), config::load(options).problems),
        Some(file) => {
            let problems = problems_of(options, &file)?;
            (file, problems)
        }
    };
    let mut out = io::stdout().lock();
    for problem in &problems {
        writeln!(out, "{problem}")?;
    }
    if problems.is_empty() {
        writeln!(out, "{}: no mistakes", shown.display())?;
    }
    Ok(problems.is_empty())
}

fn problems_of(options: &Options, file: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    let of_project = file.parent().and_then(Path::file_name).is_some_and(|folder| folder == ".toold");
    if !of_project {
        let alone = Options { config: Some(std::path::absolute(file)?), ..options.clone() };
        return Ok(config::load(&alone).problems);
    }
    let name = file.display().to_string();
    let source = Text { name: &name, text: &text, overrides: &[], sections: Some(project::SECTIONS) };
    let config = match read(source).config {
        Ok(config) => config,
        Err(problems) => return Ok(problems),
    };
    let base = std::path::absolute(file)?.parent().and_then(Path::parent).map(Path::to_owned);
    let problems = config.permission.rules.iter().filter_map(|rule| {
        let origin = source.place(Some(rule.span()));
        let place = toold_engine::policy::rules::RulePlace {
            origin: origin.clone(),
            project: base.clone(),
            trusted: true,
            base: base.clone(),
            home: options.places.home.clone(),
        };
        let read = toold_engine::policy::rules::read_rule(rule.get_ref(), &place);
        read.err().map(|problem| format!("{origin}: {problem}"))
    });
    Ok(problems.collect())
}
