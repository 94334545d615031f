//! `toolctl approve`: answers the prompts of all sessions in one terminal.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use toold_client::Client;

use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::output::{self, DIM};
use crate::prompts::{PromptOutcome, Prompter, ShownPrompts, WaitingPrompt};
use crate::terminal::EchoOff;
use crate::{connection, keys};

/// Answer permission prompts and questions as they arrive
///
/// Shows the prompts of all sessions, the oldest first. A prompt closes when it is answered elsewhere or its call
/// ends. Press Escape to exit.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {}

pub(crate) async fn run(_: ApproveArgs, globals: &Globals) -> anyhow::Result<u8> {
    if !keys::has_terminal() {
        return Err(usage(
            "approve needs a terminal; without one, use `toolctl permissions pending`, `allow` and `deny`",
        ));
    }
    let mut client = connection::open(globals).await?;
    // Between two prompts nothing reads keys.
    let _echo_off = EchoOff::begin()?;
    loop {
        match answer(&client).await {
            Err(error) if connection::is_replaced(&error) => client = connection::successor(&client).await?,
            ended => return ended.map(|()| OK),
        }
    }
}

/// Until the user exits.
async fn answer(client: &Client) -> anyhow::Result<()> {
    // So that other clients see who answered.
    let session = connection::open_session(client, Some("/".into()), None).await?;
    let Some(mut prompter) = Prompter::subscribe(client, ShownPrompts::All).await? else {
        bail!("this daemon does not send prompts to this client");
    };
    writeln!(output::stderr(), "{DIM}waiting for prompts; press Escape to exit{DIM:#}")?;
    while let Some(prompt) = next(&mut prompter).await? {
        if prompter.waiting() > 0 {
            writeln!(output::stderr(), "{DIM}{} more waiting{DIM:#}", prompter.waiting())?;
        }
        // A permission prompt says itself who asks.
        if let WaitingPrompt::Question(question) = &prompt {
            writeln!(output::stderr(), "{DIM}session {}{DIM:#}", question.session_id)?;
        }
        if prompter.show(&prompt).await? == PromptOutcome::Exited {
            break;
        }
    }
    session.close(client).await;
    Ok(())
}

/// The next prompt; `None` when the user exits.
async fn next(prompter: &mut Prompter) -> anyhow::Result<Option<WaitingPrompt>> {
    let mut keys = keys::KeyReader::open()?;
    let prompt = loop {
        tokio::select! {
            biased;
            event = keys.next_event() => match event.map(|event| (event, keys::key(event))) {
                Some((event, keys::KeyPress::Char('q'))) if keys.is_alone(event, keys::AT_ONCE).await => break None,
                Some((_, keys::KeyPress::Exit)) | None => break None,
                Some(_) => {}
            },
            prompt = prompter.next(|_| true) => break Some(prompt?),
        }
    };
    drop(keys);
    Ok(prompt)
}
