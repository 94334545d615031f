//! `toolctl` without a subcommand: a full-screen view of the daemon.
//!
//! [`state`] holds everything that is shown, and knows what keys do; [`keymap`] lists the keys; each file of [`panels`]
//! is a table; [`draw`] draws. [`link`] connects to the daemon, [`fetch`] reads a list again when an event says that it
//! has changed, and [`action`] makes the requests of keys.

mod action;
mod answer;
mod daemon_data;
mod details;
mod draw;
mod fetch;
#[cfg(test)]
mod fixtures;
mod forms;
mod keymap;
mod link;
pub(crate) mod panel;
mod panels;
mod state;
mod summary;
mod table_view;
mod terminal;
mod text;
mod theme;

use std::time::Duration;

use clap::Args;
use crossterm::event::Event;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::exit::{OK, usage};
use crate::globals::Globals;
use crate::terminal::OrderlyEnd;
use crate::{clock, connection, keys, output};
use action::{Request, ScreenAction};
use answer::ScreenAnswer;
use forms::FormTask;
use link::{DaemonItem, LinkTask, ScreenLink};
use state::ScreenState;
use terminal::ScreenTerminal;
use theme::{Theme, ThemeName};

/// How long events are collected before the screen is drawn again.
const FRAME: Duration = Duration::from_millis(40);

/// How often data without events is fetched, and running times are redrawn.
const TICK: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Its colours; also by TOOLCTL_THEME
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Full screen")]
    theme: Option<ThemeName>,
    /// Leave the mouse to the terminal, which then selects text
    #[arg(long, help_heading = "Full screen")]
    no_mouse: bool,
}

pub(crate) async fn run(args: ScreenArgs, globals: &Globals) -> anyhow::Result<u8> {
    if globals.plain {
        summary::print(&connection::open(globals).await?).await?;
        return Ok(OK);
    }
    if !(keys::has_terminal() && output::stdout_is_terminal()) {
        return Err(usage("without a subcommand toolctl needs a terminal; see toolctl --help"));
    }
    let client = connection::open(globals).await?;
    let mut state = ScreenState::default();
    state.mouse = !args.no_mouse;
    let variable = |name| std::env::var(name).ok();
    let theme = match (args.theme, variable("TOOLCTL_THEME")) {
        (None, Some(name)) if !name.is_empty() => Some(ThemeName::named(&name)?),
        (theme, _) => theme,
    };
    state.theme = Theme::detect(theme, variable("COLORFGBG").as_deref(), variable("NO_COLOR").as_deref());
    state.data.zone = clock::zone();
    state.cwd = std::env::current_dir().ok().map(|cwd| cwd.to_string_lossy().into_owned());
    let link = ScreenLink::open(client).await?;
    let mut screen = OpenScreen::open(globals, state, link)?;
    let ended = screen.watch().await;
    let in_form = screen.terminal.is_none();
    // Before the session is closed, which may take a moment.
    let link = screen.link.take();
    drop(screen);
    if in_form {
        // Its thread still waits for a key.
        crate::terminal::restore();
    }
    if let Some(link) = link {
        link.close().await;
    }
    ended
}

/// The terminal, and everything that the screen waits for.
struct OpenScreen<'a> {
    globals: &'a Globals,
    state: ScreenState,
    /// `None` while there is no daemon.
    link: Option<ScreenLink>,
    /// The next connection, while it is made.
    linking: LinkTask,
    /// Answers to the requests on this connection. Each fetch sends one, and at most one of each kind is pending.
    sender: mpsc::Sender<ScreenAnswer>,
    answers: mpsc::Receiver<ScreenAnswer>,
    /// `None` while a form has the terminal.
    terminal: Option<ScreenTerminal>,
    form: FormTask,
    signals: OrderlyEnd,
    draw_at: Option<Instant>,
}

/// Something that happened.
enum Happening {
    /// A signal, which ends toolctl with this status.
    Signal(u8),
    Terminal(Option<Event>),
    Draw,
    Daemon(anyhow::Result<DaemonItem>),
    Linked(anyhow::Result<ScreenLink>),
    Form(anyhow::Result<Option<Request>>),
    Answer(ScreenAnswer),
    Tick,
}

impl<'a> OpenScreen<'a> {
    fn open(globals: &'a Globals, state: ScreenState, link: ScreenLink) -> anyhow::Result<Self> {
        let (sender, answers) = mpsc::channel(32);
        let terminal = Some(ScreenTerminal::open(state.mouse)?);
        let (linking, form) = (LinkTask::default(), FormTask::default());
        let signals = OrderlyEnd::await_signals()?;
        let draw_at = Some(Instant::now());
        Ok(Self { globals, state, link: Some(link), linking, sender, answers, terminal, form, signals, draw_at })
    }

    /// Until the user quits, a signal comes, or the terminal is gone. Returns the exit status.
    async fn watch(&mut self) -> anyhow::Result<u8> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.send_due_requests();
            // All of these are cancel-safe.
            let happening = tokio::select! {
                biased;
                status = self.signals.next() => Happening::Signal(status),
                event = next_event(&mut self.terminal) => Happening::Terminal(event),
                () = sleep_until(self.draw_at.unwrap_or_else(Instant::now)), if self.draw_at.is_some() => Happening::Draw,
                item = next_item(&mut self.link) => Happening::Daemon(item),
                link = self.linking.done() => Happening::Linked(link),
                filled = self.form.done() => Happening::Form(filled),
                Some(answer) = self.answers.recv() => Happening::Answer(answer),
                _ = tick.tick() => Happening::Tick,
            };
            let is_draw = matches!(happening, Happening::Draw);
            let at_once = matches!(happening, Happening::Terminal(_) | Happening::Form(_));
            if let Some(status) = self.take(happening)? {
                return Ok(status);
            }
            if at_once {
                self.draw_at = Some(Instant::now());
            } else if !is_draw {
                self.draw_at.get_or_insert_with(|| Instant::now() + FRAME);
            }
        }
    }

    /// The exit status, if it is the end.
    fn take(&mut self, happening: Happening) -> anyhow::Result<Option<u8>> {
        match happening {
            Happening::Signal(status) => return Ok(Some(status)),
            Happening::Terminal(None) => return Ok(Some(OK)),
            Happening::Terminal(Some(event)) => {
                let action = match event {
                    Event::Key(key) => self.state.press(key),
                    Event::Mouse(mouse) => {
                        self.state.click(mouse);
                        None
                    }
                    Event::Paste(text) => {
                        self.state.paste(&text);
                        None
                    }
                    Event::Resize(..) | Event::FocusGained | Event::FocusLost => None,
                };
                if let Some(action) = action {
                    return self.perform(action);
                }
            }
            Happening::Draw => {
                self.draw_at = None;
                if let Some(terminal) = &mut self.terminal {
                    terminal.draw(&mut self.state)?;
                }
            }
            Happening::Daemon(Ok(item)) => match item {
                DaemonItem::Event(event) => self.state.event(event),
                DaemonItem::Permission(event) => self.state.permission(event),
                DaemonItem::Question(event) => self.state.question(event),
            },
            Happening::Daemon(Err(_)) => {
                // Answers of the old daemon are dropped with the channel.
                (self.sender, self.answers) = mpsc::channel(32);
                self.link = None;
                self.state.lost();
                self.linking.begin(self.globals);
            }
            Happening::Linked(Ok(link)) => {
                self.link = Some(link);
                self.state.connected();
            }
            Happening::Linked(Err(error)) => {
                self.state.not_connected(&error);
                self.linking.begin(self.globals);
            }
            Happening::Form(filled) => {
                self.terminal = Some(ScreenTerminal::open(self.state.mouse)?);
                match filled {
                    Ok(Some(request)) => self.send(request),
                    Ok(None) => {}
                    Err(error) => self.state.take(ScreenAnswer::Failed(format!("{error:#}"))),
                }
            }
            Happening::Answer(answer) => self.state.take(answer),
            Happening::Tick => self.state.tick(),
        }
        Ok(None)
    }

    /// The exit status, if it is the end.
    fn perform(&mut self, action: ScreenAction) -> anyhow::Result<Option<u8>> {
        match action {
            ScreenAction::Quit => return Ok(Some(OK)),
            ScreenAction::StartDaemon => self.linking.begin_with_start(self.globals),
            ScreenAction::Copy(text) => {
                if let Some(terminal) = &mut self.terminal {
                    terminal.copy(&text)?;
                }
            }
            ScreenAction::CaptureMouse(on) => {
                if let Some(terminal) = &mut self.terminal {
                    terminal.capture_mouse(on)?;
                }
            }
            ScreenAction::CallForm(tool) => {
                self.terminal = None;
                self.form.begin(move || forms::call(&tool));
            }
            ScreenAction::QuestionForm(question) => {
                self.terminal = None;
                self.form.begin(move || forms::answer(&question));
            }
            ScreenAction::Request(request) => self.send(request),
        }
        Ok(None)
    }

    fn send(&mut self, request: Request) {
        match &self.link {
            Some(link) => action::send(self.globals, link.client(), request, &self.sender),
            None => self.state.take(ScreenAnswer::Failed("there is no daemon to ask".to_owned())),
        }
    }

    fn send_due_requests(&mut self) {
        let Some(link) = &self.link else { return };
        for what in self.state.claim_outdated() {
            fetch::start(link.client(), what, &self.sender);
        }
        if let Some(request) = self.state.claim_details() {
            action::send(self.globals, link.client(), request, &self.sender);
        }
    }
}

async fn next_event(terminal: &mut Option<ScreenTerminal>) -> Option<Event> {
    match terminal {
        Some(terminal) => terminal.next_event().await,
        None => std::future::pending().await,
    }
}

async fn next_item(link: &mut Option<ScreenLink>) -> anyhow::Result<DaemonItem> {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}
