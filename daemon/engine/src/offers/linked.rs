//! Resources that results of tools link to. A source need not list them, so the session knows whose they are.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::offers::{Resource, ResourceAddress};
use crate::session::Session;

/// Links of one session; the oldest are forgotten beyond it.
const MAX_LINKS: usize = 1_000;

#[derive(Default)]
pub(super) struct LinkedResources(Mutex<VecDeque<Arc<Resource>>>);

impl LinkedResources {
    pub(super) fn find(&self, uri: &str) -> Option<Arc<Resource>> {
        self.0.lock().iter().rev().find(|resource| is_at(resource, uri)).cloned()
    }
}

/// From now on the session can read this resource, unless a source lists another one of the same URI.
pub fn link(session: &Session, resource: Arc<Resource>) {
    let linked = session.slot::<LinkedResources>();
    let mut links = linked.0.lock();
    links.retain(|other| other.address != resource.address);
    if links.len() >= MAX_LINKS {
        links.pop_front();
    }
    links.push_back(resource);
}

fn is_at(resource: &Resource, uri: &str) -> bool {
    matches!(&resource.address, ResourceAddress::Uri(own) if own == uri)
}
