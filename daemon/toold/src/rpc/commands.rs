//! `commands.*` and `subagents.list`: what plugins offer beside tools.

use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::json;
use toold_engine::execute::execute_tool;
use toold_proto::call::Execute;
use toold_proto::command::{CommandInfo, CommandList, RunCommand, SubagentInfo, SubagentList};
use toold_proto::method::{CommandsList, CommandsRun, SubagentsList};
use toold_proto::tool::ToolResult;

use crate::daemon::State;
use crate::rpc::error::{of_call, unknown};
use crate::rpc::tools::to_call;
use crate::rpc::{Request, Right, add_async};

pub(super) fn register(module: &mut RpcModule<Arc<State>>) -> anyhow::Result<()> {
    add_async::<CommandsList, _>(module, Right::Anyone, |request, _| async move {
        request.state.plugins.settled().await;
        let commands = request.state.plugins.commands();
        let shown = commands.iter().map(|command| CommandInfo {
            name: command.name.clone(),
            description: command.description.clone(),
            plugin: command.plugin.clone(),
        });
        Ok(CommandList { commands: shown.collect() })
    })?;
    add_async::<CommandsRun, _>(module, Right::Anyone, run)?;
    add_async::<SubagentsList, _>(module, Right::Anyone, |request, _| async move {
        request.state.plugins.settled().await;
        let subagents = request.state.plugins.subagents();
        let shown = subagents.iter().map(|subagent| SubagentInfo {
            name: subagent.name.clone(),
            description: subagent.description.clone(),
            system_prompt: subagent.system_prompt.clone(),
            tools: subagent.tools.clone(),
            model: subagent.model.clone(),
            plugin: subagent.plugin.clone(),
        });
        Ok(SubagentList { subagents: shown.collect() })
    })
}

/// Runs a command as a call: with hooks, permissions, progress, and a row in the audit log.
async fn run(request: Request, params: RunCommand) -> Result<ToolResult, ErrorObjectOwned> {
    request.state.plugins.settled().await;
    let name = params.name.trim_start_matches('/');
    let commands = request.state.plugins.commands();
    let command = commands.iter().find(|command| command.name == name).ok_or_else(|| unknown("command", name))?;
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
    execute_tool(&request.state.engine, command.tool.clone(), call).await.map_err(of_call)
}
