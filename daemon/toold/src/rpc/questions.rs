//! `questions.*`

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::to_raw_value;
use toold_engine::questions::{QuestionSubscription, ReplyError, reply};
use toold_proto::daemon::Done;
use toold_proto::method::{QuestionsReply, QuestionsSubscribe, Subscription};
use toold_proto::permission::{Answerer, SubscribePrompts};
use toold_proto::question::ReplyQuestion;

use crate::rpc::error::{invalid_params, unknown};
use crate::rpc::permissions::session_of;
use crate::rpc::{Module, Request, Right, add, client_name, decides, read_params};

pub(super) fn register(module: &mut Module) -> anyhow::Result<()> {
    module.rpc.register_subscription(
        QuestionsSubscribe::NAME,
        QuestionsSubscribe::ITEM_METHOD,
        QuestionsSubscribe::UNSUBSCRIBE,
        |params, pending, state, extensions| async move {
            let subscribe = || -> Result<QuestionSubscription, ErrorObjectOwned> {
                let request = Request::of(&state, &extensions)?;
                // Whoever subscribes counts as somebody who can answer.
                decides(QuestionsSubscribe::NAME, &request)?;
                let session = session_of(&request, &read_params::<SubscribePrompts>(&params)?)?;
                Ok(state.engine.questions.subscribe(session))
            };
            let mut questions = match subscribe() {
                Ok(questions) => questions,
                Err(error) => return pending.reject(error).await,
            };
            let Ok(sink) = pending.accept().await else { return };
            loop {
                let event = tokio::select! {
                    () = sink.closed() => return,
                    event = questions.next() => event,
                };
                let Ok(json) = to_raw_value(&event) else { continue };
                if sink.send(json).await.is_err() {
                    return;
                }
            }
        },
    )?;
    add::<QuestionsReply>(module, Right::Decider, |request, params: ReplyQuestion| {
        let by = Answerer { client: client_name(&request), connection: request.connection().id };
        let replied = reply(&request.state.engine, &params, by, None);
        replied.map(|()| Done {}).map_err(|error| match &error {
            ReplyError::Unknown(id) => unknown("request", id),
            ReplyError::NoAnswer(words) => invalid_params(words),
        })
    })
}
