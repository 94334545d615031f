//! `questions.*`

use jsonrpsee::types::SubscriptionId;
use toold_engine::questions::{QuestionReplyError, QuestionSubscription, reply};
use toold_proto::daemon::Done;
use toold_proto::error::{self, ErrorData};
use toold_proto::method::{QuestionsReply, QuestionsSubscribe, Subscription};
use toold_proto::permission::{Answerer, SubscribePrompts};
use toold_proto::question::ReplyQuestion;

use crate::rpc::error::{invalid_params, object, unknown};
use crate::rpc::permissions::session_of;
use crate::rpc::subscription::{ItemSubscriber, add_subscription};
use crate::rpc::{MethodRequest, MethodTable, Right, add, client_name, decides};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    let open = |request: &MethodRequest, wanted: SubscribePrompts, _: &SubscriptionId<'_>| {
        // A subscriber counts as able to answer.
        decides(QuestionsSubscribe::NAME, request)?;
        Ok(request.services.engine.questions.subscribe(session_of(request, &wanted)?))
    };
    add_subscription::<QuestionsSubscribe, _, _>(module, open, stream)?;
    add::<QuestionsReply>(module, Right::Decider, |request, params: ReplyQuestion| {
        let by = Answerer { client: client_name(&request), connection: request.connection().id };
        let replied = reply(&request.services.engine, &params, by, None);
        replied.map(|()| Done {}).map_err(|failed| match &failed {
            QuestionReplyError::Unknown(id) => unknown("request", id),
            QuestionReplyError::AlreadyAnswered(..) | QuestionReplyError::Ended(..) => {
                object(error::UNKNOWN, &failed.to_string(), ErrorData::new("unknown_request"))
            }
            QuestionReplyError::NoAnswer(words) => invalid_params(words),
        })
    })
}

async fn stream(subscriber: ItemSubscriber<QuestionsSubscribe>, mut questions: QuestionSubscription) {
    loop {
        let event = tokio::select! {
            () = subscriber.gone() => return,
            event = questions.next() => event,
        };
        if subscriber.send(&event).await.is_err() {
            return;
        }
    }
}
