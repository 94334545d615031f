//! Plugins without the daemon: `toold plugin check|test|repl|digest`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toold_engine::hooks::HookEvent;
use toold_engine::progress::ProgressSink;
use toold_lua::plugin::content;
use toold_lua::plugin::evaluate::is_incomplete;
use toold_lua::reload::check::{self, CheckReport, CheckedHook};
use toold_lua::reload::coverage::{FileCoverage, TestCoverage};
use toold_lua::reload::faked_prompt::FakedPrompt;
use toold_lua::reload::plugin_tests::{self, TestCase, TestFile, TestReport};
use toold_proto::call::{CallProgress, Progress};
use toold_proto::plugin::{Evaluation, PluginError, PromptLine};
use toold_proto::tool::CallId;

use crate::config::options::Options;
use crate::config::plugins;

/// Loads a plugin and prints its registrations and errors. True when there are no errors.
///
/// # Errors
/// When the file cannot be read or stdout is closed.
pub async fn check(path: &Path, options: &Options) -> anyhow::Result<bool> {
    let report = check::check(path, plugins::standalone(options))
        .await
        .with_context(|| format!("can't check {}", path.display()))?;
    print_report(&report, &mut io::stdout().lock())?;
    Ok(report.is_good())
}

/// The output about the tests of a plugin.
#[derive(Debug, Args)]
pub struct TestOutput {
    /// Also show which lines ran
    #[arg(long)]
    coverage: bool,
    /// Write the lines that ran into a file, in the format of lcov
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs a plugin's tests and prints the result of each. True when none failed.
///
/// # Errors
/// When there is nothing to read, a file cannot be written, or stdout is closed.
pub async fn test(path: &Path, output: &TestOutput) -> anyhow::Result<bool> {
    let failed = || format!("can't test {}", path.display());
    let (report, coverage) = match output.coverage || output.lcov.is_some() {
        false => (plugin_tests::test(path).await.with_context(failed)?, None),
        true => {
            let (report, coverage) = plugin_tests::test_with_coverage(path).await.with_context(failed)?;
            (report, Some(coverage))
        }
    };
    if let (Some(file), Some(coverage)) = (&output.lcov, &coverage) {
        std::fs::write(file, coverage.to_lcov()).with_context(|| format!("can't write {}", file.display()))?;
    }
    let mut out = io::stdout().lock();
    if output.json {
        writeln!(out, "{:#}", tests_as_json(&report, coverage.as_ref()))?;
    } else {
        print_tests(&report, &mut out)?;
        if report.files.is_empty() {
            let expected = if path.is_dir() { path.join("plugin_test.lua") } else { path.with_extension("") };
            let end = if path.is_dir() { "" } else { "_test.lua" };
            writeln!(io::stderr(), "there are no tests: write some into {}{end}", expected.display())?;
        }
        if let Some(coverage) = coverage.filter(|_| output.coverage) {
            print_coverage(&coverage, &mut out)?;
        }
    }
    Ok(report.failed() == 0)
}

/// Loads a plugin with the fakes of tests, runs the inputs that stdin gives, and writes [`PromptLine`]s. An interrupt
/// cancels the input that runs. False when the plugin cannot be loaded; the reason is on stderr.
///
/// # Errors
/// When stdin is not what it should be, or stdout is closed.
pub async fn repl(path: &Path) -> anyhow::Result<bool> {
    let prompt = match FakedPrompt::open(path).await.with_context(|| format!("can't load {}", path.display()))? {
        Ok(prompt) => prompt,
        Err(error) => {
            print_error("error", &error, &mut io::stderr().lock())?;
            return Ok(false);
        }
    };
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut inputs = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = inputs.next_line().await? {
        let source: String =
            serde_json::from_str(&line).with_context(|| format!("expected a JSON string, got {line:?}"))?;
        if is_incomplete(&source) {
            write_line(&PromptLine::Answer(Box::new(Evaluation { incomplete: true, result: None })))?;
            continue;
        }
        let cancel = CancellationToken::new();
        let mut evaluating = pin!(prompt.evaluate(source, Arc::new(StdoutProgress), cancel.clone()));
        let ended = tokio::select! {
            biased;
            ended = &mut evaluating => ended,
            _ = interrupts.recv() => {
                cancel.cancel();
                evaluating.await
            }
        };
        write_line(&match ended {
            Ok(result) => PromptLine::Answer(Box::new(Evaluation { incomplete: false, result: Some(result) })),
            Err(error) => PromptLine::Cancelled(error.to_string()),
        })?;
    }
    Ok(true)
}

/// Writes the progress of an input to stdout.
struct StdoutProgress;

impl ProgressSink for StdoutProgress {
    fn send(&self, seq: u64, progress: &Progress) {
        let call_id = CallId::parse("prompt").expect("letters are an id");
        let progress = CallProgress { call_id, seq, dropped: None, progress: progress.clone() };
        // Fails when nobody reads any more, and then the end of stdin follows.
        let _ = write_line(&PromptLine::Progress(progress));
    }
}

fn write_line(line: &PromptLine) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(line)?)?;
    out.flush()?;
    Ok(())
}

/// Prints the digest of each plugin's files, as a person's trust and `plugins.lock` use it.
///
/// # Errors
/// When a file cannot be read or stdout is closed.
pub fn digest(paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        let digest = content::whole_digest(path).with_context(|| format!("can't read {}", path.display()))?;
        writeln!(io::stdout().lock(), "{digest}")?;
    }
    Ok(())
}

fn print_report(report: &CheckReport, out: &mut impl Write) -> io::Result<()> {
    let version = report.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    if !report.name.is_empty() {
        writeln!(out, "plugin {}{version}", report.name)?;
    }
    if let Some(capabilities) = &report.capabilities {
        let names = if capabilities.is_empty() { "nothing".to_owned() } else { capabilities.join(" ") };
        writeln!(out, "  may use   {names}")?;
    }
    for tool in &report.tools {
        writeln!(out, "  tool      {}", tool.name)?;
    }
    for hook in &report.hooks {
        writeln!(out, "  hook      {}  {}", hook.name, seen_by(hook))?;
    }
    for (what, names) in [
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
    for need in &report.refused {
        writeln!(out, "  refused   {} {}  ({})", need.category, need.target, need.rule)?;
    }
    for warning in &report.warnings {
        print_error("warning", warning, out)?;
    }
    for problem in &report.problems {
        print_error("error", problem, out)?;
    }
    Ok(())
}

/// The calls that a hook sees, which are not only those of its plugin.
fn seen_by(hook: &CheckedHook) -> String {
    let calls = match &hook.tools {
        Some(tools) => format!("the calls of {}", tools.join(", ")),
        None => "all calls of all tools".to_owned(),
    };
    match hook.event {
        HookEvent::PreTool => format!("pre_tool: sees {calls} and can change or refuse them"),
        HookEvent::PostTool => format!("post_tool: sees the results of {calls} and can change them"),
        HookEvent::PreMessage => "pre_message: sees all your messages and can change them".to_owned(),
        HookEvent::PostMessage => "post_message: sees all answers of the model and can change them".to_owned(),
    }
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

/// A line for each file: how many lines with code ran, and which did not.
fn print_coverage(coverage: &TestCoverage, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "coverage")?;
    let width = coverage.files.keys().map(String::len).max().unwrap_or_default().max("all".len());
    let mut all = (0, 0);
    for (name, file) in &coverage.files {
        let (covered, lines) = (file.covered(), file.lines.len());
        all = (all.0 + covered, all.1 + lines);
        let ranges = file.uncovered().into_iter().map(range).collect::<Vec<_>>();
        let missing = if ranges.is_empty() { String::new() } else { format!("  not run: {}", ranges.join(", ")) };
        writeln!(out, "  {name:<width$}  {} of {lines} lines{missing}", percent(covered, lines))?;
    }
    writeln!(out, "  {:<width$}  {} of {} lines", "all", percent(all.0, all.1), all.1)
}

fn percent(covered: usize, lines: usize) -> String {
    let percent = if lines == 0 { 100.0 } else { covered as f64 * 100.0 / lines as f64 };
    format!("{percent:5.1} %  {covered}")
}

fn range((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn tests_as_json(report: &TestReport, coverage: Option<&TestCoverage>) -> Value {
    let case = |case: &TestCase| json!({"name": case.name, "error": case.error});
    let file = |file: &TestFile| {
        let cases: Vec<Value> = file.cases.iter().map(case).collect();
        json!({"path": file.path, "cases": cases, "error": file.error})
    };
    let files: Vec<Value> = report.files.iter().map(file).collect();
    let mut tests = json!({"passed": report.passed(), "failed": report.failed(), "files": files});
    if let Some(coverage) = coverage {
        let file = |(name, file): (&String, &FileCoverage)| {
            let uncovered: Vec<String> = file.uncovered().into_iter().map(range).collect();
            json!({"file": name, "path": file.path, "lines": file.lines.len(), "covered": file.covered(),
                "uncovered": uncovered})
        };
        tests["coverage"] = coverage.files.iter().map(file).collect();
    }
    tests
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
