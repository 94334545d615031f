//! What every request that runs something has in common: a call of its own, progress, and its client's ear.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult, InputResponses};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toold_engine::call::{Call, Caller, Principal};
use toold_engine::progress::{ProgressSink, broadcast};
use toold_engine::session::Session;

use crate::server::desk::{Asker, Can, Desk};
use crate::server::logs::Logs;
use crate::server::progress::Tap;
use crate::server::rounds::Binding;
use crate::server::tasks::Handing;
use crate::server::view::{client_of, is_modern};
use crate::server::work::{Finished, Outcome, Round, Work};
use crate::server::{Server, tasks};

/// How a request ends.
pub(super) enum Served {
    Finished(Finished),
    /// In the stateless revisions: the client is to answer, and to come again.
    InputRequired(InputRequiredResult),
    /// With the tasks extension: the client is to come back for it.
    Task(CreateTaskResult),
    /// Its client cancelled it, and waits for nothing.
    Cancelled,
}

impl Server {
    /// Runs what `start` makes of a call, for a request of this client. `answers` are to what it may ask by a
    /// name of its own. `handing`: how it may become a task, of a client that takes them.
    pub(super) async fn carry_out(
        &self,
        session: Arc<Session>,
        answers: InputResponses,
        binding: Binding,
        context: RequestContext<RoleServer>,
        handing: Option<Handing>,
        start: impl FnOnce(Call) -> BoxFuture<'static, Finished>,
    ) -> Served {
        let engine = self.mcp.engine();
        let can = Can::of(context.client_capabilities());
        let outlives = can.be_asked() || handing.is_some();
        // What may outlive the request, since its client may come again, is not cancelled by its end.
        let cancel = match outlives {
            true => self.connection.gone.child_token(),
            false => context.ct.child_token(),
        };
        let tap = Tap::default();
        let caller = self.caller();
        let mut logs = Logs::listen(engine, &session.id, &self.connection.log_level, &context);
        let line = self.mcp.desks.line(&caller, can);
        self.connection.sampler.get_or_init(|| engine.samplers.register(self.connection.id, self.mcp.desks.clone()));
        let work = start(self.call(session.clone(), caller.clone(), &tap, cancel.clone()));
        let (own, modern) = (line.line.clone(), is_modern(&context));
        let future = async move {
            let finished = work.await;
            let missing = line.line.missing().filter(|_| modern && has_failed(&finished));
            missing.map_or(finished, |missing| Err(ErrorData::missing_required_client_capability(missing)))
        }
        .boxed();
        if !outlives {
            let mut forward = tap.turn_to(&context.peer, context.meta.get_progress_token());
            let finished = tokio::select! {
                biased;
                finished = future => finished,
                () = forward.run() => unreachable!("it forwards for ever"),
                () = logs.run() => unreachable!("it listens for ever"),
            };
            forward.finish().await;
            logs.finish().await;
            return Served::Finished(finished);
        }
        let client = client_of(&context).map(|client| client.name);
        let rights = client.as_ref().map(|client| self.mcp.host.client(client)).unwrap_or_default();
        let session_id = session.id.clone();
        let asker = Asker {
            engine: engine.clone(),
            session,
            caller,
            connection: self.connection.clone(),
            client,
            // It would say the name of any client.
            may_approve: rights.approve && self.connection.principal != Principal::ToolDescendant,
            forms: can.show_forms,
        };
        let desk = Desk::open(asker, &own);
        let patience = engine.settings.load().ask_timeout;
        let (work, task) = Work::begin(future, desk, tap, session_id, cancel, handing, patience);
        engine.tasks.spawn(task);
        self.wait(work, answers, binding, context, logs).await
    }

    /// Goes on with what a client was asked about.
    ///
    /// # Errors
    /// Invalid params: the state does not belong to this request.
    pub(super) async fn come_again(
        &self,
        state: &str,
        answers: InputResponses,
        binding: Binding,
        context: RequestContext<RoleServer>,
    ) -> Result<Served, ErrorData> {
        let work = self.mcp.rounds.find(state, &binding)?;
        let logs = Logs::listen(self.mcp.engine(), &work.session, &self.connection.log_level, &context);
        Ok(self.wait(work, answers, binding, context, logs).await)
    }

    async fn wait(
        &self,
        work: Work,
        answers: InputResponses,
        binding: Binding,
        context: RequestContext<RoleServer>,
        mut logs: Logs,
    ) -> Served {
        let handing = work.handing.clone().filter(|_| tasks::are_taken(&context));
        let has_room = handing.is_none() || self.mcp.tasks.has_room();
        let handing = match handing {
            Some(Handing { after: None, .. }) if !has_room => return Served::Finished(Ok(Outcome::Tool(too_many()))),
            handing => handing.filter(|_| has_room),
        };
        let mut forward = work.tap.turn_to(&context.peer, context.meta.get_progress_token());
        let attending = work.attend(answers).await;
        let round = async {
            match (is_modern(&context), handing) {
                (true, Some(Handing { after: None, .. })) => Round::Long(attending),
                (true, handing) => attending.round(&context.ct, handing.and_then(|handing| handing.after)).await,
                (false, _) => attending.attend_and_ask(&context).await.map_or(Round::Cancelled, Round::Finished),
            }
        };
        let round = tokio::select! {
            biased;
            round = round => round,
            () = forward.run() => unreachable!("it forwards for ever"),
            () = logs.run() => unreachable!("it listens for ever"),
        };
        forward.finish().await;
        logs.finish().await;
        match round {
            Round::Finished(finished) => Served::Finished(finished),
            Round::Cancelled => Served::Cancelled,
            Round::Long(attending) => {
                let (entry, keep) = attending.hand_over(&self.mcp.tasks, self.connection.principal);
                let created = entry.created();
                self.mcp.engine().tasks.spawn(keep);
                Served::Task(created)
            }
            Round::Asks(asked, work) => {
                let patience = self.mcp.engine().settings.load().ask_timeout;
                match self.mcp.rounds.keep(work, &binding, patience) {
                    Some(state) => Served::InputRequired(InputRequiredResult::new(Some(asked), Some(state))),
                    None => Served::Finished(Ok(Outcome::Tool(too_many()))),
                }
            }
        }
    }

    /// A call for a request that tells nothing and asks nothing.
    pub(super) fn plain_call(&self, session: Arc<Session>, cancel: CancellationToken) -> Call {
        self.call(session, self.caller(), &Tap::default(), cancel)
    }

    fn caller(&self) -> Arc<Caller> {
        Arc::new(Caller {
            connection: self.connection.id,
            principal: self.connection.principal,
            in_flight: self.connection.in_flight.clone(),
        })
    }

    fn call(&self, session: Arc<Session>, caller: Arc<Caller>, tap: &Tap, cancel: CancellationToken) -> Call {
        let engine = self.mcp.engine();
        let call_id = engine.new_call_id();
        let mut progress: Vec<Arc<dyn ProgressSink>> = vec![Arc::new(tap.clone())];
        progress.extend(broadcast(engine, &call_id, &session.id));
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
            progress,
            cancel,
            depth: 0,
            holds_lane: false,
        }
    }
}

fn too_many() -> CallToolResult {
    let words = "too many calls wait for their clients; nothing was done, try again later";
    CallToolResult::error(vec![ContentBlock::text(words)])
}

fn has_failed(finished: &Finished) -> bool {
    match finished {
        Ok(Outcome::Tool(result)) => result.is_error == Some(true),
        Ok(Outcome::Prompt(_) | Outcome::Resource(_) | Outcome::Cancelled) => false,
        Err(_) => true,
    }
}
