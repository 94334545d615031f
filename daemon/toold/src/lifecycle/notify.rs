//! `[notify]`: tells a person outside of all clients that a request for permission or a question waits.

mod buttons;
mod message;
mod ways;

pub(crate) use buttons::ButtonRefused;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::asks::AskSubscription;
use toold_engine::events::EventSelection;
use toold_engine::questions::QuestionSubscription;
use toold_host::secrets::SecretStore;
use toold_proto::notify::{NotifyReport, NotifyResult};

use crate::config::active_config::ActiveConfig;
use crate::lifecycle::notify::buttons::ButtonCodes;
use crate::lifecycle::notify::message::{NotificationText, UnansweredPrompt};
use crate::lifecycle::notify::ways::NotifyWays;
use crate::lifecycle::page_access::PageAddress;

/// Requests that become due within this time are reported together.
const TOGETHER: Duration = Duration::from_secs(2);
/// The least time between two notifications, so that requests which keep coming are reported together; `after` when that
/// is less.
const PAUSE: Duration = Duration::from_secs(10);

/// Watches for requests that nobody answers.
pub struct Notifier {
    engine: Arc<Engine>,
    settings: ArcSwapOption<NotifySettings>,
    /// The settings have changed.
    changed: tokio::sync::Notify,
    /// Counts as a client that can answer, because the person who is notified can.
    answering: Mutex<Option<(AskSubscription, QuestionSubscription)>>,
    /// Why each key of the section failed the last time.
    failures: Mutex<BTreeMap<&'static str, String>>,
    codes: ButtonCodes,
    page: Mutex<Option<PageAddress>>,
}

struct NotifySettings {
    after: Duration,
    link: Option<String>,
    /// The names by which browsers reach the page, see [`PageAddress::origin`].
    page_hosts: Vec<String>,
    ways: NotifyWays,
}

/// A request since it was first seen.
struct SeenPrompt {
    since: Instant,
    is_reported: bool,
}

impl Notifier {
    /// Follows the configuration, and watches until `stop` fires.
    pub fn start(
        engine: &Arc<Engine>,
        config: &Arc<ActiveConfig>,
        secrets: &Arc<SecretStore>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let notifier = Arc::new(Self {
            engine: engine.clone(),
            settings: ArcSwapOption::empty(),
            changed: tokio::sync::Notify::new(),
            answering: Mutex::default(),
            failures: Mutex::default(),
            codes: ButtonCodes::default(),
            page: Mutex::default(),
        });
        let (configured, secrets) = (notifier.clone(), secrets.clone());
        config.follow(move |active| configured.configure(active, &secrets));
        let watching = notifier.clone();
        engine.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => drop(watching.answering.lock().take()),
                () = watching.watch() => {}
            }
        });
        notifier
    }

    /// Notifications link to the page at this address from now on, unless the configuration names another.
    pub(crate) fn set_page(&self, address: PageAddress) {
        *self.page.lock() = Some(address);
    }

    /// Failures of the last notifications, as sentences for the user.
    pub fn problems(&self) -> Vec<String> {
        let failures = self.failures.lock();
        failures.iter().map(|(key, error)| format!("notify.{key}: {error}")).collect()
    }

    /// Sends a notification in all ways that are configured.
    pub async fn test(&self) -> NotifyReport {
        let Some(settings) = self.settings.load_full() else { return NotifyReport::default() };
        let no_allow = self.may_allow(&settings).await.err();
        let text = NotificationText::test(self.link(&settings).as_deref(), no_allow.as_deref());
        NotifyReport { results: self.send(&settings, &text).await }
    }

    /// Answers the requests of a notification by the code of one of its buttons, and says what happened.
    pub(crate) fn press(&self, code: &str) -> Result<String, ButtonRefused> {
        self.codes.press(&self.engine, code)
    }

    fn configure(&self, active: &ActiveConfig, secrets: &Arc<SecretStore>) {
        let config = &active.loaded().config.notify;
        let ways = config.is_on().then(|| NotifyWays::new(config, &active.options, secrets)).transpose();
        // The errors of the configuration say why.
        let ways = ways.ok().flatten();
        *self.answering.lock() = (ways.is_some() && config.wait)
            .then(|| (self.engine.asks.subscribe(true, None), self.engine.questions.subscribe(None)));
        let page_hosts = active.loaded().config.page.hosts.clone();
        let (after, link) = (config.after.0, config.link.clone());
        let settings = ways.map(|ways| NotifySettings { after, link, page_hosts, ways });
        self.settings.store(settings.map(Arc::new));
        self.failures.lock().clear();
        self.changed.notify_one();
    }

    async fn watch(self: &Arc<Self>) {
        let mut events = self.engine.events.subscribe(EventSelection::NoCalls, None).receiver;
        let mut seen: BTreeMap<String, SeenPrompt> = BTreeMap::new();
        let mut pause_until = Instant::now();
        loop {
            let pending = self.pending();
            let now = Instant::now();
            seen.retain(|id, _| pending.iter().any(|prompt| prompt.request_id == *id));
            for prompt in &pending {
                seen.entry(prompt.request_id.clone()).or_insert(SeenPrompt { since: now, is_reported: false });
            }
            let settings = self.settings.load_full();
            let waiting = seen.values().filter(|seen| !seen.is_reported).map(|seen| seen.since).min();
            let due = settings.as_ref().zip(waiting).map(|(settings, since)| pause_until.max(since + settings.after));
            if let (Some(settings), true) = (&settings, due.is_some_and(|due| due <= now)) {
                let is_due = |seen: &SeenPrompt| !seen.is_reported && seen.since + settings.after <= now + TOGETHER;
                let reported: Vec<UnansweredPrompt> =
                    pending.into_iter().filter(|prompt| is_due(&seen[&prompt.request_id])).collect();
                for prompt in &reported {
                    if let Some(seen) = seen.get_mut(&prompt.request_id) {
                        seen.is_reported = true;
                    }
                }
                pause_until = now + PAUSE.min(settings.after);
                self.report(settings.clone(), &reported);
                continue;
            }
            let is_of_prompts = |kind: &str| kind.starts_with("permission.") || kind.starts_with("question.");
            loop {
                tokio::select! {
                    event = events.recv() => match event {
                        Ok(event) if !is_of_prompts(event.body.kind()) => {}
                        Ok(_) | Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return,
                    },
                    () = self.changed.notified() => break,
                    () = sleep_until(due.unwrap_or(now)), if due.is_some() => break,
                }
            }
        }
    }

    /// The requests that wait, the oldest first.
    fn pending(&self) -> Vec<UnansweredPrompt> {
        let asks = self.engine.asks.pending().into_iter().map(|ask| {
            let fits_one_line = self.engine.asks.fits_one_line(&ask.request_id);
            UnansweredPrompt::of_ask(ask, fits_one_line)
        });
        asks.chain(self.engine.questions.pending().into_iter().map(UnansweredPrompt::from)).collect()
    }

    fn report(self: &Arc<Self>, settings: Arc<NotifySettings>, prompts: &[UnansweredPrompt]) {
        let text = NotificationText::of(prompts, self.link(&settings).as_deref());
        let notifier = self.clone();
        self.engine.tasks.spawn(async move {
            notifier.send(&settings, &text).await;
        });
    }

    async fn send(&self, settings: &NotifySettings, text: &NotificationText) -> Vec<NotifyResult> {
        let buttons = self.buttons(settings, text).await;
        let results = settings.ways.send(text, buttons.as_ref()).await;
        let mut failures = self.failures.lock();
        for result in &results {
            match &result.error {
                None => drop(failures.remove(result.way.as_str())),
                Some(error) => {
                    tracing::warn!(way = result.way.as_str(), error, "a notification was not sent");
                    failures.insert(result.way.as_str(), error.clone());
                }
            }
        }
        results
    }

    /// Those of a notification, if other machines can reach the page that takes the answers.
    async fn buttons(&self, settings: &NotifySettings, text: &NotificationText) -> Option<Value> {
        let address = (*self.page.lock())?;
        let is_reachable = settings.link.is_some() || !address.address.ip().is_loopback();
        let page = self.link(settings).filter(|_| is_reachable)?;
        let may_allow = text.allowable.is_some() && self.may_allow(settings).await.unwrap_or(false);
        Some(self.codes.make(text, &page, may_allow))
    }

    /// See [`NotifyWays::may_allow`]; a reason is reported as a problem.
    async fn may_allow(&self, settings: &NotifySettings) -> Result<bool, String> {
        const KEY: &str = "allow";
        let checked = settings.ways.may_allow().await;
        match &checked {
            Ok(_) => drop(self.failures.lock().remove(KEY)),
            Err(error) => {
                tracing::warn!(error, "a notification has no button that allows");
                self.failures.lock().insert(KEY, error.clone());
            }
        }
        checked
    }

    fn link(&self, settings: &NotifySettings) -> Option<String> {
        let of_page = |page: PageAddress| page.origin(&settings.page_hosts);
        settings.link.clone().or_else(|| self.page.lock().map(of_page))
    }
}
