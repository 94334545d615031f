//! This daemon as a member of its fleet: what all parts of the crate share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toold_engine::Engine;

use crate::broker::Broker;
use crate::counts::FleetCounts;
use crate::directory::Directory;
use crate::foreign_asks::ForeignAsks;
use crate::grant_book::FleetGrantBook;
use crate::host::FleetHost;
use crate::keys::{KeyOwner, PublicKey, SigningKey};
use crate::names::FleetName;
use crate::outgoing::OutgoingCalls;
use crate::own_asks::OwnAsks;
use crate::served_calls::ServedCalls;
use crate::settings::{ConnectionSettings, FleetSettings};
use crate::signed::{Message, MessageRefusal, SignedKind, Verifier, random_id, sign};

pub struct Member {
    pub name: FleetName,
    /// Random, new at each start.
    pub instance: String,
    pub connection: ConnectionSettings,
    pub settings: ArcSwap<FleetSettings>,
    /// Fires when `settings` are others.
    settings_changed: watch::Sender<()>,
    /// See [`MemberRecord::revision`](crate::messages::MemberRecord::revision).
    pub(crate) revision: AtomicU64,
    /// How many tools this daemon offers.
    pub offered: AtomicU64,
    pub broker: Broker,
    pub verifier: Verifier,
    pub counts: FleetCounts,
    pub directory: Directory,
    pub grants: Arc<FleetGrantBook>,
    /// Calls from the fleet that run here.
    pub(crate) served: ServedCalls,
    pub engine: Arc<Engine>,
    pub host: Arc<dyn FleetHost>,
    /// Fires when this daemon leaves the fleet: the daemon stops, or its configuration changes.
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    /// Problems, by the part that has them.
    problems: Mutex<BTreeMap<&'static str, String>>,
    pub(crate) own_asks: tokio::sync::Mutex<OwnAsks>,
    pub(crate) outgoing: OutgoingCalls,
    pub(crate) foreign_asks: Mutex<ForeignAsks>,
    key: SigningKey,
    person: Option<(FleetName, SigningKey)>,
}

/// The member that is current: a new one takes its place when the settings of the connection change.
#[derive(Clone)]
pub struct CurrentMember(watch::Sender<Option<Arc<Member>>>);

impl Default for CurrentMember {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl CurrentMember {
    pub fn get(&self) -> Option<Arc<Member>> {
        self.0.borrow().clone()
    }

    pub(crate) fn set(&self, member: Option<Arc<Member>>) {
        self.0.send_replace(member);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<Member>>> {
        self.0.subscribe()
    }
}

impl Member {
    /// # Errors
    /// When keys or credentials cannot be read, as a sentence for the user.
    pub async fn join(
        settings: FleetSettings,
        grants: Arc<FleetGrantBook>,
        engine: Arc<Engine>,
        host: Arc<dyn FleetHost>,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, String> {
        let connection = settings.connection.clone();
        let key = SigningKey::load(&connection.key_file, KeyOwner::Daemon)?;
        let person = connection.person.as_ref().map(|own| own.load_key(&settings.roster)).transpose()?;
        let broker = Broker::connect(&connection).await?;
        Ok(Arc::new(Self {
            name: connection.name.clone(),
            instance: random_id(),
            verifier: Verifier::new(settings.roster.clone()),
            settings: ArcSwap::from_pointee(settings),
            settings_changed: watch::Sender::new(()),
            revision: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            directory: Directory::load(&connection.state_dir),
            connection,
            broker,
            counts: FleetCounts::default(),
            grants,
            served: ServedCalls::default(),
            engine,
            host,
            stop,
            tasks: TaskTracker::new(),
            problems: Mutex::default(),
            own_asks: tokio::sync::Mutex::default(),
            outgoing: OutgoingCalls::default(),
            foreign_asks: Mutex::default(),
            key,
            person,
        }))
    }

    /// Takes over settings that need no new connection.
    pub fn reconfigure(&self, settings: FleetSettings) {
        self.verifier.replace_roster(settings.roster.clone());
        self.settings.store(settings.into());
        self.settings_changed.send_replace(());
    }

    pub(crate) fn settings_changes(&self) -> watch::Receiver<()> {
        self.settings_changed.subscribe()
    }

    /// Notes that a part does not work, or that it does again.
    pub(crate) fn note_problem(&self, part: &'static str, why: Option<String>) {
        let mut problems = self.problems.lock();
        match why {
            Some(why) => problems.insert(part, why),
            None => problems.remove(part),
        };
    }

    /// Problems of all parts, as sentences.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().iter().map(|(part, why)| format!("{part}: {why}")).collect()
    }

    pub fn key(&self) -> &PublicKey {
        self.key.public()
    }

    /// The person at this machine.
    pub fn person(&self) -> Option<&FleetName> {
        self.person.as_ref().map(|(name, _)| name)
    }

    /// The public key of that person.
    pub fn person_key(&self) -> Option<&PublicKey> {
        self.person.as_ref().map(|(_, key)| key.public())
    }

    /// Whether another daemon knows the key of this one: if not, it answers nothing. True while that is unknown.
    pub(crate) fn is_trusted_by(&self, daemon: &FleetName) -> bool {
        self.directory.find(daemon, |known| known.trusts(&self.name, self.key())).flatten().unwrap_or(true)
    }

    /// A message signed by this daemon.
    pub fn sign<B: Serialize>(&self, kind: SignedKind, to: &str, body: B) -> Vec<u8> {
        sign(&self.key, kind, &self.name, to, body)
    }

    /// A message signed by the person at this machine; `None` when there is none.
    pub fn sign_for_person<B: Serialize>(&self, kind: SignedKind, to: &str, body: B) -> Option<Vec<u8>> {
        self.person.as_ref().map(|(name, key)| sign(key, kind, name, to, body))
    }

    /// # Errors
    /// As [`Verifier::verify`].
    pub fn verify<B: DeserializeOwned>(
        &self,
        bytes: &[u8],
        kind: SignedKind,
        to: &str,
    ) -> Result<Message<B>, MessageRefusal> {
        self.verifier.verify(bytes, kind, to, &self.counts)
    }
}
