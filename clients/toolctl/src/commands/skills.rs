//! `toolctl skills`: instructions that agents can load.

use std::io::Write;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use toold_client::Client;
use toold_proto::method::{SkillsGet, SkillsList};
use toold_proto::skill::{GetSkill, OfSession, SkillList};

use crate::exit::{OK, TOOL_ERROR};
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, GOOD, WARN, first_sentence, one_line, plain, print_answer, print_json};
use crate::{connection, table};

/// List and show skills, and find broken ones
///
/// Skills are read from .toold/skills, .agents/skills and .claude/skills, from the current folder up to the project's
/// folder, then from the daemon's configuration folder and your home folder. The nearest skill of a name is used.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    action: Option<SkillsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SkillsAction {
    /// List the skills for the current folder
    List,
    /// Print the text of a skill
    Show {
        /// The name of the skill
        name: String,
    },
    /// Report problems in skill files
    ///
    /// The exit status is 1 if there are any.
    Doctor,
}

pub(crate) async fn run(args: SkillsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let session = connection::open_session(&client, None, None).await?;
    let status = run_action(&client, args).await;
    session.close(&client).await;
    status
}

async fn run_action(client: &Client, args: SkillsArgs) -> anyhow::Result<u8> {
    match args.action.unwrap_or(SkillsAction::List) {
        SkillsAction::List => {
            let list = client.call::<SkillsList>(OfSession::default()).await?;
            match args.json {
                true => print_json(&list)?,
                false => show_list(&list)?,
            }
            Ok(OK)
        }
        SkillsAction::Show { name } => {
            let skill = client.call::<SkillsGet>(GetSkill { name, session_id: None }).await?;
            print_answer(args.json, &skill, |skill, _| format!("{}\n", plain(skill.text.trim_end())))?;
            Ok(OK)
        }
        SkillsAction::Doctor => {
            let list = client.call::<SkillsList>(OfSession::default()).await?;
            match args.json {
                true => print_json(&list)?,
                false => diagnose(&list)?,
            }
            Ok(if list.broken.is_empty() { OK } else { TOOL_ERROR })
        }
    }
}

fn show_list(list: &SkillList) -> anyhow::Result<()> {
    let mut rows = table::new(output::terminal_width());
    for skill in &list.skills {
        rows.add_row([
            table::name(&skill.name),
            Cell::new(one_line(&skill.scope)),
            Cell::new(first_sentence(&skill.description, 200)),
        ]);
    }
    output::print(&table::render(&rows))?;
    if list.skills.is_empty() {
        writeln!(output::stderr(), "no skills")?;
    }
    if !list.broken.is_empty() {
        writeln!(output::stderr(), "{WARN}{} broken:{WARN:#} see toolctl skills doctor", list.broken.len())?;
    }
    Ok(())
}

fn diagnose(list: &SkillList) -> anyhow::Result<()> {
    let mut out = output::stdout();
    writeln!(out, "{GOOD}ok  {GOOD:#} {} skills", list.skills.len())?;
    for broken in &list.broken {
        let line = broken.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(out, "{BAD}bad {BAD:#} {}{line}: {}", one_line(&broken.path), one_line(&broken.message))?;
    }
    for path in &list.shadowed {
        writeln!(out, "{WARN}warn{WARN:#} {} {DIM}a nearer skill has the same name{DIM:#}", one_line(path))?;
    }
    out.flush()?;
    Ok(())
}
