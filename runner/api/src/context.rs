//! Holds the state that all requests share.

use std::{sync::Arc, time::Duration};

use platform_core::{id::AccountId, secret::Secret};
use platform_runtime::settings::Settings;
use runner_connections::ConnectionBroker;
use runner_control_client::DataPlane;
use runner_engine::{
    agents::Catalog,
    current_settings::CurrentSettings,
    follow::{Feeds, RunFeed},
    observer::Observer,
    relay::GitHubAccess,
};
use runner_repos::Refresher;
use runner_store::Store;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    attempts::AttemptLimit, callbacks::Callbacks, configuration_file::ConfigurationFile, error::Error,
    fair_permits::FairPermits, origins::Origins, sign_in_attempts::SignInAttempts,
    stream_permits::StreamPermits, waiters::Waiters,
};

/// Longest time for which a request waits for the store to be opened.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Most orders with a body in memory at a time, and most of one account.
const MAX_ORDERS: usize = 8;
const MAX_ORDERS_OF_ACCOUNT: usize = 3;
/// Most requests that read the files of runs at a time, and most of one account.
const MAX_FILE_JOBS: usize = 2;
const MAX_FILE_JOBS_OF_ACCOUNT: usize = 1;

/// Reports of browsers that are taken at once, and the interval of further ones.
const REPORTS_AT_ONCE: u32 = 30;
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// State that all requests share. Clones share it, too.
#[derive(Debug, Clone)]
pub struct ApiContext {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) observer: Observer,
    /// Account of requests without a token; absent if each needs one.
    pub(crate) anonymous_account: Option<AccountId>,
    pub(crate) stream_permits: StreamPermits,
    /// Clients that wait for completions.
    pub(crate) waiters: Waiters,
    /// Origins of the API's own pages.
    pub(crate) origins: Origins,
    /// Token that ends streams, so that their clients resume them elsewhere.
    pub(crate) stop: CancellationToken,
    pub(crate) data_plane: DataPlane,
    /// Refreshes of mirrored repositories, which requests share.
    pub(crate) refresher: Refresher,
    /// Permits for work on the files of runs, which blocks threads.
    pub(crate) file_jobs: FairPermits,
    /// Permits for orders, which may have large bodies.
    pub(crate) orders: FairPermits,
    pub(crate) sign_in_attempts: SignInAttempts,
    /// Bound on reports of browsers.
    pub(crate) csp_reports: AttemptLimit,
    opened: Arc<watch::Sender<Option<Arc<OpenedStore>>>>,
    callbacks: Callbacks,
    configuration: Option<Arc<ConfigurationFile>>,
    /// GitHub, for which orders of pull requests need a credential; not checked if absent.
    pub(crate) github: Option<Arc<GitHubAccess>>,
    /// Token of callbacks from the environment.
    ingest_token: Option<Arc<Secret>>,
}

/// Store of runs, with the feeds of those that clients follow.
#[derive(Debug)]
pub(crate) struct OpenedStore {
    pub(crate) store: Store,
    pub(crate) feeds: Feeds,
    pub(crate) run_feed: RunFeed,
    pub(crate) connections: ConnectionBroker,
}

impl ApiContext {
    /// Returns the state of an API under `settings`, which has no store yet. Its streams end when `stop` is triggered.
    #[must_use]
    pub fn of(
        settings: &Settings,
        catalog: Arc<Catalog>,
        observer: Observer,
        stop: CancellationToken,
    ) -> Self {
        Self {
            catalog,
            sign_in_attempts: SignInAttempts::new(Arc::clone(&observer.metrics)),
            csp_reports: AttemptLimit::new(REPORTS_AT_ONCE, REPORT_INTERVAL),
            observer,
            anonymous_account: settings.api.anonymous_account.clone(),
            stream_permits: StreamPermits::default(),
            waiters: Waiters::default(),
            origins: Origins::default(),
            stop,
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            refresher: Refresher::default(),
            file_jobs: FairPermits::new(MAX_FILE_JOBS, MAX_FILE_JOBS_OF_ACCOUNT),
            orders: FairPermits::new(MAX_ORDERS, MAX_ORDERS_OF_ACCOUNT),
            opened: Arc::default(),
            callbacks: Callbacks::channel().0,
            configuration: None,
            github: None,
            ingest_token: None,
        }
    }

    /// Returns the same state for an API with pages of these origins.
    pub(crate) fn with_origins(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// Returns the same state, which passes callbacks of LiteLLM to `callbacks`. Unless a file has their token, it is
    /// `token`.
    #[must_use]
    pub fn with_callbacks(self, callbacks: Callbacks, token: Option<Arc<Secret>>) -> Self {
        Self { callbacks, ingest_token: token, ..self }
    }

    /// Returns the same state, which shares refreshes of mirrored repositories with other callers of `refresher`.
    #[must_use]
    pub fn with_refresher(self, refresher: Refresher) -> Self {
        Self { refresher, ..self }
    }

    /// Returns the same state, which refuses orders of pull requests while `github` has no credential.
    #[must_use]
    pub fn with_github(self, github: Arc<GitHubAccess>) -> Self {
        Self { github: Some(github), ..self }
    }

    /// Returns the same state, which drafts agents for this file.
    #[must_use]
    pub fn with_configuration(self, configuration: ConfigurationFile) -> Self {
        Self { configuration: Some(Arc::new(configuration)), ..self }
    }

    /// Returns the configuration file, for drafts.
    pub(crate) fn configuration(&self) -> Option<&ConfigurationFile> {
        self.configuration.as_deref()
    }

    /// Returns the token of callbacks from the environment.
    pub(crate) fn ingest_token(&self) -> Option<Arc<Secret>> {
        self.ingest_token.clone()
    }

    /// Returns the queue of callbacks.
    pub(crate) const fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Gives the API its store, for requests from now on.
    pub fn open(&self, store: Store) {
        let feeds = Feeds::of(store.clone(), self.data_plane.clone());
        let run_feed = RunFeed::of(store.clone());
        let metrics = Arc::clone(&self.observer.metrics);
        let connections = ConnectionBroker::of(&self.settings().get(), store.clone(), metrics);
        let opened = OpenedStore { store, feeds, run_feed, connections };
        self.opened.send_replace(Some(Arc::new(opened)));
    }

    /// Stops the API, and all else that shares its token.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the stop of the API.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Returns the store, and waits a moment for it if the API has just started.
    pub(crate) async fn opened(&self) -> Result<Arc<OpenedStore>, Error> {
        let mut opened = self.opened.subscribe();
        let waited = timeout(OPEN_TIMEOUT, opened.wait_for(Option::is_some)).await;
        let found = waited.ok().and_then(Result::ok).and_then(|opened| opened.clone());
        found.ok_or(Error::Starting)
    }

    /// Returns the latest configuration.
    pub(crate) fn settings(&self) -> CurrentSettings {
        self.catalog.settings()
    }
}
