//! Check and test plugins without the daemon: `toold plugin check` and `toold plugin test`.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use toold_lua::reload::check::{self, CheckReport};
use toold_lua::reload::plugin_tests::{self, TestReport};
use toold_proto::plugin::PluginError;

/// Loads a plugin and prints its registrations and errors. True when there are no errors.
///
/// # Errors
/// When the file cannot be read or stdout is closed.
pub fn check(path: &Path) -> anyhow::Result<bool> {
    let report = check::check(path).with_context(|| format!("can't check {}", path.display()))?;
    print_report(&report, &mut io::stdout().lock())?;
    Ok(report.is_good())
}

/// Runs a plugin's tests and prints the result of each. True when none failed.
///
/// # Errors
/// When there is nothing to read, or stdout is closed.
pub async fn test(path: &Path) -> anyhow::Result<bool> {
    let report = plugin_tests::test(path).await.with_context(|| format!("can't test {}", path.display()))?;
    print_tests(&report, &mut io::stdout().lock())?;
    Ok(report.failed() == 0)
}

fn print_report(report: &CheckReport, out: &mut impl Write) -> io::Result<()> {
    let version = report.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    writeln!(out, "plugin {}{version}", report.name)?;
    if let Some(capabilities) = &report.capabilities {
        let names = if capabilities.is_empty() { "nothing".to_owned() } else { capabilities.join(" ") };
        writeln!(out, "  may use   {names}")?;
    }
    for tool in &report.tools {
        writeln!(out, "  tool      {}", tool.name)?;
    }
    for (what, names) in [
        ("hook", &report.hooks),
        ("command", &report.commands),
        ("sub-agent", &report.subagents),
        ("resource", &report.resources),
        ("prompt", &report.prompts),
        ("timer", &report.timers),
    ] {
        for name in names {
            writeln!(out, "  {what:<9} {name}")?;
        }
    }
    for warning in &report.warnings {
        print_error("warning", warning, out)?;
    }
    for problem in &report.problems {
        print_error("error", problem, out)?;
    }
    Ok(())
}

fn print_tests(report: &TestReport, out: &mut impl Write) -> io::Result<()> {
    for file in &report.files {
        writeln!(out, "{}", file.path.display())?;
        if let Some(error) = &file.error {
            print_error("error", error, out)?;
        }
        for case in &file.cases {
            match &case.error {
                None => writeln!(out, "  ok      {}", case.name)?,
                Some(error) => {
                    writeln!(out, "  FAILED  {}", case.name)?;
                    print_error("error", error, out)?;
                }
            }
        }
    }
    writeln!(out, "{} passed, {} failed", report.passed(), report.failed())
}

fn print_error(kind: &str, error: &PluginError, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{kind}: {}", error.message)?;
    if let (Some(file), Some(line)) = (&error.file, error.line) {
        writeln!(out, "  --> {file}:{line}")?;
        if let Some(source) = &error.source_line {
            writeln!(out, "{line:>5} | {source}")?;
        }
    }
    if let Some(traceback) = &error.traceback {
        for line in traceback.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}
