//! `toolctl page`: the daemon's page in a browser.

use std::io::Write;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use toold_proto::daemon::NoParams;
use toold_proto::method::{PageOpen, PageRevoke, PageSessionsList};
use toold_proto::page::{OpenPage, OpenedPage, PageSessionList, RevokePageSessions};

use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, DIM, counted, one_line, print_json};
use crate::{browser, clock, connection, table};

/// Open the daemon's page in a browser
///
/// Prints a link that signs one browser in, once, within 2 minutes, and opens it. The page shows running calls,
/// permission prompts and questions, tools, plugins, rules and history. For a phone, set listen, tls_cert and tls_key in
/// the section page of the configuration, and scan the code. With --plain, and when stdout is no terminal, it prints the
/// link alone.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PageArgs {
    #[command(subcommand)]
    action: Option<PageAction>,
    /// Print the link, and open no browser
    #[arg(long)]
    no_open: bool,
    /// Draw the link as a QR code, for a phone; the default where other machines reach the page
    #[arg(long, conflicts_with_all = ["json", "plain"])]
    qr: bool,
    /// Show this prompt first: the id of a permission prompt or a question
    #[arg(long, value_name = "REQUEST_ID")]
    ask: Option<String>,
    /// Print JSON, and open no browser
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PageAction {
    /// List the browsers that are signed in
    Sessions {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign browsers out, and end their connections
    Revoke {
        /// Only this one; all when absent, and then unused links are void, too
        #[arg(value_name = "ID", value_parser = crate::amount::whole::<u64>)]
        id: Option<u64>,
    },
}

/// Columns of a QR code at most: a terminal of the usual width.
const MAX_QR: usize = 80;

pub(crate) async fn run(args: PageArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    match args.action {
        None => {
            let opened = client.call::<PageOpen>(OpenPage { ask: args.ask.clone() }).await?;
            match args.json {
                true => print_json(&opened)?,
                false => show(&args, globals, &opened).await?,
            }
        }
        Some(PageAction::Sessions { json }) => {
            let list = client.call::<PageSessionsList>(NoParams {}).await?;
            match json {
                true => print_json(&list)?,
                false => print_sessions(&list)?,
            }
        }
        Some(PageAction::Revoke { id }) => {
            let done = client.call::<PageRevoke>(RevokePageSessions { id }).await?;
            writeln!(output::stderr(), "signed out {}", counted(done.revoked, "browser"))?;
        }
    }
    Ok(OK)
}

async fn show(args: &PageArgs, globals: &Globals, opened: &OpenedPage) -> anyhow::Result<()> {
    output::print_unfolded(&format!("{}\n", one_line(&opened.url)))?;
    if globals.plain || !(output::stdout_is_terminal() || args.qr) {
        return Ok(());
    }
    if args.qr || !opened.loopback {
        match qr_code(&opened.url) {
            Some(code) => output::print_unfolded(&code)?,
            None => writeln!(output::stderr(), "the link is too long for a QR code in a terminal")?,
        }
    }
    if !args.no_open && output::stdout_is_terminal() && browser::open(&opened.url).await {
        writeln!(output::stderr(), "{DIM}opened in your browser; the link is valid once, for 2 minutes{DIM:#}")?;
        return Ok(());
    }
    writeln!(output::stderr(), "{DIM}open the link in a browser; it is valid once, for 2 minutes{DIM:#}")?;
    if let Some(line) = opened.loopback.then(|| forwarding(&opened.address)).flatten() {
        writeln!(output::stderr(), "if the browser is on the machine that you came from, run there first:\n  {line}")?;
    }
    Ok(())
}

/// The command that makes the page reachable for the machine at the other end of this ssh connection.
fn forwarding(address: &str) -> Option<String> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let host = connection.split(' ').nth(2)?.to_owned();
    let user = std::env::var("USER").map_or_else(|_| String::new(), |user| format!("{user}@"));
    let port = address.rsplit(':').next()?;
    Some(format!("ssh -N -L {port}:{address} {user}{host}"))
}

/// Dark on light whatever the terminal's colours are: some phones read nothing else. `None` for a link that does not
/// fit.
fn qr_code(link: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L).ok()?;
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Dark).light_color(Dense1x2::Light).build();
    let style = anstyle::Style::new()
        .fg_color(Some(anstyle::RgbColor(0, 0, 0).into()))
        .bg_color(Some(anstyle::RgbColor(255, 255, 255).into()));
    let fits = drawn.lines().all(|line| line.chars().count() <= MAX_QR);
    fits.then(|| drawn.lines().map(|line| format!("{style}{line}{style:#}\n")).collect())
}

fn print_sessions(list: &PageSessionList) -> anyhow::Result<()> {
    if list.sessions.is_empty() {
        writeln!(output::stderr(), "no browser is signed in")?;
        return Ok(());
    }
    let mut shown = table::new(output::terminal_width());
    shown.set_header(table::header(&["ID", "FROM", "SIGNED IN", "LAST USED", "OPEN", "BROWSER"]));
    for session in &list.sessions {
        shown.add_row([
            table::name(&session.id.to_string()),
            Cell::new(one_line(&session.from)),
            Cell::new(clock::date_and_time(&session.signed_in_at)),
            Cell::new(clock::date_and_time(&session.last_used_at)),
            Cell::new(session.connections),
            Cell::new(one_line(&session.browser)),
        ]);
    }
    output::print(&table::render(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qr_code_fits_the_terminal_or_is_left_out() {
        let link = format!("https://a-long-name-of-a-host.example.org:65535/page/#code={}", "a".repeat(32));
        let code = qr_code(&link).unwrap();
        assert!(code.lines().count() < 30, "{code}");
        assert_eq!(qr_code(&"a".repeat(600)), None);
    }
}
