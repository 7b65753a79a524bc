//! Reads the events of a run for one client: checks where it resumes, and ends with its token.

use axum::http::HeaderMap;
use futures_util::{Stream, stream::unfold};
use runner_engine::follow::{FollowEvent, Subscription};
use runner_store::Run;

use super::find;
use crate::{
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    stream_guard::StreamGuard,
};

/// Header with the id of the last event that a client has received (WHATWG HTML, server-sent events).
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

/// Source of a run's events, for one client.
pub(crate) struct EventSource {
    subscription: Subscription,
    guard: StreamGuard,
    has_ended: bool,
}

impl EventSource {
    /// Returns a source of the events after the one numbered `after`; `None` if the run has ended and has none.
    ///
    /// # Errors
    /// If the run does not exist for `caller`, `after` is ahead of it, or the caller holds too many streams.
    pub(crate) async fn open(
        context: &ApiContext,
        caller: Caller,
        run_id: &str,
        after: u64,
    ) -> Result<Option<Self>, Error> {
        let opened = context.opened().await?;
        let run = find(&opened.store, &caller, run_id).await?;
        let last = opened.store.last_event(&run.run_id).await?;
        if after > last {
            return Err(Error::Invalid(format!("the run has {last} events, and none after {after}")));
        }
        let has_ended = run.state.is_final();
        if has_ended && after == last {
            return Ok(None);
        }
        let guard = StreamGuard::acquire(context, &opened, caller)?;
        let subscription = opened.feeds.subscribe(&run.run_id, after);
        Ok(Some(Self { subscription, guard, has_ended }))
    }

    /// Returns a source of all events of a run's attempt. Its stream was admitted before the run was ordered.
    pub(crate) async fn of_ordered(
        opened: &OpenedStore,
        guard: StreamGuard,
        run: &Run,
    ) -> Result<Self, Error> {
        let after = opened.store.attempt_begin(run).await?;
        let subscription = opened.feeds.subscribe(&run.run_id, after);
        Ok(Self { subscription, guard, has_ended: run.state.is_final() })
    }

    /// Returns whether the run had ended when the source was opened: then no event has to be waited for.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the next event; `None` at the end of the run, at a stop, once the token is revoked, and if the store
    /// fails. After a stop or a failure, the client asks again for the events after the last one it has.
    pub(crate) async fn next(&mut self) -> Option<FollowEvent> {
        self.guard.next(self.subscription.next()).await
    }

    /// Returns all events as a stream.
    pub(crate) fn events(self) -> impl Stream<Item = FollowEvent> + Send {
        unfold(self, async |mut source| {
            let event = source.next().await?;
            Some((event, source))
        })
    }
}

/// Returns the number of the last event that the client has received, if it names one.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Error::Invalid("`Last-Event-ID` is not the number of an event".to_owned()))
}
