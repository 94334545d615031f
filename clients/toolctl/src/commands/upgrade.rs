//! `toolctl upgrade`: the changes of a newer version that affect the user.

use clap::Args;
use toold_proto::method::UpgradeCheck;
use toold_proto::upgrade::{CheckUpgrade, UpgradeChange, UpgradeKind, UpgradeReport};

use crate::connection;
use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::output::{self, DIM, print_json};

/// List what version 0.1 allowed and this version asks about or ignores
///
/// Each entry names a replacement. Grants that version 0.1 stored with a wildcard still hold; they are listed once, for
/// you to review.
#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// List the changes; stores only that you reviewed the grants
    #[arg(long)]
    check: bool,
    /// Print JSON; does not mark the grants as reviewed
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: UpgradeArgs, globals: &Globals) -> anyhow::Result<u8> {
    if !args.check {
        return Err(usage("expected --check; to upgrade, use your package manager, then run `toolctl restart`"));
    }
    let client = connection::open(globals).await?;
    let report = client.call::<UpgradeCheck>(CheckUpgrade { reviewed: !args.json }).await?;
    if args.json {
        print_json(&report)?;
        return Ok(OK);
    }
    output::print(&render(&report))?;
    Ok(OK)
}

fn render(report: &UpgradeReport) -> String {
    if report.changes.is_empty() {
        return "nothing that version 0.1 allowed is treated differently\n".to_owned();
    }
    let mut text = String::new();
    let mut last = None;
    for UpgradeChange { kind, subject, now, replacement } in &report.changes {
        if last != Some(*kind) {
            text.push_str(&format!("{}{}\n", if last.is_some() { "\n" } else { "" }, heading(*kind)));
            last = Some(*kind);
        }
        let (subject, now, replacement) = (output::plain(subject), output::plain(now), output::plain(replacement));
        text.push_str(&format!("  {subject}\n    {DIM}now:{DIM:#} {now}\n    {DIM}instead:{DIM:#} {replacement}\n"));
    }
    text
}

fn heading(kind: UpgradeKind) -> &'static str {
    match kind {
        UpgradeKind::Rule => "Rules that cover less than in version 0.1",
        UpgradeKind::Grant => "Grants of version 0.1 to review; they are listed once",
        UpgradeKind::Environment => "Variables that agents may not set",
        UpgradeKind::Workspace => "Folders that agents are asked about",
        UpgradeKind::Join => "Sessions that agents may not join",
    }
}
