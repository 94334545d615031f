//! Parts that a daemon can be built without, as cargo features of the crate `toold`.

use crate::config::Config;

/// Why there is no fleet in a daemon that was built without the feature.
pub(crate) const WITHOUT_FLEET: &str =
    "this toold was built without fleets: build it with the feature `fleet`, or remove [fleet] from the configuration";

const WITHOUT_TRACES: &str =
    "this toold was built without traces: build it with the feature `trace`, or remove [trace] from the configuration";

/// Sections of a configuration that have no effect in this daemon, each with the reason.
pub fn unused_sections(config: &Config) -> impl Iterator<Item = (&'static str, &'static str)> {
    let fleet = config.fleet.enabled && config.fleet.name.is_some() && !cfg!(feature = "fleet");
    let trace = config.trace.otlp_endpoint.is_some() && !cfg!(feature = "trace");
    let sections = [("fleet", fleet, WITHOUT_FLEET), ("trace", trace, WITHOUT_TRACES)];
    sections.into_iter().filter(|(_, unused, _)| *unused).map(|(section, _, why)| (section, why))
}
