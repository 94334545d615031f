//! `toolctl permissions replay` and `suggest`: rules tried on the past, and rules that the past suggests.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::Cell;
use toold_client::Client;
use toold_proto::effect::in_words;
use toold_proto::level::Level;
use toold_proto::method::{PermissionsGrant, PermissionsReplay, PermissionsSuggest};
use toold_proto::permission::{ReplayRules, ReplayedLine, ReplayedRules, Scope, SuggestRules, SuggestedRule};

use super::show;
use crate::clock;
use crate::confirm::confirm;
use crate::exit::{OK, usage};
use crate::keys::has_terminal;
use crate::new_grant::allowing;
use crate::output::{self, BAD, BOLD, DIM, one_line, print_answer, print_json};
use crate::table;

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Only calls since this time: 2026-01-31T12:00:00Z, or how long ago, such as 7d
    #[arg(long, value_name = "WHEN", default_value = "7d")]
    since: String,
    /// Rules to try in addition to yours: a TOML file with [[permission.rules]]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The level to try
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(Level::ALL.map(Level::as_str)).try_map(level))]
    level: Option<Level>,
}

#[derive(Debug, Args)]
pub(super) struct SuggestArgs {
    /// Only answers since this time: 2026-01-31T12:00:00Z, or how long ago, such as 7d
    #[arg(long, value_name = "WHEN", default_value = "7d")]
    since: String,
    /// Where an accepted rule applies
    #[arg(long, value_enum, default_value = "project")]
    scope: SuggestScopeArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SuggestScopeArg {
    /// For the project of the current folder
    Project,
    /// For everything
    Always,
}

fn level(text: String) -> Result<Level, String> {
    Level::parse(&text).ok_or_else(|| "expected read, edit, develop or operate".to_owned())
}

pub(super) async fn replay(client: &Client, args: ReplayArgs, json: bool) -> anyhow::Result<u8> {
    let read = |file: &PathBuf| {
        std::fs::read_to_string(file).map_err(|error| usage(format!("can't read {}: {error}", file.display())))
    };
    let rules = args.rules.as_ref().map(read).transpose()?;
    let replayed = client
        .call::<PermissionsReplay>(ReplayRules { since: clock::moment(&args.since), rules, level: args.level })
        .await?;
    print_answer(json, &replayed, shown)?;
    Ok(OK)
}

fn shown(replayed: &ReplayedRules, width: Option<u16>) -> String {
    let per_hour = |asks: u64| asks as f64 / replayed.active_hours.max(1) as f64;
    let mut text = format!(
        "{} in {}, {}\n",
        output::counted(replayed.decisions, "decision"),
        output::counted(replayed.calls, "call"),
        output::counted(replayed.active_hours, "active hour"),
    );
    text.push_str(&format!(
        "asks: {} before ({:.1} an hour), {BOLD}{} after ({:.1} an hour){BOLD:#}\n",
        replayed.asks_before,
        per_hour(replayed.asks_before),
        replayed.asks_after,
        per_hour(replayed.asks_after),
    ));
    if replayed.not_replayable > 0 {
        text.push_str(&format!(
            "{DIM}{} could not be decided again: their texts were redacted, or are of an earlier version{DIM:#}\n",
            replayed.not_replayable
        ));
    }
    let were_free: u64 = replayed.asked.iter().map(|line| line.count).sum();
    if were_free > 0 {
        text.push_str(&format!(
            "{DIM}{were_free} of the asks after would be new: what was free then, by a rule, a grant, a mode or a level that does \
             not hold here, or was denied; replay knows no session's grants, modes and levels{DIM:#}\n",
        ));
    }
    let titled = [
        ("would be free", &replayed.freed),
        ("would be denied", &replayed.denied),
        ("would be asked about, and was not", &replayed.asked),
    ];
    for (title, lines) in titled {
        if !lines.is_empty() {
            text.push_str(&format!("\n{BOLD}{title}{BOLD:#}\n{}", rows(lines, width)));
        }
    }
    if replayed.more > 0 {
        text.push_str(&format!("{DIM}and {} more{DIM:#}\n", replayed.more));
    }
    text
}

fn rows(lines: &[ReplayedLine], width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&["TIMES", "CATEGORY", "TARGET", "EFFECTS", "BY"]));
    for line in lines {
        let effects: Vec<&str> = line.effects.iter().map(|effect| effect.as_str()).collect();
        let denied = if line.was_denied { format!("{BAD}was denied{BAD:#} ") } else { String::new() };
        rows.add_row([
            Cell::new(line.count),
            Cell::new(line.category),
            table::name(&one_line(&line.target)),
            Cell::new(format!("{denied}{}", effects.join(", "))),
            Cell::new(one_line(&line.rule)),
        ]);
    }
    table::render_without(&rows, &["CATEGORY", "BY"])
}

/// Shows the rules, and stores those that the user accepts, one by one.
pub(super) async fn suggest(client: &Client, args: SuggestArgs, json: bool) -> anyhow::Result<u8> {
    // A rule for the project answers nothing elsewhere.
    let cwd = match args.scope {
        SuggestScopeArg::Project => Some(super::folder(None)?),
        SuggestScopeArg::Always => None,
    };
    let asked = SuggestRules { since: Some(clock::moment(&args.since)), cwd };
    let found = client.call::<PermissionsSuggest>(asked).await?;
    if json {
        print_json(&found)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    writeln!(out, "{} of a person", output::counted(found.answers, "answer"))?;
    for rule in &found.rules {
        writeln!(out, "\n{}", described(rule))?;
        out.flush()?;
        if has_terminal() && confirm("Allow it from now on?").await? {
            let scope = match args.scope {
                SuggestScopeArg::Project => Scope::Project,
                SuggestScopeArg::Always => Scope::Always,
            };
            let cwd = super::folder(None)?;
            let grant = allowing(rule.category, rule.pattern.clone(), scope, Some(cwd));
            let stored = client.call::<PermissionsGrant>(grant).await?;
            writeln!(out, "{}", show::grant(&stored))?;
        }
    }
    out.flush()?;
    if found.rules.is_empty() {
        writeln!(output::stderr(), "nothing to suggest: no rule would have given two of these answers")?;
    } else if !has_terminal() {
        writeln!(output::stderr(), "nothing was stored: run it at a terminal to be asked for each")?;
    }
    Ok(OK)
}

fn described(rule: &SuggestedRule) -> String {
    let effects = if rule.effects.is_empty() { String::new() } else { format!("; {}", in_words(&rule.effects)) };
    format!(
        "{BOLD}allow {} {}{BOLD:#}\n  would have given {} of your answers{effects}",
        rule.category,
        one_line(&rule.pattern),
        rule.count
    )
}
