//! coalesce lets callers at the same time share a refresh: one runs, and one more serves all that came meanwhile.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError},
    time::Duration,
};

use platform_core::id::RepoName;
use platform_runtime::settings::Settings;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    error::Error,
    refresh::{REFRESH_TIMEOUT, RefreshOutcome},
    repos::Repos,
};

/// Time beyond that of one refresh that a caller waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// Result of a refresh that several callers get.
pub type SharedOutcome = Result<RefreshOutcome, Arc<Error>>;

/// Refreshes of this process. Clones share them.
#[derive(Clone, Default)]
pub struct Refresher {
    lanes: Arc<std::sync::Mutex<BTreeMap<RepoName, Arc<Lane>>>>,
}

/// Refreshes of one repository.
#[derive(Debug, Default)]
struct Lane {
    /// Last refresh, with the time when it began. It is locked during the next.
    last: Mutex<Option<(Instant, SharedOutcome)>>,
}

impl fmt::Debug for Refresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refresher").finish_non_exhaustive()
    }
}

impl Refresher {
    /// Refreshes a repository, or takes the outcome of a refresh that another caller began after this call.
    ///
    /// # Errors
    /// As [`Repos::refresh`].
    pub async fn refresh(&self, settings: &Settings, name: &RepoName) -> SharedOutcome {
        let refresh = async { Repos::open(settings).await?.refresh(name).await };
        let shared = timeout(REFRESH_TIMEOUT + TURN_TIMEOUT, self.share(name, refresh)).await;
        shared.unwrap_or(Ok(RefreshOutcome::Pending))
    }

    async fn share(
        &self,
        name: &RepoName,
        refresh: impl Future<Output = Result<RefreshOutcome, Error>>,
    ) -> SharedOutcome {
        let asked = Instant::now();
        let lane = self.lane(name);
        let mut last = lane.last.lock().await;
        if let Some((began, outcome)) = last.as_ref()
            && *began >= asked
        {
            return outcome.clone();
        }
        let began = Instant::now();
        let outcome = refresh.await.map_err(Arc::new);
        *last = Some((began, outcome.clone()));
        outcome
    }

    fn lane(&self, name: &RepoName) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(name.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    fn name(text: &str) -> RepoName {
        RepoName::parse(text).unwrap()
    }

    /// Refreshes, each of which ends when it is let go.
    struct Refreshes {
        begun: AtomicUsize,
        let_go: Semaphore,
    }

    impl Refreshes {
        fn new() -> Self {
            Self { begun: AtomicUsize::new(0), let_go: Semaphore::new(0) }
        }

        /// Refreshes once, and returns its number.
        async fn next(&self) -> Result<RefreshOutcome, Error> {
            let number = self.begun.fetch_add(1, Ordering::Relaxed) as u64;
            self.let_go.acquire().await.unwrap().forget();
            Ok(RefreshOutcome::Shown { commit: String::new(), at_ns: number })
        }
    }

    #[tokio::test]
    async fn callers_at_once_cause_two_refreshes() {
        let refresher = Refresher::default();
        let refreshes = Refreshes::new();
        let web = name("web");
        let call = || refresher.share(&web, refreshes.next());
        // Each call is asked in its turn, and only then the first refresh ends.
        let ends = async { refreshes.let_go.add_permits(2) };
        let (a, b, c, d, e, ()) = tokio::join!(biased; call(), call(), call(), call(), call(), ends);
        let numbers = [a, b, c, d, e].map(|outcome| match outcome.unwrap() {
            RefreshOutcome::Shown { at_ns, .. } => at_ns,
            RefreshOutcome::Pending => unreachable!("it is shown"),
        });
        assert_eq!(numbers, [0, 1, 1, 1, 1], "each that waited asked before the second began");
        refreshes.let_go.add_permits(1);
        call().await.unwrap();
        let begun = refreshes.begun.load(Ordering::Relaxed);
        assert_eq!(begun, 3, "an outcome from before the call is none of the call's");
    }

    #[tokio::test]
    async fn an_abandoned_refresh_blocks_no_other() {
        let refresher = Refresher::default();
        let refreshes = Refreshes::new();
        let web = name("web");
        let call = || refresher.share(&web, refreshes.next());
        timeout(Duration::from_millis(10), call()).await.expect_err("it is not let go");
        refreshes.let_go.add_permits(1);
        call().await.unwrap();
        assert_eq!(refreshes.begun.load(Ordering::Relaxed), 2);
    }
}
