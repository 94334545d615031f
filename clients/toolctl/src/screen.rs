//! `toolctl` without a subcommand: a full-screen view of the daemon.
//!
//! [`state`] holds everything that is shown; [`draw`] draws it; [`fetch`] reads a list again when an event says that it
//! has changed.

mod draw;
mod fetch;
mod state;

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use toold_client::{Client, ClientError, Items};
use toold_proto::call::CancelCall;
use toold_proto::event::SubscribeEvents;
use toold_proto::method::{EventsSubscribe, PermissionsReply, PermissionsSubscribe, ShellsKill, ToolsCancel};
use toold_proto::permission::{PermissionEvent, SubscribePrompts};
use toold_proto::plugin::ReloadPlugins;
use toold_proto::shell::KillShell;

use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::{connection, keys, output};
use fetch::Fetched;
use state::{ScreenAction, ScreenState};

/// How long events are collected before the screen is drawn again.
const FRAME: Duration = Duration::from_millis(40);

/// How often data without events is fetched, and running times are redrawn.
const TICK: Duration = Duration::from_secs(1);

pub(crate) async fn run(globals: &Globals) -> anyhow::Result<u8> {
    if !(keys::has_terminal() && output::stdout_is_terminal()) {
        return Err(usage("without a subcommand toolctl needs a terminal; see toolctl --help"));
    }
    let mut client = connection::open(globals).await?;
    loop {
        match show(&client).await {
            Err(error) if connection::is_replaced(&error) => client = connection::successor(&client).await?,
            ended => return ended.map(|()| OK),
        }
    }
}

/// Until the user quits.
async fn show(client: &Client) -> anyhow::Result<()> {
    let session = connection::open_session(client, Some("/".into()), None).await?;
    // Starts with the events of the last hour.
    let params = SubscribeEvents { since: Some(0), ..SubscribeEvents::default() };
    let events = client.subscribe_as::<EventsSubscribe, Value>(params).await?;
    let asks = match client.subscribe::<PermissionsSubscribe>(SubscribePrompts::default()).await {
        Ok(asks) => Some(asks),
        // The daemon sends no prompts, or none to this client.
        Err(ClientError::Rpc(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut terminal = ratatui::try_init()?;
    let ended = watch(client, events, asks, &mut terminal).await;
    ratatui::restore();
    session.close(client).await;
    ended
}

async fn watch(
    client: &Client,
    mut events: Items<Value>,
    mut asks: Option<Items<PermissionEvent>>,
    terminal: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<()> {
    let mut keys = keys::KeyReader::open()?;
    let mut state = ScreenState::default();
    // Each fetch sends one answer, and at most one of each kind is pending.
    let (sender, mut fetched) = mpsc::channel(16);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draw_at = Some(Instant::now());
    loop {
        // All of these are cancel-safe.
        tokio::select! {
            biased;
            key = keys.next_event() => {
                let Some(key) = key else { return Ok(()) };
                match state.press(key) {
                    Some(ScreenAction::Quit) => return Ok(()),
                    Some(action) => send_action(client, action, &sender),
                    None => {}
                }
                draw_at = Some(Instant::now());
            }
            () = sleep_until(draw_at.unwrap_or_else(Instant::now)), if draw_at.is_some() => {
                draw_at = None;
                terminal.draw(|frame| draw::draw(frame, &mut state))?;
            }
            ask = next(&mut asks) => match ask {
                Some(Ok(event)) => {
                    state.permission(event);
                    draw_at.get_or_insert_with(|| Instant::now() + FRAME);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(client.closed().await.into()),
            },
            event = events.next() => match event {
                Some(Ok(event)) => {
                    state.event(&event);
                    draw_at.get_or_insert_with(|| Instant::now() + FRAME);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(client.closed().await.into()),
            },
            Some(fetched) = fetched.recv() => {
                state.take(fetched);
                draw_at.get_or_insert_with(|| Instant::now() + FRAME);
            }
            _ = tick.tick() => {
                state.tick();
                draw_at.get_or_insert_with(|| Instant::now() + FRAME);
            }
        }
        for what in state.claim_outdated() {
            fetch::start(client, what, &sender);
        }
    }
}

async fn next(asks: &mut Option<Items<PermissionEvent>>) -> Option<Result<PermissionEvent, ClientError>> {
    match asks {
        Some(asks) => asks.next().await,
        None => std::future::pending().await,
    }
}

/// Sends the request of a key. Events show its effect; the footer shows an error.
fn send_action(client: &Client, action: ScreenAction, sender: &mpsc::Sender<Fetched>) {
    let (client, sender) = (client.clone(), sender.clone());
    tokio::spawn(async move {
        let done = match action {
            ScreenAction::Quit => Ok(()),
            ScreenAction::Reply(reply) => client.call::<PermissionsReply>(reply).await.map(drop),
            ScreenAction::Cancel(call_id, session_id) => {
                let params = CancelCall { call_id, session_id: Some(session_id) };
                client.call::<ToolsCancel>(params).await.map(drop)
            }
            ScreenAction::KillShell(shell_id, session_id) => {
                let params = KillShell { shell_id, session_id: Some(session_id) };
                client.call::<ShellsKill>(params).await.map(drop)
            }
            ScreenAction::Reload(name) => {
                let params = ReloadPlugins { name: Some(name) };
                client.call::<toold_proto::method::PluginsReload>(params).await.map(drop)
            }
        };
        if let Err(error) = done {
            // The screen is gone when nobody receives.
            let _ = sender.send(Fetched::Failed(format!("{:#}", anyhow::Error::new(error)))).await;
        }
    });
}
