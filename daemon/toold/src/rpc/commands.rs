//! `commands.*` and `subagents.list`.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;
use toold_builtins::agents::AgentOrigin;
use toold_engine::execute::execute_tool;
use toold_engine::registry::SourceScope;
use toold_engine::session::Session;
use toold_lua::plugin::command::SlashCommand;
use toold_proto::call::Execute;
use toold_proto::command::{CommandInfo, CommandList, RunCommand, SubagentInfo, SubagentList};
use toold_proto::method::{CommandsList, CommandsRun, SubagentsList};
use toold_proto::tool::{Source, SourceKind, ToolResult};

use crate::rpc::blocking::blocking;
use crate::rpc::error::{of_call, unknown};
use crate::rpc::tools::to_call;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<CommandsList, _>(module, Right::Anyone, |request, _| async move {
        let session = request.session(None)?;
        request.services.plugins.settled().await;
        let commands = request.services.plugins.commands();
        let seen = commands.iter().filter(|command| is_offered(command, &session));
        Ok(CommandList { commands: seen.map(command_info).collect() })
    })?;
    add_async::<CommandsRun, _>(module, Right::Anyone, run)?;
    add_async::<SubagentsList, _>(module, Right::Anyone, |request, _| async move {
        let session = request.session(None)?;
        request.services.plugins.settled().await;
        let builtins = request.services.builtins.clone();
        let kinds = blocking(move || builtins.agent_types(session.project())).await?;
        let shown = kinds.into_iter().map(|kind| {
            let (source, plugin) = match kind.origin {
                AgentOrigin::Config => ("config".to_owned(), None),
                AgentOrigin::File(file) => (file.display().to_string(), None),
                AgentOrigin::Plugin(plugin) => (format!("plugin {plugin}"), Some(plugin)),
            };
            SubagentInfo {
                name: kind.name,
                description: kind.description,
                system_prompt: kind.system_prompt,
                tools: kind.tools,
                model: kind.model,
                source,
                plugin,
            }
        });
        Ok(SubagentList { subagents: shown.collect() })
    })
}

pub(super) fn command_info(command: &SlashCommand) -> CommandInfo {
    CommandInfo { name: command.name.clone(), description: command.description.clone(), plugin: command.plugin.clone() }
}

/// Whether a project's, or a global, item is in the session's view.
pub(super) fn is_seen(scope: &SourceScope, session: &Session) -> bool {
    match scope {
        SourceScope::Global => true,
        SourceScope::Project(project) => project == session.project(),
    }
}

/// Whether a command is in the session's view, and its client's profiles do not leave it out.
fn is_offered(command: &SlashCommand, session: &Session) -> bool {
    let source = Source { kind: SourceKind::Plugin, name: command.plugin.clone(), path: None };
    is_seen(&command.scope, session) && session.filter.allows_command(&command.name, &source)
}

/// Runs a command as a call: with hooks, permissions, progress, and a row in the audit log.
async fn run(request: MethodRequest, params: RunCommand) -> Result<ToolResult, ErrorObjectOwned> {
    let session = request.session(params.session_id.as_ref())?;
    request.services.plugins.settled().await;
    let name = params.name.trim_start_matches('/');
    let commands = request.services.plugins.commands();
    let mut seen = commands.iter().filter(|command| is_offered(command, &session));
    let command = seen.find(|command| command.name == name).ok_or_else(|| unknown("command", name))?;
    let call = to_call(
        &request,
        Execute {
            name: name.to_owned(),
            arguments: json!({"input": params.input}),
            session_id: params.session_id,
            progress: params.progress,
            ..Execute::default()
        },
    )?;
    execute_tool(&request.services.engine, command.tool.clone(), call).await.map_err(of_call)
}
