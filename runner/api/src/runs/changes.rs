//! Streams runs as they are ordered and change their state.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use futures_util::{Stream, stream::unfold};
use runner_engine::follow::RunSubscription;
use runner_store::{AccountScope, Run};
use serde_json::json;

use super::view::RunView;
use crate::{
    body::refuse_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    stream_guard::StreamGuard,
    stream_response::{StreamItem, stream_response},
};

/// Streams the caller's runs whenever one is new or in another state.
pub(crate) async fn changes(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let opened = context.opened().await?;
    let guard = StreamGuard::acquire(&context, &opened, caller.clone())?;
    let source = ChangeSource { subscription: opened.run_feed.subscribe().await?, guard, caller };
    Ok(stream_response(request.headers(), source.items()))
}

/// Source of changed runs, for one client.
struct ChangeSource {
    subscription: RunSubscription,
    guard: StreamGuard,
    caller: Caller,
}

impl ChangeSource {
    fn items(self) -> impl Stream<Item = StreamItem> + Send {
        unfold(self, async |mut source| {
            let item = source.next().await?;
            Some((item, source))
        })
    }

    /// Returns the next changed run of the caller's accounts; `None` at the end of the stream.
    async fn next(&mut self) -> Option<StreamItem> {
        loop {
            let run = self.guard.next(async { Ok(self.subscription.next().await) }).await?;
            if is_within(&run, &self.caller.scope()) {
                return Some(StreamItem { seq: None, json: json!(RunView::of(&run, &self.caller)) });
            }
        }
    }
}

fn is_within(run: &Run, scope: &AccountScope) -> bool {
    match scope {
        AccountScope::All => true,
        AccountScope::Only(account) => run.account == *account,
    }
}
