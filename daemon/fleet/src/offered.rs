//! The tools that this daemon offers to the fleet: those that every session here sees, but none that run elsewhere, so that
//! no call goes in a circle.

use std::sync::Arc;

use serde_json::json;
use toold_engine::Engine;
use toold_engine::callable::Callable;
use toold_engine::tool::ToolSpec;
use toold_engine::tool_filter::AllowDenyFilter;
use toold_proto::tool::SourceKind;

use crate::messages::ToolRecord;
use crate::settings::FleetSettings;

/// Which tools the settings offer.
pub(crate) struct OfferFilter(AllowDenyFilter);

impl OfferFilter {
    pub(crate) fn new(settings: &FleetSettings) -> Self {
        Self(AllowDenyFilter::new(settings.offer.as_deref(), &settings.withhold))
    }

    pub(crate) fn takes(&self, tool: &dyn Callable) -> bool {
        let runs_here = match tool.spec().source.kind {
            SourceKind::Builtin | SourceKind::Plugin | SourceKind::Frontend | SourceKind::Mcp => true,
            SourceKind::Remote | SourceKind::Fleet => false,
        };
        runs_here && self.0.takes(tool.own_name().as_str())
    }
}

/// The tool that the fleet knows by this name; `None` for one that is not offered.
pub(crate) fn find(engine: &Engine, settings: &FleetSettings, name: &str) -> Option<Arc<dyn Callable>> {
    let snapshot = engine.registry.snapshot();
    let tool = snapshot.global().find(name)?;
    OfferFilter::new(settings).takes(tool.as_ref()).then(|| tool.clone())
}

/// The record of a tool, as the fleet lists it.
pub(crate) fn record(spec: &ToolSpec) -> ToolRecord {
    ToolRecord {
        label: spec.label.clone(),
        description: spec.description.clone(),
        schema: spec.input.as_value().clone(),
        output_schema: spec.output.as_ref().map(|schema| schema.as_value().clone()),
        fingerprint: fingerprint(spec),
        annotations: spec.annotations,
        parallelizable: spec.parallelizable,
        timeout_ms: spec.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        version: spec.version.clone(),
        grammar: spec.grammar.clone(),
    }
}

/// Changes with everything that a person sees when allowing the tool.
pub(crate) fn fingerprint(spec: &ToolSpec) -> String {
    let output = spec.output.as_ref().map(|schema| schema.as_value());
    let seen =
        json!([spec.name, spec.label, spec.description, spec.input.as_value(), output, spec.annotations, spec.grammar]);
    blake3::hash(seen.to_string().as_bytes()).to_hex().to_string()
}
