//! refresh gets an access token once for all callers that need it, in this process and in others.
//!
//! A refresh is a task: it goes on without its callers, so that what a provider gave is stored. The right to refresh is in
//! the store: a provider may replace the refresh token with each use, and two processes would use one.

use std::time::Duration;

use futures_util::FutureExt as _;
use platform_core::connection::{ConnectionId, ConnectionState};
use platform_runtime::{report, retry::Backoff, task};
use runner_model::connection_refresh::RefreshResult;
use runner_store::{RefreshClaim, RefreshEnd, RefreshLease, StoredConnection, UnixMillis};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    broker::ConnectionBroker,
    content::SealedContent,
    error::CredentialError,
    in_flight::Flight,
    oauth::TokenRequest,
    seal::Binding,
    token_answer::{GivenTokens, RefreshFault},
};

/// Longest time for which tokens that were given are kept until the store takes them.
const STORE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time of the right to refresh beside the wait for the provider and for the store: two clocks run differently.
const LEASE_GRACE: Duration = Duration::from_secs(15);
/// Time for which callers wait, beside the wait for the provider.
const CALLER_GRACE: Duration = Duration::from_secs(2);
/// Delays before another look at a connection that another process refreshes.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Mark of a refresh in flight, until it has ended.
struct FlightMark {
    broker: ConnectionBroker,
    id: ConnectionId,
}

impl Drop for FlightMark {
    fn drop(&mut self) {
        self.broker.flights().lock().remove(&self.id);
    }
}

impl ConnectionBroker {
    /// Refreshes a connection as it was read, unless that has been done meanwhile. Cancel safe.
    pub(crate) async fn refresh(&self, read: &StoredConnection) -> Result<StoredConnection, CredentialError> {
        let flight = self.flight(read);
        let max = self.refresh_timeout() + CALLER_GRACE;
        match timeout(max, flight).await {
            Ok(refreshed) => refreshed,
            Err(_elapsed) => Err(CredentialError::ProviderUnavailable {
                provider: read.place.provider.clone(),
                problem: format!("the refresh did not end within {} s", max.as_secs_f32()),
            }),
        }
    }

    fn flight(&self, read: &StoredConnection) -> Flight {
        let mut flights = self.flights().lock();
        if let Some(flight) = flights.get(&read.id) {
            return flight.clone();
        }
        let mark = FlightMark { broker: self.clone(), id: read.id.clone() };
        let provider = read.place.provider.clone();
        let refreshing = self.clone().refresh_once(read.clone());
        // The lock is held until the flight is listed: the mark is dropped later.
        let task = task::spawn("connection refresh", async move {
            let _mark = mark;
            refreshing.await
        });
        let broken = move |_panicked| {
            Err(CredentialError::ProviderUnavailable {
                provider,
                problem: "the refresh broke off: see the log".to_owned(),
            })
        };
        let flight = async move { task.await.unwrap_or_else(broken) }.boxed().shared();
        flights.insert(read.id.clone(), flight.clone());
        flight
    }

    async fn refresh_once(self, read: StoredConnection) -> Result<StoredConnection, CredentialError> {
        let (granted, deadline) = match self.claim(&read).await? {
            Claimed::Granted { granted, deadline } => (granted, deadline),
            Claimed::Done(done) => return usable(done),
        };
        let refreshed = self.ask(&granted, deadline).await;
        let result = match &refreshed {
            Ok(_) => RefreshResult::Refreshed,
            Err(CredentialError::NeedsAuthorisation { .. }) => RefreshResult::NeedsAuthorisation,
            Err(CredentialError::ProviderUnavailable { .. } | CredentialError::Store(_)) => {
                RefreshResult::Unavailable
            }
            Err(_) => RefreshResult::Refused,
        };
        self.count(result);
        match &refreshed {
            Ok(_) => tracing::info!(
                connection = %granted.id,
                account = %granted.place.account,
                provider = %granted.place.provider,
                "connection refreshed"
            ),
            Err(error) => tracing::warn!(
                connection = %granted.id,
                account = %granted.place.account,
                provider = %granted.place.provider,
                error = report::chain(error),
                "connection not refreshed"
            ),
        }
        refreshed
    }

    /// Waits for the right to refresh.
    async fn claim(&self, read: &StoredConnection) -> Result<Claimed, CredentialError> {
        let times = RefreshTimes::of(self.refresh_timeout());
        let lease = RefreshLease { owner: self.owner(), duration: times.lease() };
        let mut looks = Backoff::new(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let mut read = read.clone();
        loop {
            // Before the right begins: it ends later than it is used.
            let deadline = Instant::now() + times.use_of_lease();
            match self.store().claim_refresh(&read, &lease).await? {
                RefreshClaim::Granted(granted) => return Ok(Claimed::Granted { granted, deadline }),
                // Another key has sealed it, and its access token is as old as before.
                RefreshClaim::Changed(changed) if is_resealed(&read, &changed) => read = changed,
                RefreshClaim::Changed(changed) => return Ok(Claimed::Done(changed)),
                RefreshClaim::Busy => looks.wait().await,
                RefreshClaim::Gone => {
                    let place = read.place.clone();
                    return Err(no_connection(place));
                }
            }
        }
    }

    /// Asks the provider, and stores what it gave before anything uses it.
    async fn ask(
        &self,
        granted: &StoredConnection,
        deadline: Instant,
    ) -> Result<StoredConnection, CredentialError> {
        let provider = &granted.place.provider;
        let prepared = self.keys().and_then(|keys| {
            let opened = keys.open(granted);
            let content = opened.map_err(|fault| CredentialError::unopened(&granted.id, fault))?;
            Ok((content, self.provider(granted)?))
        });
        let (content, settings) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(self.give_up(granted, RefreshEnd::Failed, error).await),
        };
        let request = TokenRequest {
            provider: settings,
            refresh_token: &content.secret,
            timeout: self.refresh_timeout(),
        };
        let (end, error) = match request.send().await {
            Ok(given) => return self.keep(granted, content, given, deadline).await,
            Err(RefreshFault::InvalidGrant) => {
                let connection = granted.id.clone();
                let error = CredentialError::NeedsAuthorisation { connection, provider: provider.clone() };
                (RefreshEnd::NeedsAuthorisation, error)
            }
            Err(RefreshFault::Refused(code)) => {
                (RefreshEnd::Failed, CredentialError::ProviderRefused { provider: provider.clone(), code })
            }
            Err(RefreshFault::Unavailable(problem)) => {
                let error = CredentialError::ProviderUnavailable { provider: provider.clone(), problem };
                (RefreshEnd::Failed, error)
            }
        };
        Err(self.give_up(granted, end, error).await)
    }

    /// Stores tokens, and tries for as long as no other process may refresh: the provider may take the former refresh token
    /// no longer.
    async fn keep(
        &self,
        granted: &StoredConnection,
        former: SealedContent,
        given: GivenTokens,
        deadline: Instant,
    ) -> Result<StoredConnection, CredentialError> {
        let lifetime = i64::try_from(given.lifetime.as_millis()).unwrap_or(i64::MAX);
        let content =
            SealedContent { secret: given.refresh.unwrap_or(former.secret), access: Some(given.access) };
        let sealed = self.keys()?.seal(Binding::of(granted), &content);
        let sealed = sealed.map_err(|fault| CredentialError::unopened(&granted.id, fault))?;
        let expires = Some(UnixMillis(granted.read.0.saturating_add(lifetime)));
        let end = RefreshEnd::Refreshed { sealed, expires };
        let storing = async {
            let mut delays = Backoff::new(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
            loop {
                match self.store().end_refresh(granted, self.owner(), &end).await {
                    Ok(Some(stored)) => return Ok(stored),
                    // It was removed, or replaced: what was got belongs to no connection.
                    Ok(None) => return Err(no_connection(granted.place.clone())),
                    Err(error) => {
                        tracing::error!(
                            connection = %granted.id,
                            error = report::chain(&error),
                            "refreshed connection not stored yet: another try follows"
                        );
                        delays.wait().await;
                    }
                }
            }
        };
        timeout_at(deadline, storing).await.unwrap_or_else(|_elapsed| {
            Err(CredentialError::ProviderUnavailable {
                provider: granted.place.provider.clone(),
                problem: "its answer could not be stored in time: see the log".to_owned(),
            })
        })
    }

    /// Stores that the refresh gave no credential, and returns the reason.
    async fn give_up(
        &self,
        granted: &StoredConnection,
        end: RefreshEnd,
        error: CredentialError,
    ) -> CredentialError {
        if let Err(unstored) = self.store().end_refresh(granted, self.owner(), &end).await {
            // The right ends by itself.
            tracing::warn!(
                connection = %granted.id,
                error = report::chain(&unstored),
                "the end of a refresh was not stored"
            );
        }
        error
    }
}

/// Connection that this process refreshes, or another has refreshed.
enum Claimed {
    Granted {
        granted: StoredConnection,
        /// Time after which another process may refresh it, with a margin.
        deadline: Instant,
    },
    Done(StoredConnection),
}

/// Times of a refresh. The right to it is longer than its use, whatever the settings say.
#[derive(Debug, Clone, Copy)]
struct RefreshTimes {
    /// Longest wait for the provider.
    provider: Duration,
}

impl RefreshTimes {
    const fn of(provider: Duration) -> Self {
        Self { provider }
    }

    /// Returns the time in which the provider is asked, and its answer is stored.
    const fn use_of_lease(self) -> Duration {
        self.provider.saturating_add(STORE_TIMEOUT)
    }

    /// Returns the time after which another process may refresh.
    const fn lease(self) -> Duration {
        self.use_of_lease().saturating_add(LEASE_GRACE)
    }
}

const _: () = assert!(
    STORE_TIMEOUT.as_secs() < RefreshTimes::of(Duration::ZERO).lease().as_secs(),
    "a token is stored while no other process may refresh"
);

fn no_connection(place: runner_store::ConnectionPlace) -> CredentialError {
    CredentialError::NoConnection { account: place.account, provider: place.provider, scope: place.scope }
}

/// Returns whether nothing but the key has changed that seals a connection.
fn is_resealed(read: &StoredConnection, changed: &StoredConnection) -> bool {
    changed.refreshed == read.refreshed && changed.state == ConnectionState::Active
}

/// Returns a connection that another refresh has left, if it may be used.
fn usable(stored: StoredConnection) -> Result<StoredConnection, CredentialError> {
    match stored.state {
        ConnectionState::Active => Ok(stored),
        ConnectionState::NeedsAuthorisation => Err(CredentialError::NeedsAuthorisation {
            connection: stored.id,
            provider: stored.place.provider,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_to_refresh_outlasts_its_use() {
        for provider in [Duration::ZERO, Duration::from_secs(15), Duration::from_secs(3600)] {
            let times = RefreshTimes::of(provider);
            assert!(times.lease() >= provider + STORE_TIMEOUT + LEASE_GRACE, "{provider:?}");
            assert!(times.lease() > times.use_of_lease(), "{provider:?}");
        }
    }
}
