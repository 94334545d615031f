//! Where a plugin spends its time.

use std::time::Duration;

use toold_proto::plugin_profile::{PluginProfile, ProfiledStack};

use crate::reload::PluginHost;

/// Why a plugin cannot be profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("no version of it is in service")]
    NotServing,
    #[error("somebody else is profiling it: try again when that has ended")]
    Busy,
}

impl PluginHost {
    /// Records for `time` where the scripts of the plugin with this path run: those of calls, hooks and timers, in the
    /// version that is in service now. Waiting does not count. Dropping the future ends it.
    ///
    /// # Errors
    /// The plugin is not in service, or is being profiled already.
    pub async fn profile(&self, path: &str, time: Duration) -> Result<PluginProfile, ProfileError> {
        let slot =
            self.serving(path, |serving| serving.states.plugin.sampler.clone()).ok_or(ProfileError::NotServing)?;
        let sampler = slot.start().ok_or(ProfileError::Busy)?;
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.stop.cancelled() => {}
        }
        let us = |time: Duration| time.as_micros() as u64;
        let stacks = sampler.stacks();
        Ok(PluginProfile {
            total_us: us(stacks.iter().map(|(_, time)| *time).sum()),
            stacks: stacks.into_iter().map(|(frames, time)| ProfiledStack { frames, us: us(time) }).collect(),
        })
    }
}
