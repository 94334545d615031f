//! The buttons of notifications that leave this machine: codes that answer the requests of one notification, in one way.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toold_engine::Engine;
use toold_engine::asks::{Replier, reply};
use toold_proto::permission::{Action, Answerer, ReplyPermission, Scope};

use crate::config::random::random_hex;
use crate::lifecycle::notify::message::{NotificationText, page_of};

/// Codes at one time; a further one takes the place of the oldest.
const MAX_CODES: usize = 256;
/// The name of whoever answers by a button, in the audit log and for other clients.
const BY: &str = "push";

/// The codes of the last notifications, as digests. A code answers nothing but its own requests, each once, so that it may be
/// shown again.
#[derive(Default)]
pub(super) struct ButtonCodes(Mutex<VecDeque<ButtonCode>>);

struct ButtonCode {
    digest: blake3::Hash,
    action: Action,
    requests: Vec<String>,
}

/// Why a button answers nothing, for the person who pressed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ButtonRefused {
    Unknown,
    Ended(String),
}

impl ButtonCodes {
    /// The buttons of a notification in the form of ntfy. `may_allow`: also one that allows, if the requests can be.
    pub(super) fn make(&self, text: &NotificationText, page: &str, may_allow: bool) -> Value {
        let page = page_of(page);
        let button = |label: String, action, requests| {
            let body = self.code(action, requests);
            json!({"action": "http", "label": label, "url": format!("{page}push"), "method": "POST", "body": body,
                "clear": true})
        };
        let mut buttons = Vec::new();
        if let (Some(request), true) = (&text.allowable, may_allow) {
            buttons.push(button("Allow once".to_owned(), Action::Allow, vec![request.clone()]));
        }
        match text.deniable.len() {
            0 => {}
            1 => buttons.push(button("Deny".to_owned(), Action::Deny, text.deniable.clone())),
            many => buttons.push(button(format!("Deny all {many}"), Action::Deny, text.deniable.clone())),
        }
        let link = text.link.as_deref().unwrap_or(&page);
        buttons.push(json!({"action": "view", "label": "Open page", "url": link}));
        buttons.into()
    }

    fn code(&self, action: Action, requests: Vec<String>) -> String {
        let code = random_hex(16);
        let mut codes = self.0.lock();
        if codes.len() == MAX_CODES {
            codes.pop_front();
        }
        codes.push_back(ButtonCode { digest: blake3::hash(code.as_bytes()), action, requests });
        code
    }

    /// Answers the requests of a code, and says what happened.
    pub(super) fn press(&self, engine: &Engine, code: &str) -> Result<String, ButtonRefused> {
        let digest = blake3::hash(code.as_bytes());
        let (action, requests) = {
            let codes = self.0.lock();
            // Digests are compared in constant time.
            let found = codes.iter().find(|code| code.digest == digest).ok_or(ButtonRefused::Unknown)?;
            (found.action, found.requests.clone())
        };
        let replier =
            Replier { by: Answerer { client: Some(BY.to_owned()), connection: 0 }, widest: Scope::Once, session: None };
        let mut answered = 0;
        let mut problem = None;
        for request_id in &requests {
            let answer = ReplyPermission {
                request_id: request_id.clone(),
                action,
                scope: Some(Scope::Once),
                pattern: None,
                message: None,
                expires_in: None,
                all_parts: false,
            };
            match reply(engine, &answer, &replier) {
                Ok(()) => answered += 1,
                Err(error) => problem = Some(error.to_string()),
            }
        }
        let word = if action == Action::Allow { "allowed once" } else { "denied" };
        match (answered, problem) {
            (0, Some(problem)) => Err(ButtonRefused::Ended(problem)),
            (_, Some(problem)) => Ok(format!("{word}: {answered} of {}; {problem}", requests.len())),
            (_, None) => Ok(word.to_owned()),
        }
    }
}
