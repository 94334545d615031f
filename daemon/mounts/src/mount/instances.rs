//! The processes of a mount that not all sessions share: one for each project, or one for each session.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::time::Instant;
use toold_engine::session::Session;
use toold_proto::mcp::InstanceScope;

use super::{MountPhase, MountedSource};
use crate::adapter::{InstanceOwner, MountAdapter};

impl<A: MountAdapter> MountedSource<A> {
    /// The mount that serves the calls of this session: this one, or an instance of it, which is started if needed.
    ///
    /// # Errors
    /// So many instances run already, as a sentence for a model.
    pub(crate) fn for_session(self: &Arc<Self>, session: &Session) -> Result<Arc<Self>, String> {
        let owner = match self.config.instances {
            InstanceScope::Shared => return Ok(self.clone()),
            InstanceScope::Project => InstanceOwner::Project(session.project().to_owned()),
            InstanceScope::Session => InstanceOwner::Session(session.id.clone()),
        };
        let mut instances = self.instances.lock();
        instances.retain(|kept, instance| {
            let is_kept = *kept == owner || !instance.is_over();
            if !is_kept {
                instance.retire();
            }
            is_kept
        });
        if let Some(instance) = instances.get(&owner).filter(|instance| !instance.retired.is_cancelled()) {
            if !instance.is_live() {
                self.make_room(&instances)?;
                instance.start_if_due();
            }
            return Ok(instance.clone());
        }
        self.make_room(&instances)?;
        let supervisor = self.supervisor.upgrade().ok_or("the daemon is stopping")?;
        let retired = self.retired.child_token();
        let mut instance = Self::with_catalog(&supervisor, self.config.clone(), self.catalog.clone(), retired.clone());
        instance.counts = self.counts.clone();
        instance.owner = Some(owner.clone());
        let instance = Arc::new(instance);
        instance.start_if_due();
        if let InstanceOwner::Session(_) = owner {
            let (closed, mount) = (session.closed.clone(), Arc::downgrade(self));
            let (owner, ended) = (owner.clone(), Arc::downgrade(&instance));
            supervisor.tasks.spawn(async move {
                tokio::select! {
                    () = retired.cancelled() => {}
                    () = closed.cancelled() => {
                        retired.cancel();
                        forget(&mount, &owner, &ended);
                    }
                }
            });
        }
        instances.insert(owner, instance.clone());
        Ok(instance)
    }

    /// # Errors
    /// The maximum number of instances runs.
    fn make_room(&self, instances: &BTreeMap<InstanceOwner, Arc<Self>>) -> Result<(), String> {
        let live = instances.values().filter(|instance| instance.is_live()).count();
        if live < self.config.max_instances {
            return Ok(());
        }
        // For whom is not told to a model: these are sessions and projects of others.
        Err(format!(
            "{} runs for {live} other sessions or projects already, as many as its max_instances allows: close a session that \
             uses it (`toolctl mcp servers` shows them), wait until one is idle for its idle_timeout_ms, or raise max_instances",
            self.label(),
        ))
    }

    /// Ends all instances; the next calls start others.
    pub(super) async fn end_instances(&self) {
        let instances: Vec<Arc<Self>> = std::mem::take(&mut *self.instances.lock()).into_values().collect();
        for instance in instances {
            instance.halt().await;
            instance.retire();
        }
    }

    /// Whether it has a process or is about to have one.
    fn is_live(&self) -> bool {
        match &*self.phase.borrow() {
            MountPhase::Starting | MountPhase::Running(_) => true,
            MountPhase::Stopped | MountPhase::Failed { .. } => false,
        }
    }

    /// Whether nothing is lost with it: no process, no call that waits for one, and no failure to remember.
    fn is_over(self: &Arc<Self>) -> bool {
        let has_ended = match &*self.phase.borrow() {
            MountPhase::Stopped => true,
            MountPhase::Failed { retry_at, .. } => *retry_at <= Instant::now(),
            MountPhase::Starting | MountPhase::Running(_) => false,
        };
        // A call holds it too.
        has_ended && Arc::strong_count(self) == 1
    }
}

fn forget<A: MountAdapter>(mount: &Weak<MountedSource<A>>, owner: &InstanceOwner, ended: &Weak<MountedSource<A>>) {
    let (Some(mount), Some(ended)) = (mount.upgrade(), ended.upgrade()) else { return };
    let mut instances = mount.instances.lock();
    if instances.get(owner).is_some_and(|kept| Arc::ptr_eq(kept, &ended)) {
        instances.remove(owner);
    }
}
