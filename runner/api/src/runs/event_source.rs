//! Reads the events of a followed run for one client, and notices when the client may read no further.

use std::{sync::Arc, time::Duration};

use platform_core::id::RunId;
use platform_runtime::report;
use runner_engine::follow::{FollowEvent, Subscription};
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    stream_permits::StreamPermit,
};

/// Interval between two checks of the token of an open stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Source of a stream's events.
pub(crate) struct EventSource {
    subscription: Subscription,
    caller: Caller,
    opened: Arc<OpenedStore>,
    stop: CancellationToken,
    /// Times at which the caller's token is checked again.
    check: Interval,
    _permit: StreamPermit,
}

/// Item of an event source.
pub(crate) enum SourceItem {
    Event(FollowEvent),
    /// The run has ended, and all its events were returned.
    Ended,
    /// The server stops, the caller's token was revoked, or the store failed. The run goes on.
    Interrupted,
}

impl EventSource {
    /// Opens a source of the run's events after the one numbered `after`, as one of the caller's streams.
    pub(crate) fn open(
        context: &ApiContext,
        opened: Arc<OpenedStore>,
        caller: Caller,
        run_id: &RunId,
        after: u64,
    ) -> Result<Self, Error> {
        let permit = context.stream_permits.acquire(caller.name()).ok_or(Error::TooManyStreams)?;
        let subscription = opened.feeds.subscribe(run_id, after);
        let stop = context.stop.clone();
        let check = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        Ok(Self { subscription, caller, opened, stop, check, _permit: permit })
    }

    /// Waits for the next item. Cancel safe.
    pub(crate) async fn next(&mut self) -> SourceItem {
        let next = loop {
            tokio::select! {
                next = self.subscription.next() => break next,
                () = self.stop.cancelled() => return SourceItem::Interrupted,
                _ = self.check.tick() => match self.caller.is_still_valid(&self.opened.store).await {
                    Ok(true) => {}
                    Ok(false) => return SourceItem::Interrupted,
                    Err(error) => break Err(error),
                },
            }
        };
        match next {
            Ok(Some(event)) => SourceItem::Event(event),
            Ok(None) => SourceItem::Ended,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "a stream of events breaks off");
                SourceItem::Interrupted
            }
        }
    }
}
