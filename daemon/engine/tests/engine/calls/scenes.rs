//! Frontends that come, read, answer and go in any order, and calls that ask meanwhile.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;
use toold_engine::asks::AskSubscription;
use toold_proto::permission::{Action, Ask, PermissionEvent, ReplyPermission, Scope};

use crate::calls::asks::{answer, bash, fixture};
use crate::calls::test_engine::settle;

#[derive(Clone, Debug)]
enum SceneStep {
    Call(u8),
    Cancel(u8),
    Come(u8),
    Go(u8),
    Read(u8),
    Reply(u8, bool, u8),
    Wait(u8),
}

fn step() -> impl Strategy<Value = SceneStep> {
    prop_oneof![
        (0u8..4).prop_map(SceneStep::Call),
        (0u8..8).prop_map(SceneStep::Cancel),
        (0u8..3).prop_map(SceneStep::Come),
        (0u8..3).prop_map(SceneStep::Go),
        (0u8..3).prop_map(SceneStep::Read),
        (0u8..3, any::<bool>(), 0u8..3).prop_map(|(who, yes, scope)| SceneStep::Reply(who, yes, scope)),
        (0u8..15).prop_map(SceneStep::Wait),
    ]
}

#[derive(Default)]
struct Frontend {
    subscription: Option<AskSubscription>,
    /// What it shows to its person.
    shown: Vec<Ask>,
}

impl Frontend {
    fn read(&mut self) {
        let Some(subscription) = &mut self.subscription else { return };
        while let Some(news) = subscription.try_next() {
            match news {
                PermissionEvent::Asked { request } => {
                    // Others wait for the answer of one that is known.
                    match self.shown.iter_mut().find(|ask| ask.request_id == request.request_id) {
                        Some(known) => *known = *request,
                        None => self.shown.push(*request),
                    }
                }
                PermissionEvent::Resolved(end) => {
                    let at = self.shown.iter().position(|ask| ask.request_id == end.request_id);
                    self.shown.remove(at.expect("only what was shown ends"));
                }
            }
        }
    }
}

async fn play(steps: Vec<SceneStep>) {
    let fixture = fixture();
    let mut frontends: [Frontend; 3] = Default::default();
    let mut calls = Vec::new();
    for step in steps {
        match step {
            SceneStep::Call(line) => {
                let call = fixture.prepare("bash", bash(&format!("do {line}")));
                calls.push((call.cancel.clone(), fixture.start(call)));
            }
            SceneStep::Cancel(which) => {
                if let Some((cancel, _)) = calls.get(usize::from(which)) {
                    cancel.cancel();
                }
            }
            SceneStep::Come(who) => {
                let frontend = &mut frontends[usize::from(who)];
                *frontend = Frontend { subscription: Some(fixture.frontend()), shown: Vec::new() };
            }
            SceneStep::Go(who) => frontends[usize::from(who)] = Frontend::default(),
            SceneStep::Read(who) => frontends[usize::from(who)].read(),
            SceneStep::Reply(who, yes, scope) => {
                if let Some(ask) = frontends[usize::from(who)].shown.first() {
                    let scope = [Scope::Once, Scope::Session, Scope::Always][usize::from(scope)];
                    let action = if yes { Action::Allow } else { Action::Deny };
                    let _ = fixture.reply(ReplyPermission { scope: Some(scope), ..answer(ask, action) });
                }
            }
            SceneStep::Wait(seconds) => sleep(Duration::from_secs(seconds.into())).await,
        }
        settle().await;
        // After all is read, every frontend shows what is pending, as it is now, and nothing else.
        for frontend in frontends.iter_mut().filter(|frontend| frontend.subscription.is_some()) {
            let pending = fixture.engine.asks.pending();
            frontend.read();
            assert_eq!(frontend.shown, pending);
        }
    }
    drop(frontends);
    for (_, call) in calls {
        // Ends by itself, ten seconds after the last frontend left.
        let _ = call.await.unwrap();
    }
    assert!(fixture.engine.asks.pending().is_empty(), "stuck");
    let kinds = fixture.kinds();
    let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!(count("permission.asked"), count("permission.resolved"));
    fixture.records_are_closed();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_ask_is_lost_doubled_or_stuck(steps in prop::collection::vec(step(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
