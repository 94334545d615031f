//! Failures of plugins that no caller hears of.

use serde_json::json;
use toold_engine::cx::Cx;
use toold_proto::event::EventBody;
use toold_proto::plugin::PluginError;

use crate::plugin::PluginVersion;

/// Writes a failure to the daemon's log and to the plugin's; `cx` is the call that it belongs to.
pub(crate) fn log_failure(plugin: &PluginVersion, cx: Option<&Cx>, failed: &str, error: &PluginError) {
    let call = cx.map(|cx| cx.call_id.as_str());
    tracing::error!(target: "toold::plugin", plugin = plugin.name(), call, "{failed}: {}", error.message);
    plugin.shared.engine.events.emit(EventBody::Log {
        call_id: cx.map(|cx| cx.call_id.clone()),
        session_id: cx.map(|cx| cx.session.id.clone()),
        plugin: plugin.name().to_owned(),
        level: "error".to_owned(),
        message: format!("{failed}: {}", error.message),
        fields: error.traceback.as_ref().map(|traceback| json!({"traceback": traceback})),
    });
}
