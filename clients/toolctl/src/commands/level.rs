//! `toolctl level`: how much runs without an approval.

use std::path::Path;

use clap::{Args, ValueEnum};
use comfy_table::{Cell, Color};
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::level::{Level, LevelNeeds, SessionLevel, SetLevel, ShowLevel};
use toold_proto::method::{PermissionsLevel, PermissionsSetLevel, SessionsList};
use toold_proto::session::SessionInfo;
use toold_proto::tool::SessionId;

use crate::commands::call::session_id;
use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::output::{self, BOLD, DIM, WARN, one_line, print_json};
use crate::{connection, table};

/// Show or change how much runs without an approval
///
/// Without a level, toolctl shows that of the sessions in the current folder. The level of the configuration is
/// permission.level; a level that you set here holds for one session, until you set it to `configured`.
#[derive(Debug, Args)]
pub(crate) struct LevelArgs {
    /// The new level of a session
    #[arg(value_enum)]
    level: Option<LevelArg>,
    /// The session; defaults to that of this terminal, or the only one that works in the current folder
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Show what each level frees here
    #[arg(long)]
    explain: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelArg {
    /// Only reading needs no approval
    Read,
    /// Changes of files in the session's folders need none either
    Edit,
    /// Builds and tests need none either, if commands can be confined here
    Develop,
    /// Downloads, and installations into the session's folders, need none either
    Operate,
    /// The level of the configuration
    Configured,
}

impl LevelArg {
    fn level(self) -> Option<Level> {
        match self {
            Self::Read => Some(Level::Read),
            Self::Edit => Some(Level::Edit),
            Self::Develop => Some(Level::Develop),
            Self::Operate => Some(Level::Operate),
            Self::Configured => None,
        }
    }
}

pub(crate) async fn run(args: LevelArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let working = working_here(&client).await?;
    let own = connection::open_session(&client, None, None).await?;
    let shown = show_or_set(&client, &args, &working).await;
    own.close(&client).await;
    let levels = shown?;
    if args.json {
        print_json(&levels)?;
        return Ok(OK);
    }
    let mut text: String = levels.iter().map(|level| one(level, &working)).collect();
    if let Some(first) = levels.first() {
        if args.explain {
            text.push_str(&format!("\n{}", explained(first, output::terminal_width())));
        }
        text.push_str(&unconfined(first));
    }
    output::print(&text)?;
    Ok(OK)
}

async fn show_or_set(client: &Client, args: &LevelArgs, working: &[SessionInfo]) -> anyhow::Result<Vec<SessionLevel>> {
    if let Some(level) = args.level {
        let session_id = Some(chosen(args.session.clone(), working)?);
        let params = SetLevel { session_id, level: level.level() };
        return Ok(vec![client.call::<PermissionsSetLevel>(params).await?]);
    }
    let ids: Vec<Option<SessionId>> = match &args.session {
        Some(id) => vec![Some(id.clone())],
        // The level of the connection's own session is that of new sessions here.
        None => std::iter::once(None).chain(working.iter().map(|session| Some(session.session_id.clone()))).collect(),
    };
    let mut levels = Vec::new();
    for session_id in ids {
        levels.push(client.call::<PermissionsLevel>(ShowLevel { session_id }).await?);
    }
    Ok(levels)
}

/// The sessions that work in the current folder, above or below it.
async fn working_here(client: &Client) -> anyhow::Result<Vec<SessionInfo>> {
    let here = std::env::current_dir()?;
    let mut sessions = client.call::<SessionsList>(NoParams {}).await?.sessions;
    sessions.retain(|session| {
        let folder = Path::new(&session.cwd);
        folder.parent().is_some() && (here.starts_with(folder) || folder.starts_with(&here))
    });
    Ok(sessions)
}

fn chosen(session: Option<SessionId>, working: &[SessionInfo]) -> anyhow::Result<SessionId> {
    if let (None, Some(own)) = (&session, connection::of_this_terminal(working)) {
        return Ok(own.session_id.clone());
    }
    match (session, working) {
        (Some(id), _) => Ok(id),
        (None, [only]) => Ok(only.session_id.clone()),
        (None, []) => Err(usage(
            "no session works in this folder: name one with --session (`toolctl sessions` lists them), or set \
             permission.level in the configuration",
        )),
        (None, several) => {
            let named: Vec<String> = several.iter().map(named).collect();
            Err(usage(format!(
                "several sessions work in this folder: name one of them with --session: {}",
                named.join(", ")
            )))
        }
    }
}

fn named(session: &SessionInfo) -> String {
    let client = session.client.as_ref().map(|client| format!(" ({})", one_line(&client.name))).unwrap_or_default();
    let own = connection::of_this_terminal(std::slice::from_ref(session)).map_or("", |_| ", this terminal");
    format!("{}{client}{own}", session.session_id)
}

fn one(level: &SessionLevel, working: &[SessionInfo]) -> String {
    let of = working.iter().find(|session| session.session_id == level.session_id);
    let of = of.map_or_else(|| "new sessions here".to_owned(), |session| format!("session {}", named(session)));
    format!("{BOLD}{}{BOLD:#}  {of} {DIM}({}){DIM:#}\n", level.level, one_line(&level.from))
}

/// The table of levels, with what is free at the session's.
fn explained(level: &SessionLevel, width: Option<u16>) -> String {
    let mut rows = table::new(width);
    rows.set_header(table::header(&["LEVEL", "EFFECT", "FREE", "WHAT"]));
    for entry in &level.table {
        let (word, color) = match (entry.free, entry.needs) {
            (true, LevelNeeds::Confinement) => ("confined", Color::Green),
            (true, LevelNeeds::Nothing | LevelNeeds::Unavailable) => ("yes", Color::Green),
            (false, LevelNeeds::Unavailable) => ("asks always", Color::Yellow),
            (false, LevelNeeds::Confinement) if entry.level <= level.level => {
                ("asks: not confined here", Color::Yellow)
            }
            (false, LevelNeeds::Nothing | LevelNeeds::Confinement) => ("asks", Color::Yellow),
        };
        rows.add_row([
            table::name(entry.level.as_str()),
            Cell::new(entry.effect),
            Cell::new(word).fg(color),
            Cell::new(one_line(&entry.what)),
        ]);
    }
    let others = "All else asks at every level, with the effects publish, system, privilege, secret and send always.";
    format!("{}{DIM}{others}{DIM:#}\n", table::render(&rows))
}

/// A note that the level frees less because commands cannot be confined here; empty if they can.
fn unconfined(level: &SessionLevel) -> String {
    match &level.unconfined {
        Some(why) if level.level > Level::Read => format!(
            "{WARN}note{WARN:#} commands cannot be confined here ({}), so the level frees only what tools do themselves\n",
            one_line(why)
        ),
        Some(_) | None => String::new(),
    }
}
