//! `plugins.*`

use std::path::Path;
use std::time::Duration;

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;
use toold_engine::events::EventSelection;
use toold_engine::execute::execute_tool;
use toold_engine::kept::ChangeEffect;
use toold_engine::plugin_limits::withheld_categories;
use toold_engine::registry::SourceScope;
use toold_lua::plugin::content::Content;
use toold_lua::plugin::evaluate::is_incomplete;
use toold_lua::reload::UnknownPlugin;
use toold_lua::reload::check;
use toold_lua::reload::profile::ProfileError;
use toold_proto::call::Execute;
use toold_proto::method::{
    PluginsDisable, PluginsEnable, PluginsEvaluate, PluginsList, PluginsLogs, PluginsProfile, PluginsReload,
    PluginsShow, PluginsTrust,
};
use toold_proto::plugin::{
    EvaluateInPlugin, Evaluation, ListPlugins, NamePlugin, Plugin, PluginDetails, PluginList, RefusedNeed,
    ReloadPlugins, TrustPlugins, TrustReport,
};
use toold_proto::plugin_log::{LogsOfPlugin, PluginLogs};
use toold_proto::plugin_profile::{PluginProfile, ProfilePlugin};
use toold_proto::tool::{SessionId, Source, SourceKind};
use toold_store::trust::Switch;

use crate::config::trust::{TrustError, files_of};
use crate::rpc::Services;
use crate::rpc::blocking::blocking;
use crate::rpc::commands::{command_info, is_seen};
use crate::rpc::error::{NOT_KEPT, invalid_params, of_call, refused, unknown};
use crate::rpc::hooks::describe;
use crate::rpc::tools::to_call;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async, client_name, may_decide, unless_cancelled};

const MAX_PROFILE_SECONDS: u32 = 600;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PluginsList, _>(module, Right::Anyone, |request, params: ListPlugins| async move {
        list(&request, params.all).await
    })?;
    add_async::<PluginsShow, _>(module, Right::Anyone, show)?;
    add_async::<PluginsLogs, _>(module, Right::Anyone, |request, params| async move { logs(&request, &params) })?;
    add_async::<PluginsReload, _>(module, Right::Decider, reload)?;
    add_async::<PluginsProfile, _>(module, Right::Administrator, profile)?;
    add_async::<PluginsEnable, _>(module, Right::Decider, |request, named| switch(request, named, true))?;
    add_async::<PluginsDisable, _>(module, Right::Decider, |request, named| switch(request, named, false))?;
    add_async::<PluginsTrust, _>(module, Right::Administrator, trust)?;
    // It runs code with the plugin's permissions, as changing the plugin's files does.
    add_async::<PluginsEvaluate, _>(module, Right::Administrator, evaluate)
}

/// The plugins that the caller's session sees, or would see; with `all` also the bundled ones that
/// are off.
async fn list(request: &MethodRequest, all: bool) -> Result<PluginList, ErrorObjectOwned> {
    let session = request.session(None)?;
    request.services.plugins.settled().await;
    Ok(visible(&request.services, session.project(), all))
}

fn visible(services: &Services, project: &Path, spare: bool) -> PluginList {
    let all = services.plugins.list();
    let seen = all.iter().filter(|plugin| plugin.project.as_deref().is_none_or(|of| Path::new(of) == project));
    let seen = seen.filter(|plugin| spare || !plugin.is_spare());
    PluginList { plugins: seen.cloned().collect() }
}

/// The plugin of that name in the caller's view; the active one, where one is shadowed.
async fn find(request: &MethodRequest, name: &str) -> Result<Plugin, ErrorObjectOwned> {
    let plugins = list(request, true).await?.plugins;
    plugins.into_iter().find(|plugin| plugin.name == name).ok_or_else(|| unknown("plugin", name))
}

async fn show(request: MethodRequest, named: NamePlugin) -> Result<PluginDetails, ErrorObjectOwned> {
    let plugin = find(&request, &named.name).await?;
    let services = request.services.clone();
    let session = request.session(None)?;
    let snapshot = services.engine.registry.snapshot();
    let specs = snapshot.view(session.project()).iter().map(|tool| tool.spec());
    let own = specs.filter(|spec| spec.source.kind == SourceKind::Plugin && spec.source.name == plugin.name);
    let tools = own.map(|spec| spec.describe()).collect();
    let hooks = services.engine.hooks.snapshot();
    let hooks = hooks.iter().map(|hook| hook.spec()).filter(|spec| {
        spec.source.kind == SourceKind::Plugin
            && spec.source.name == plugin.name
            && is_seen(&spec.source.scope, &session)
    });
    let hooks = hooks.map(describe).collect();
    let commands = services.plugins.commands();
    let commands = commands.iter().filter(|command| command.plugin == plugin.name && is_seen(&command.scope, &session));
    let commands = commands.map(command_info).collect();
    let subagents = services.plugins.subagents();
    let subagents = subagents.iter().filter(|one| one.plugin == plugin.name && is_seen(&one.scope, &session));
    let subagents = subagents.map(|subagent| subagent.name.clone()).collect();
    let path = plugin.path.clone();
    let of_project = plugin.project.is_some();
    let (files, capabilities, trusted) = blocking(move || {
        let path = Path::new(&path);
        // Read errors are reported with the plugin.
        let files = Content::read(path).map(|content| files_of(&content)).unwrap_or_default();
        (files, check::capabilities(path), of_project.then(|| services.config.plugin_trusted_by(path)).flatten())
    })
    .await?;
    let source = |source: &Source| source.kind == SourceKind::Plugin && source.name == plugin.name;
    let offers = &request.services.engine.offers;
    let resources = offers.resources_of(&session);
    let resources = resources.iter().filter(|resource| source(&resource.source));
    let resources = resources.map(|resource| resource.address.as_str().to_owned()).collect();
    let prompts = offers.prompts_of(&session);
    let prompts = prompts.iter().filter(|prompt| source(&prompt.source)).map(|prompt| prompt.name.clone()).collect();
    let refused = refused_needs(&request, &session.id, &plugin, capabilities.as_deref());
    let timers = request.services.plugins.timers(&plugin.path);
    Ok(PluginDetails {
        plugin,
        tools,
        hooks,
        commands,
        subagents,
        resources,
        prompts,
        timers,
        capabilities,
        files,
        trusted,
        refused,
    })
}

/// The permissions that the plugin was refused. No grant gives it more than its manifest declares.
fn refused_needs(
    request: &MethodRequest,
    session: &SessionId,
    plugin: &Plugin,
    capabilities: Option<&[String]>,
) -> Vec<RefusedNeed> {
    let scope = match &plugin.project {
        Some(project) => SourceScope::Project(project.into()),
        None => SourceScope::Global,
    };
    let sees_all = may_decide(request);
    let refusals = &request.services.engine.plugin_refusals;
    let mut refused = refusals.of(&scope, &plugin.name, (!sees_all).then_some(session));
    // As the manifest is now; the rule is that of the refusal.
    let withheld = capabilities.map(withheld_categories).unwrap_or_default();
    for need in &mut refused {
        if withheld.contains(&need.category) {
            need.pattern = None;
        }
        if !sees_all {
            need.reason = None;
        }
    }
    refused
}

async fn profile(request: MethodRequest, params: ProfilePlugin) -> Result<PluginProfile, ErrorObjectOwned> {
    if !(1..=MAX_PROFILE_SECONDS).contains(&params.seconds) {
        return Err(invalid_params(&format!(
            "seconds: expected a number from 1 to {MAX_PROFILE_SECONDS}, got {}",
            params.seconds
        )));
    }
    let plugin = find(&request, &params.name).await?;
    let time = Duration::from_secs(params.seconds.into());
    let refusal = |error: ProfileError| {
        let kind = match error {
            ProfileError::NotServing => "not_serving",
            ProfileError::Busy => "busy",
        };
        refused(kind, &format!("{} cannot be profiled: {error}", plugin.name))
    };
    let profiled = async { request.services.plugins.profile(&plugin.path, time).await.map_err(refusal) };
    unless_cancelled(&request, profiled).await
}

/// People see the messages of all sessions, others those of their own.
fn logs(request: &MethodRequest, params: &LogsOfPlugin) -> Result<PluginLogs, ErrorObjectOwned> {
    let own = request.session(None)?;
    let sees_all = may_decide(request);
    let events = &request.services.engine.events;
    let held = events.subscribe_from_start(EventSelection::NoCalls).replay;
    let meant = held.iter().filter(|event| {
        let is_seen = event.body.session_id().is_none_or(|session| sees_all || *session == own.id);
        let is_of = event.body.plugin().is_some_and(|plugin| params.name.as_ref().is_none_or(|name| name == plugin));
        is_seen && is_of
    });
    Ok(PluginLogs {
        events: meant.map(|event| event.to_wire(events.epoch())).collect(),
        seq: held.last().map_or(0, |event| event.seq),
        epoch: events.epoch().to_owned(),
    })
}

async fn reload(request: MethodRequest, reload: ReloadPlugins) -> Result<PluginList, ErrorObjectOwned> {
    let session = request.session(None)?;
    let plugins = &request.services.plugins;
    plugins.settled().await;
    let reloaded = plugins.reload(reload.name.as_deref()).await;
    reloaded.map_err(|UnknownPlugin(name)| unknown("plugin", &name))?;
    Ok(visible(&request.services, session.project(), false))
}

async fn switch(request: MethodRequest, named: NamePlugin, on: bool) -> Result<PluginList, ErrorObjectOwned> {
    let plugin = find(&request, &named.name).await?;
    let services = request.services.clone();
    let project = plugin.project.clone().map(Into::into);
    let disabled = match &project {
        None => services.config.loaded().config.plugins.disabled.clone(),
        Some(project) => {
            let configs = services.config.trusted_configs();
            let own = configs.iter().find(|file| file.project == *project);
            own.map(|file| file.config.plugins.disabled.clone()).unwrap_or_default()
        }
    };
    if on && disabled.contains(&plugin.name) {
        let words = format!("{} is disabled by the configuration ([plugins] disabled): remove it there", plugin.name);
        return Err(refused("disabled_by_config", &words));
    }
    let kept = blocking(move || {
        let switch = Switch { project, plugin: plugin.name, on };
        let effect = if on { ChangeEffect::Widens } else { ChangeEffect::Narrows };
        effect.keep(
            || services.store.set_plugin_switch(&switch),
            |stored| {
                if stored.is_none() {
                    services.store.hold_plugin_switch(switch.clone());
                }
                services.config.decisions_changed();
            },
        )
    });
    kept.await?.map_err(|error| refused(NOT_KEPT, &error.to_string()))?;
    list(&request, false).await
}

/// Runs Lua in a plugin as a call: with the plugin's permissions, with progress, and with a row in the audit log.
async fn evaluate(request: MethodRequest, params: EvaluateInPlugin) -> Result<Evaluation, ErrorObjectOwned> {
    let EvaluateInPlugin { name, source, call_id, session_id, timeout_ms, progress } = params;
    let plugin = find(&request, &name).await?;
    let Some(tool) = request.services.plugins.evaluator(&plugin.path) else {
        let words = format!("the plugin {name} is {}: `toolctl plugins show {name}` says why", plugin.status.as_str());
        return Err(refused("not_serving", &words));
    };
    let arguments = json!({"source": source});
    if blocking(move || is_incomplete(&source)).await? {
        return Ok(Evaluation { incomplete: true, result: None });
    }
    let execute = Execute { name, arguments, call_id, session_id, timeout_ms, progress, ..Execute::default() };
    let result = execute_tool(&request.services.engine, tool, to_call(&request, execute)?).await;
    Ok(Evaluation { incomplete: false, result: Some(result.map_err(of_call)?) })
}

async fn trust(request: MethodRequest, params: TrustPlugins) -> Result<TrustReport, ErrorObjectOwned> {
    let (services, by) = (request.services.clone(), client_name(&request));
    let trusted = blocking(move || match params.preview {
        true => services.config.trustable(&params.path),
        false => {
            let report = services.config.trust(&params.path, params.expect.as_ref(), by)?;
            services.workspaces.note_opened(Path::new(&report.project));
            Ok(report)
        }
    });
    let report = trusted.await?.map_err(|error| match &error {
        TrustError::Relative(_) | TrustError::Unreadable { .. } | TrustError::NotOfAProject { .. } => {
            invalid_params(&format!("path: {error}"))
        }
        TrustError::Changed { .. } => refused("changed", &error.to_string()),
        TrustError::Broken { .. } => refused("broken", &error.to_string()),
        TrustError::Store(_) => refused(NOT_KEPT, &error.to_string()),
    })?;
    // A person who trusts a plugin expects it to load.
    request.services.plugins.settled().await;
    Ok(report)
}
