//! The common part of requests that run something: a call of their own, progress, logs, and
//! requests to the client.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult, InputResponses};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_engine::Engine;
use toold_engine::call::{Call, Caller, Principal};
use toold_engine::progress::{ProgressSink, broadcast};
use toold_engine::session::Session;
use toold_proto::tool::CallId;

use crate::client_log::OpenRequestLog;
use crate::server::client_requests::{ClientAbilities, ClientRequests, RequestOrigin};
use crate::server::logs::{LogForwarder, LogSources};
use crate::server::progress::ProgressRouter;
use crate::server::request_session::{client_of, is_modern};
use crate::server::request_state::StateBinding;
use crate::server::running_request::{RequestOutcome, RequestResult, RoundEnd, RunningRequest};
use crate::server::tasks::TaskHandover;
use crate::server::{McpClientServer, McpConnection, McpHost, logs, tasks};

/// The outcome of a request.
pub(super) enum RequestEnd {
    Finished(RequestResult),
    /// In the stateless revisions: the client should answer, and send the request again.
    InputRequired(InputRequiredResult),
    /// With the tasks extension: the client should poll it.
    Task(CreateTaskResult),
    /// The client cancelled it, and no longer waits.
    Cancelled,
}

impl McpClientServer {
    /// Runs the call that `start` makes, for a request of this client. `answers` are to questions
    /// that have keys of the tool's own. `handover`: how it may become a task, if the client
    /// accepts tasks.
    pub(super) async fn run(
        &self,
        session: Arc<Session>,
        answers: InputResponses,
        binding: StateBinding,
        context: RequestContext<RoleServer>,
        handover: Option<TaskHandover>,
        start: impl FnOnce(Call) -> BoxFuture<'static, RequestResult>,
    ) -> RequestEnd {
        let engine = self.mcp.engine();
        let can = ClientAbilities::of(context.client_capabilities());
        let outlives = can.any() || handover.is_some();
        // A call that may outlive the request, since its client may resume it, is not cancelled
        // with it.
        let cancel = match outlives {
            true => self.connection.gone.child_token(),
            false => context.ct.child_token(),
        };
        let progress = ProgressRouter::default();
        let caller = caller(self.mcp.host.as_ref(), &self.connection);
        let log_level = logs::level_of(&self.connection, &context);
        let open_log = OpenRequestLog::new(&session, &caller, log_level.clone());
        let log_sources = LogSources { session: session.id.clone(), servers: open_log.log.clone() };
        let mut logs = LogForwarder::listen(engine, log_sources.clone(), log_level, &context);
        let open = self.mcp.channels.open(&caller, can);
        self.connection.sampler.get_or_init(|| engine.samplers.register(self.connection.id, self.mcp.channels.clone()));
        let call_id = self.bridged_call_id(&context.id).unwrap_or_else(|| engine.new_call_id());
        let running = start(new_call(engine, call_id, session.clone(), caller.clone(), &progress, cancel.clone()));
        let (channel, modern) = (open.channel.clone(), is_modern(&context));
        let future = async move {
            let _open_log = open_log;
            let finished = running.await;
            let missing = open.channel.missing().filter(|_| modern && has_failed(&finished));
            missing.map_or(finished, |missing| Err(ErrorData::missing_required_client_capability(missing)))
        }
        .boxed();
        if !outlives {
            let mut forward = progress.forward_to(&context.peer, context.meta.get_progress_token());
            let finished = tokio::select! {
                biased;
                finished = future => finished,
                () = forward.run() => unreachable!("it never returns"),
                () = logs.run() => unreachable!("it never returns"),
            };
            forward.finish().await;
            logs.finish().await;
            return RequestEnd::Finished(finished);
        }
        let client = client_of(&context).map(|client| client.name);
        let rights = client.as_ref().map(|client| self.mcp.host.client(client)).unwrap_or_default();
        let origin = RequestOrigin {
            engine: engine.clone(),
            session,
            caller,
            connection: self.connection.clone(),
            client,
            // It could report the name of any client.
            may_approve: rights.approve && self.connection.identity.principal != Principal::ToolDescendant,
            shows_forms: can.show_forms,
            can_withdraw: !modern,
        };
        let client_requests = ClientRequests::new(origin, &channel);
        let patience = engine.settings.load().ask_timeout;
        let (request, task) =
            RunningRequest::begin(future, client_requests, progress, log_sources, cancel, handover, patience);
        engine.tasks.spawn(task);
        self.wait(request, answers, binding, context, logs).await
    }

    /// Continues a request whose client was asked something.
    ///
    /// # Errors
    /// Invalid params: the state does not belong to this request.
    pub(super) async fn resume(
        &self,
        state: &str,
        answers: InputResponses,
        binding: StateBinding,
        context: RequestContext<RoleServer>,
    ) -> Result<RequestEnd, ErrorData> {
        let request = self.mcp.request_states.find(state, &binding)?;
        let level = logs::level_of(&self.connection, &context);
        let logs = LogForwarder::listen(self.mcp.engine(), request.log_sources.clone(), level, &context);
        Ok(self.wait(request, answers, binding, context, logs).await)
    }

    async fn wait(
        &self,
        request: RunningRequest,
        answers: InputResponses,
        binding: StateBinding,
        context: RequestContext<RoleServer>,
        mut logs: LogForwarder,
    ) -> RequestEnd {
        let handover = request.handover.clone().filter(|_| tasks::are_accepted(&context));
        let has_room = handover.is_none() || self.mcp.tasks.has_room();
        let handover = match handover {
            Some(TaskHandover { after: None, .. }) if !has_room => {
                return RequestEnd::Finished(Ok(RequestOutcome::Tool(too_many())));
            }
            handover => handover.filter(|_| has_room),
        };
        let mut forward = request.progress.forward_to(&context.peer, context.meta.get_progress_token());
        let attending = request.attend(answers).await;
        let round = async {
            match (is_modern(&context), handover) {
                (true, Some(TaskHandover { after: None, .. })) => RoundEnd::Long(attending),
                (true, handover) => attending.round(&context.ct, handover.and_then(|handover| handover.after)).await,
                (false, _) => attending.attend_and_ask(&context).await.map_or(RoundEnd::Cancelled, RoundEnd::Finished),
            }
        };
        let round = tokio::select! {
            biased;
            round = round => round,
            () = forward.run() => unreachable!("it never returns"),
            () = logs.run() => unreachable!("it never returns"),
        };
        forward.finish().await;
        logs.finish().await;
        match round {
            RoundEnd::Finished(finished) => RequestEnd::Finished(finished),
            RoundEnd::Cancelled => RequestEnd::Cancelled,
            RoundEnd::Long(attending) => {
                let (task, follow) = attending.into_task(&self.mcp.tasks, self.connection.identity.clone());
                let created = task.created();
                self.mcp.engine().tasks.spawn(follow);
                RequestEnd::Task(created)
            }
            RoundEnd::Asks(asked, request) => match self.mcp.request_states.keep(request, &binding) {
                Some(state) => RequestEnd::InputRequired(InputRequiredResult::new(Some(asked), Some(state))),
                None => RequestEnd::Finished(Ok(RequestOutcome::Tool(too_many()))),
            },
        }
    }

    /// A call for a request without progress and without questions to the client.
    pub(super) fn plain_call(&self, session: Arc<Session>, cancel: CancellationToken) -> Call {
        plain_call(self.mcp.host.as_ref(), &self.connection, session, cancel)
    }
}

/// As [`McpClientServer::plain_call`], for work that goes on without its request.
pub(super) fn plain_call(
    host: &dyn McpHost,
    connection: &McpConnection,
    session: Arc<Session>,
    cancel: CancellationToken,
) -> Call {
    let engine = host.engine();
    new_call(engine, engine.new_call_id(), session, caller(host, connection), &ProgressRouter::default(), cancel)
}

fn caller(host: &dyn McpHost, connection: &McpConnection) -> Arc<Caller> {
    Arc::new(Caller {
        connection: connection.id,
        principal: connection.identity.principal,
        agent: host.agent_of(connection.id),
        in_flight: connection.in_flight.clone(),
    })
}

fn new_call(
    engine: &Arc<Engine>,
    call_id: CallId,
    session: Arc<Session>,
    caller: Arc<Caller>,
    progress: &ProgressRouter,
    cancel: CancellationToken,
) -> Call {
    let sinks: Vec<Arc<dyn ProgressSink>> = vec![Arc::new(progress.clone()), broadcast(engine, &call_id, &session.id)];
    Call {
        name: String::new(),
        arguments: Value::Null,
        call_id: Some(call_id),
        chain: session.chain(),
        session,
        cwd: None,
        timeout: None,
        no_cache: false,
        caller,
        progress: sinks,
        cancel,
        depth: 0,
        holds_lane: false,
    }
}

fn too_many() -> CallToolResult {
    let error = "too many calls are waiting for their clients: the call was not started; try again later";
    CallToolResult::error(vec![ContentBlock::text(error)])
}

fn has_failed(finished: &RequestResult) -> bool {
    match finished {
        Ok(RequestOutcome::Tool(result)) => result.is_error == Some(true),
        Ok(RequestOutcome::Prompt(_) | RequestOutcome::Resource(_) | RequestOutcome::Cancelled) => false,
        Err(_) => true,
    }
}
