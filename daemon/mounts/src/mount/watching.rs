//! Keeps a mount connected, and its source reporting, while clients wait for changes of its resources.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};
use toold_engine::offers::watch::{ResourceUpdates, ResourceWatch};

use super::{MountPhase, MountedSource, SourceCall};
use crate::adapter::MountAdapter;

impl<A: MountAdapter> MountedSource<A> {
    /// Has a resource watched; returns when the source reports its changes. Cancel-safe: a watch that is not returned ends.
    ///
    /// # Errors
    /// Why it does not report them, as a sentence for a model.
    pub(crate) async fn watch_resource(
        self: &Arc<Self>,
        uri: &str,
        updates: Arc<ResourceUpdates>,
    ) -> Result<ResourceWatch, String> {
        // A source that cannot be started says so now.
        let call = self.begin_request().await?;
        let guard = self.watches.add(uri, updates)?;
        self.keep_watched();
        let answer = tokio::select! {
            biased;
            () = call.connection.context.closing.cancelled() => Err("the connection was lost".to_owned()),
            answer = self.watches.answered(uri) => answer,
        };
        answer.map_err(|why| format!("{} does not report changes of {uri}: {why}", self.label()))?;
        Ok(ResourceWatch::new(guard, self.watches.ended.clone()))
    }

    /// Starts the task that keeps it watched, unless it runs.
    fn keep_watched(self: &Arc<Self>) {
        let mut usage = self.usage.lock();
        let Some(supervisor) = self.supervisor.upgrade().filter(|_| !usage.is_watched) else { return };
        usage.is_watched = true;
        supervisor.tasks.spawn(self.clone().watch_until_unwanted());
    }

    async fn watch_until_unwanted(self: Arc<Self>) {
        let mut is_again = false;
        while self.is_still_watched() {
            let begun = tokio::select! {
                biased;
                () = self.retired.cancelled() => break,
                begun = self.begin_request() => begun,
            };
            match begun {
                Ok(call) => {
                    if is_again {
                        // Reports of the time in between are lost.
                        self.watches.report_all();
                    }
                    is_again = self.watch_on(call).await;
                    self.watches.forget_answers();
                }
                Err(why) => {
                    let retry_at = match *self.phase.borrow() {
                        MountPhase::Failed { retry_at, .. } => retry_at,
                        MountPhase::Stopped | MountPhase::Starting | MountPhase::Running(_) => Instant::now(),
                    };
                    tracing::debug!(mount = self.label(), why, "its resources are watched, and it cannot be reached");
                    tokio::select! {
                        biased;
                        () = self.retired.cancelled() => break,
                        () = sleep_until(retry_at) => {}
                    }
                }
            }
        }
        if self.retired.is_cancelled() {
            self.watches.ended.cancel();
            self.watches.report_all();
        }
    }

    /// Until nothing is watched: false; or the connection is over: true.
    async fn watch_on(&self, call: SourceCall<A>) -> bool {
        let connection = call.connection.clone();
        // From here on the watches keep it connected.
        drop(call);
        tokio::select! {
            biased;
            () = connection.context.closing.cancelled() => true,
            () = self.adapter.watch(&self.config, &connection, &self.watches) => false,
        }
    }

    /// Under the lock under which the task is started.
    fn is_still_watched(&self) -> bool {
        let mut usage = self.usage.lock();
        usage.is_watched = !self.watches.is_empty() && !self.retired.is_cancelled();
        if !usage.is_watched {
            usage.last_used = Instant::now();
            self.call_ended.notify_one();
        }
        usage.is_watched
    }
}
