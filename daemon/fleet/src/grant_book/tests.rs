//! The book of grants, without a broker: which entries count, and what outlives the process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use toold_engine::Engine;
use toold_engine::time::rfc3339;
use toold_proto::permission::Action;
use toold_proto::tool::Category;

use crate::counts::FleetCounts;
use crate::grant_book::term::boot_time;
use crate::grant_book::{FleetGrantBook, ReadProgress};
use crate::keys::{KeyOwner, SigningKey};
use crate::messages::{FleetGrant, FleetRule, GrantOrigin};
use crate::names::FleetName;
use crate::settings::{ConnectionSettings, FleetSettings, PersonMember, Roster};
use crate::signed::{Message, MessageRefusal, SignedKind, now_ms, random_id, seal};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);

fn name(text: &str) -> FleetName {
    FleetName::parse(text).unwrap()
}

/// A daemon, and the keys of persons. `carl` does not decide there.
struct Desk {
    dir: tempfile::TempDir,
    engine: Arc<Engine>,
    book: Arc<FleetGrantBook>,
    counts: FleetCounts,
    keys: BTreeMap<&'static str, SigningKey>,
    deciding: Vec<&'static str>,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = ["anna", "bob", "carl"].map(|person| (person, SigningKey::generate(KeyOwner::Person)));
        let engine = Arc::new(Engine::new("tests"));
        let book = FleetGrantBook::new(&engine, dir.path().join("grants.json"));
        let counts = FleetCounts::default();
        let desk = Self { dir, engine, book, counts, keys: keys.into(), deciding: vec!["anna", "bob"] };
        desk.join();
        desk
    }

    fn settings(&self) -> FleetSettings {
        let member = |(person, key): (&&str, &SigningKey)| {
            let decides = self.deciding.contains(person);
            (name(person), PersonMember { key: key.public().clone(), decides })
        };
        FleetSettings {
            connection: ConnectionSettings {
                name: name("build"),
                servers: Vec::new(),
                credentials: None,
                ca_file: None,
                key_file: "key".into(),
                person: None,
                state_dir: self.dir.path().to_owned(),
            },
            roster: Roster { daemons: BTreeMap::new(), people: self.keys.iter().map(member).collect() },
            labels: Vec::new(),
            max_calls: 1,
            offer: None,
            withhold: Vec::new(),
            cwd: "/".into(),
            lease: HOUR,
            audit: false,
        }
    }

    fn join(&self) {
        self.book.configure(&Some(Ok(self.settings())));
    }

    /// The broker shows these entries, and no others.
    fn show(&self, entries: &[&(String, Vec<u8>)]) {
        self.book.begin_reading();
        for (key, text) in entries {
            self.book.take_over(key, text, &self.counts);
        }
        self.book.end_reading(&self.counts);
        self.book.save().unwrap();
        self.book.lease.renew(boot_time());
        self.book.progress.send_replace(ReadProgress { is_synced: true, revision: 1 });
    }

    fn change(&self, (key, text): &(String, Vec<u8>)) {
        self.book.take_over(key, text, &self.counts);
        self.book.save().unwrap();
    }

    /// As after `kill -9`.
    fn start_again(&mut self) {
        self.engine = Arc::new(Engine::new("later"));
        self.book = FleetGrantBook::new(&self.engine, self.dir.path().join("grants.json"));
        self.counts = FleetCounts::default();
        self.join();
    }

    /// The patterns of the grants that the engine decides with.
    fn valid(&self) -> Vec<String> {
        let mut valid: Vec<String> =
            self.engine.grants.snapshot().iter().map(|grant| grant.pattern.as_str().to_owned()).collect();
        valid.sort();
        valid
    }

    fn refused(&self) -> Vec<(MessageRefusal, u64)> {
        self.counts.refused().filter(|(_, number)| *number > 0).collect()
    }

    fn signed(&self, person: &str, change: impl FnOnce(&mut FleetGrant)) -> (String, Vec<u8>) {
        self.signed_at(person, now_ms(), change)
    }

    fn signed_at(&self, person: &str, at: u64, change: impl FnOnce(&mut FleetGrant)) -> (String, Vec<u8>) {
        let mut grant = allow("g1", "ls");
        change(&mut grant);
        let key = format!("{person}.{}", grant.id);
        let (kind, from, to) = (SignedKind::Grant, name(person), key.clone());
        let message = Message { kind, from, to, at, until: None, nonce: random_id(), body: grant };
        (key, seal(&self.keys[person], &message))
    }
}

fn allow(id: &str, pattern: &str) -> FleetGrant {
    let now = SystemTime::now();
    FleetGrant {
        id: id.to_owned(),
        rule: FleetRule {
            action: Action::Allow,
            category: Category::Shell,
            pattern: pattern.to_owned(),
            tools: None,
            daemons: None,
        },
        origin: GrantOrigin { daemon: name("laptop"), made_at: rfc3339(now) },
        expiry: Some(rfc3339(now + HOUR)),
        revoked: false,
    }
}

/// A denying grant without an end.
fn deny(grant: &mut FleetGrant) {
    grant.id = "d1".to_owned();
    grant.rule.action = Action::Deny;
    grant.rule.pattern = "rm *".to_owned();
    grant.expiry = None;
}

#[test]
fn each_entry_that_does_not_count_is_refused_for_its_reason() {
    type Change = fn(&mut FleetGrant);
    let cases: &[(&str, &str, Change, Option<MessageRefusal>)] = &[
        ("a grant", "anna", |_| (), None),
        ("of somebody who does not decide", "carl", |_| (), Some(MessageRefusal::NotPermitted)),
        ("for this daemon", "anna", |grant| grant.rule.daemons = Some(vec![name("build")]), None),
        ("without an end", "anna", |grant| grant.expiry = None, Some(MessageRefusal::NotPermitted)),
        (
            "for too long",
            "anna",
            |grant| grant.expiry = Some(rfc3339(SystemTime::now() + 30 * DAY + HOUR)),
            Some(MessageRefusal::NotPermitted),
        ),
        (
            "that has expired",
            "anna",
            |grant| {
                grant.origin.made_at = rfc3339(SystemTime::now() - 2 * HOUR);
                grant.expiry = Some(rfc3339(SystemTime::now() - HOUR));
            },
            Some(MessageRefusal::Expired),
        ),
        ("with a wrong pattern", "anna", |grant| grant.rule.pattern = String::new(), Some(MessageRefusal::Malformed)),
        (
            "of a wrong tool",
            "anna",
            |grant| grant.rule.tools = Some(vec!["no tool".into()]),
            Some(MessageRefusal::Malformed),
        ),
        ("with a wrong end", "anna", |grant| grant.expiry = Some("soon".into()), Some(MessageRefusal::Malformed)),
        ("made at no time", "anna", |grant| grant.origin.made_at = "once".into(), Some(MessageRefusal::Malformed)),
        (
            "with an id of a grant of this daemon",
            "anna",
            |grant| grant.id = "grant_1".into(),
            Some(MessageRefusal::Malformed),
        ),
        ("with an id of many parts", "anna", |grant| grant.id = "a.b".into(), Some(MessageRefusal::Malformed)),
    ];
    for (what, person, change, expected) in cases {
        let desk = Desk::new();
        desk.show(&[]);
        desk.change(&desk.signed(person, change));
        let refused: Vec<(MessageRefusal, u64)> = expected.iter().map(|refusal| (*refusal, 1)).collect();
        assert_eq!(desk.refused(), refused, "{what}: {:?}", desk.counts.last_refused());
        assert_eq!(desk.valid().len(), usize::from(expected.is_none()), "{what}");
    }
}

#[test]
fn a_grant_counts_at_its_own_key_by_its_own_person_alone() {
    let desk = Desk::new();
    desk.show(&[]);
    let (key, text) = desk.signed("anna", |_| ());
    let mut altered = text.clone();
    let at = altered.windows(4).position(|part| part == b"\"ls\"").unwrap();
    altered[at + 1] = b'm';
    let long = vec![b' '; 100_000];
    for (key, text, expected) in [
        ("anna.g2", &text, MessageRefusal::Misdirected),
        ("bob.g1", &text, MessageRefusal::Misdirected),
        (key.as_str(), &altered, MessageRefusal::BadSignature),
        (key.as_str(), &long, MessageRefusal::Malformed),
    ] {
        let before = desk.counts.refused().find(|(refusal, _)| *refusal == expected).unwrap().1;
        desk.book.take_over(key, text, &desk.counts);
        let after = desk.counts.refused().find(|(refusal, _)| *refusal == expected).unwrap().1;
        assert_eq!((after - before, desk.valid().len()), (1, 0), "{key} {expected:?}");
    }
}

#[test]
fn a_grant_for_other_daemons_is_known_and_not_valid_here() {
    let desk = Desk::new();
    desk.show(&[&desk.signed("anna", |grant| grant.rule.daemons = Some(vec![name("laptop")]))]);
    assert_eq!(desk.valid(), [""; 0]);
    assert_eq!(desk.book.list()[0].why_not.as_deref(), Some("it is for other daemons"));
}

#[test]
fn a_revocation_is_final() {
    let mut desk = Desk::new();
    let grant = desk.signed("anna", |_| ());
    desk.show(&[&grant]);
    assert_eq!(desk.valid(), ["ls"]);
    // Whatever the rule says: the revocation of a rule that a later version wrote counts.
    let revoke = |grant: &mut FleetGrant| {
        grant.revoked = true;
        grant.rule.pattern = String::new();
    };
    desk.change(&desk.signed("bob", revoke));
    assert_eq!(desk.valid(), ["ls"], "bob has revoked a grant of his own");
    desk.change(&desk.signed("anna", revoke));
    assert_eq!(desk.valid(), [""; 0]);
    assert_eq!(desk.refused(), []);
    let newer = desk.signed_at("anna", now_ms() + 1000, |_| ());
    for start_again in [false, true] {
        if start_again {
            desk.start_again();
            // The bucket was wiped.
            desk.show(&[]);
        }
        desk.change(&grant);
        desk.change(&newer);
        desk.show(&[&grant]);
        assert_eq!(desk.valid(), [""; 0]);
        assert_eq!(desk.refused(), [(MessageRefusal::Replayed, 3)]);
    }
}

#[test]
fn revocations_are_forgotten_when_the_grant_has_been_over_for_long() {
    let mut desk = Desk::new();
    let revoked = |id: &'static str, ended: Option<Duration>| {
        desk.signed("anna", move |grant| {
            grant.id = id.to_owned();
            grant.revoked = true;
            grant.expiry = ended.map(|ended| rfc3339(SystemTime::now() - ended));
        })
    };
    desk.show(&[&revoked("old", Some(8 * DAY)), &revoked("new", Some(6 * DAY)), &revoked("endless", None)]);
    desk.start_again();
    let known = |id: &str| desk.book.find(&name("anna"), id).is_some();
    assert_eq!([known("old"), known("new"), known("endless")], [false, true, true]);
}

#[test]
fn denying_grants_hold_from_the_start_and_allowing_ones_once_they_were_shown() {
    let mut desk = Desk::new();
    let (granted, denied) = (desk.signed("anna", |_| ()), desk.signed("anna", deny));
    desk.show(&[&granted, &denied]);
    assert_eq!(desk.valid(), ["ls", "rm *"]);
    desk.start_again();
    assert_eq!(desk.valid(), ["rm *"]);
    desk.show(&[&granted, &denied]);
    assert_eq!(desk.valid(), ["ls", "rm *"]);
    // Without a valid `[fleet]`, nobody can say whose denials count.
    desk.engine = Arc::new(Engine::new("later"));
    desk.book = FleetGrantBook::new(&desk.engine, desk.dir.path().join("grants.json"));
    desk.book.configure(&Some(Err("servers: a mistake".to_owned())));
    assert_eq!(desk.valid(), ["rm *"]);
    desk.book.configure(&None);
    assert_eq!(desk.valid(), [""; 0]);
}

#[test]
fn what_somebody_deletes_without_a_signature_ends_if_it_allows_and_holds_if_it_denies() {
    let mut desk = Desk::new();
    let (granted, denied) = (desk.signed("anna", |_| ()), desk.signed("anna", deny));
    desk.show(&[&granted, &denied]);
    desk.book.note_deleted(&granted.0, &desk.counts);
    assert_eq!((desk.valid(), desk.refused()), (vec!["rm *".to_owned()], vec![]));
    let (_, deleted) = desk.book.find(&name("anna"), "g1").unwrap();
    assert!(deleted.why_not.as_deref().unwrap().contains("deleted"), "{deleted:?}");
    desk.book.note_deleted(&denied.0, &desk.counts);
    assert_eq!((desk.valid(), desk.refused()), (vec!["rm *".to_owned()], vec![(MessageRefusal::NotPermitted, 1)]));
    desk.change(&granted);
    assert_eq!(desk.valid(), ["ls", "rm *"]);
    // The whole bucket.
    desk.show(&[]);
    assert_eq!((desk.valid(), desk.refused()), (vec!["rm *".to_owned()], vec![(MessageRefusal::NotPermitted, 2)]));
    desk.start_again();
    desk.show(&[]);
    assert_eq!(desk.valid(), ["rm *"]);
    desk.change(&desk.signed("anna", |grant| {
        deny(grant);
        grant.revoked = true;
    }));
    assert_eq!(desk.valid(), [""; 0]);
    desk.start_again();
    assert_eq!(desk.valid(), [""; 0]);
}

#[test]
fn an_older_state_does_not_replace_a_newer_one() {
    let desk = Desk::new();
    let older = desk.signed_at("anna", 1000, |grant| grant.rule.pattern = "old".into());
    desk.show(&[&desk.signed_at("anna", 2000, |grant| grant.rule.pattern = "new".into())]);
    desk.change(&older);
    assert_eq!((desk.valid(), desk.refused()), (vec!["new".to_owned()], vec![(MessageRefusal::Replayed, 1)]));
}

#[test]
fn those_who_decide_no_longer_have_no_grants() {
    let mut desk = Desk::new();
    let entries = [
        desk.signed("anna", |_| ()),
        desk.signed("anna", deny),
        desk.signed("bob", |grant| grant.rule.pattern = "bob".into()),
    ];
    desk.show(&entries.each_ref());
    assert_eq!(desk.valid(), ["bob", "ls", "rm *"]);
    desk.deciding = vec!["bob"];
    desk.join();
    assert_eq!(desk.valid(), ["bob"]);
    // Somebody else's key under the same name.
    desk.deciding = vec!["anna", "bob"];
    desk.keys.insert("bob", SigningKey::generate(KeyOwner::Person));
    desk.join();
    assert_eq!(desk.valid(), [""; 0]);
    desk.show(&entries.each_ref());
    assert_eq!(
        (desk.valid(), desk.refused()),
        (vec!["ls".into(), "rm *".into()], vec![(MessageRefusal::BadSignature, 1)])
    );
}

#[test]
fn a_damaged_file_is_reported_and_nothing_older_allows_anything() {
    let mut desk = Desk::new();
    let granted = desk.signed("anna", |grant| grant.origin.made_at = rfc3339(SystemTime::now() - HOUR));
    let denied = desk.signed("anna", deny);
    desk.show(&[&granted, &denied]);
    std::fs::write(desk.dir.path().join("grants.json"), "{\"revocations\"").unwrap();
    for _ in 0..2 {
        desk.start_again();
        desk.show(&[&granted, &denied]);
        assert_eq!((desk.valid(), desk.refused()), (vec!["rm *".to_owned()], vec![(MessageRefusal::Replayed, 1)]));
    }
    desk.change(&desk.signed("anna", |grant| grant.id = "g2".into()));
    assert_eq!(desk.valid(), ["ls", "rm *"]);
    assert!(Path::new(&desk.dir.path().join("grants.damaged")).exists());
}

#[test]
fn revocations_take_effect_although_the_disk_is_full() {
    let desk = Desk::new();
    desk.show(&[&desk.signed("anna", |_| ())]);
    // A folder in the place of the new file.
    let blocked = desk.dir.path().join("grants.new");
    std::fs::create_dir(&blocked).unwrap();
    let (key, text) = desk.signed("anna", |grant| grant.revoked = true);
    desk.book.take_over(&key, &text, &desk.counts);
    assert!(desk.book.save().unwrap_err().contains("grants.json"));
    assert_eq!(desk.valid(), [""; 0]);
    std::fs::remove_dir(&blocked).unwrap();
    assert!(desk.book.is_dirty());
    desk.book.save().unwrap();
    assert!(!desk.book.is_dirty());
}

#[test]
fn the_lease_wakes_those_who_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let desk = Desk::new();
        desk.show(&[&desk.signed("anna", |_| ())]);
        let stop = tokio_util::sync::CancellationToken::new();
        let mut changes = desk.engine.policy_changes();
        let task = tokio::spawn(desk.book.clone().follow_lease(stop.clone()));
        tokio::task::yield_now().await;
        changes.borrow_and_update();
        desk.book.lease.set_length(Duration::ZERO);
        desk.book.lease.lose_contact();
        timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
        assert_eq!(desk.valid(), [""; 0]);
        desk.book.lease.renew(boot_time());
        timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
        assert_eq!(desk.valid(), ["ls"]);
        stop.cancel();
        task.await.unwrap();
    });
}
