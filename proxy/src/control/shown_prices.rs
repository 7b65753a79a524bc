//! Keeps the prices that the upstream shows up to date, in the background: no call waits for them.
//!
//! A failure changes no price, and is logged when it begins. Until the upstream has answered once, calls that need a
//! price wait for none: they are refused for a moment.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::control::ShownPrices as State;
use platform_runtime::{report, sync::Mutex};
use tokio::sync::Notify;

use super::Control;
use crate::{
    exchange::Snapshot,
    upstream::{ModelInfoError, ModelPrices},
};

/// Time until the prices are read again.
const READ_INTERVAL: Duration = Duration::from_secs(300);
/// Time until they are read again from an upstream that did not answer: LiteLLM may start after this proxy.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// State of the prices that the upstream shows. The prices are in the [`Snapshot`].
#[derive(Debug, Default)]
pub(crate) struct ShownPrices {
    state: Mutex<State>,
    again: Notify,
}

impl ShownPrices {
    pub(crate) fn state(&self) -> State {
        *self.state.lock()
    }

    /// Requests that the prices are read at once: the configuration has changed.
    pub(super) fn read_again(&self) {
        self.again.notify_one();
    }

    /// Sets the state; returns whether it is another one.
    fn change(&self, state: State) -> bool {
        std::mem::replace(&mut *self.state.lock(), state) != state
    }
}

impl Control {
    /// Reads the prices again and again. Runs for ever.
    pub(crate) async fn read_shown_prices(&self) {
        loop {
            let pause = self.read_prices_once().await;
            let asked = self.shown_prices.again.notified();
            // The time that passes first ends the pause.
            let _passed = tokio::time::timeout(pause, asked).await;
        }
    }

    /// Reads the prices, and returns the time until they are to be read again.
    async fn read_prices_once(&self) -> Duration {
        if !self.config.load().settings.upstream.model_info {
            self.show(BTreeMap::new()).await;
            self.shown_prices.change(State::Off);
            return READ_INTERVAL;
        }
        let authorization = self.snapshot.load().authorization.clone();
        match self.upstream.model_prices(authorization.as_ref()).await {
            Ok(prices) => {
                let models = prices.len();
                if self.show(prices).await | self.shown_prices.change(State::Read) {
                    tracing::info!(models, "read the prices that the upstream shows");
                }
                READ_INTERVAL
            }
            Err(error) => {
                let has_answered = !matches!(error, ModelInfoError::Unanswered { .. });
                if has_answered && self.snapshot.load().prices.shown().is_none() {
                    self.show(BTreeMap::new()).await;
                }
                self.keep_prices(&error)
            }
        }
    }

    /// Notes that no prices were read, and returns the time until the next attempt.
    fn keep_prices(&self, error: &ModelInfoError) -> Duration {
        let (state, pause) = match error {
            ModelInfoError::Refused { status } if status.is_client_error() => (State::Refused, READ_INTERVAL),
            ModelInfoError::Refused { .. } | ModelInfoError::Unanswered { .. } => {
                (State::Failed, RETRY_INTERVAL)
            }
            ModelInfoError::TooLarge { .. }
            | ModelInfoError::TooMany { .. }
            | ModelInfoError::Unreadable(_) => (State::Failed, READ_INTERVAL),
        };
        let error = report::chain(error);
        match (self.shown_prices.change(state), state) {
            (false, _) => tracing::debug!(error, "the upstream still shows no prices"),
            // An upstream that is not LiteLLM has none.
            (true, State::Refused) => tracing::info!(error, "the upstream shows no prices"),
            (true, _) => tracing::warn!(error, "the prices that the upstream shows were not read"),
        }
        pause
    }

    /// Gives calls these prices; returns whether they are other ones.
    async fn show(&self, prices: ModelPrices) -> bool {
        // A reload replaces the snapshot, too.
        let _one_at_a_time = self.reloading.lock().await;
        let before = self.snapshot.load_full();
        if before.prices.shown().is_some_and(|shown| **shown == prices) {
            return false;
        }
        let mut after = Snapshot::clone(&before);
        after.prices = after.prices.showing(Some(Arc::new(prices)));
        self.snapshot.store(Arc::new(after));
        true
    }
}
