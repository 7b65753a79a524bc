//! Provides the store of a test: a file, a Postgres database, or a Postgres server.

use std::{path::Path, time::Duration};

use platform_core::{
    control::Usage,
    event::RunErrorCode,
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId},
    priority::Priority,
};
use platform_runtime::poll::poll_until;
use runner_model::lifecycle::{Completion, Failure, Transition};
use runner_store::{Address, HostId, HostIdentity, NewRun, Store};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tempfile::TempDir;
use test_postgres::Server;
use tokio::time::Instant;

/// Longest wait for a condition.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Store of a test, removed on drop.
#[derive(Debug)]
pub(crate) struct Database {
    place: Place,
    dir: TempDir,
}

/// Place of a store's rows.
#[derive(Debug)]
enum Place {
    File,
    Database(test_postgres::Database),
    Server(Server),
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::at(Place::File)
    }

    pub(crate) async fn postgres() -> Self {
        Self::at(Place::Database(test_postgres::Database::create().await))
    }

    /// Starts its own server, which a test may stop.
    pub(crate) async fn server() -> Self {
        Self::at(Place::Server(Server::start().await))
    }

    fn at(place: Place) -> Self {
        let dir = tempfile::Builder::new().prefix("sluice-store-").tempdir_in("/tmp").unwrap();
        Self { place, dir }
    }

    /// Stops the server, which is its own.
    pub(crate) fn stop(&mut self) {
        self.own_server().stop();
    }

    /// Starts the server again.
    pub(crate) async fn start(&mut self) {
        self.own_server().start_again().await;
    }

    fn own_server(&mut self) -> &mut Server {
        let Place::Server(server) = &mut self.place else { panic!("others may use the server") };
        server
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn is_postgres(&self) -> bool {
        !matches!(self.place, Place::File)
    }

    pub(crate) fn url(&self) -> String {
        match &self.place {
            Place::File => format!("sqlite://{}/private/sluice.db", self.dir.path().display()),
            Place::Database(database) => database.url(),
            Place::Server(server) => server.url(),
        }
    }

    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url(), None).unwrap()
    }

    /// Runs statements on the database without the store.
    pub(crate) async fn behind_its_back(&self, statements: &str) {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Returns the number that a query of the database counts.
    pub(crate) async fn count(&self, query: &'static str) -> i64 {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url()).await.unwrap();
        let count = sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        count
    }

    /// Opens another client of the store.
    pub(crate) async fn open(&self) -> Store {
        self.open_of("here").await
    }

    /// Opens the store for another installation.
    pub(crate) async fn open_of(&self, installation: &str) -> Store {
        let store = Store::open(&self.address(), InstallationId::parse(installation).unwrap()).await.unwrap();
        store.serving(host(1)).await.unwrap()
    }
}

pub(crate) async fn open(address: &Address) -> Result<Store, runner_store::Error> {
    Store::open(address, InstallationId::parse("here").unwrap()).await
}

/// Polls until `poll` returns a value.
pub(crate) async fn eventually<T>(what: &str, poll: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + EVENTUALLY_TIMEOUT;
    let value = poll_until(deadline, POLL_INTERVAL, async || poll().await).await;
    value.unwrap_or_else(|| panic!("{what}: not within {EVENTUALLY_TIMEOUT:?}"))
}

/// Returns the host with this number.
pub(crate) fn host(number: u128) -> HostIdentity {
    HostIdentity { id: HostId::from_random(number), name: format!("host-{number}") }
}

pub(crate) fn id(run: &str) -> RunId {
    RunId::parse(run).unwrap()
}

/// Returns an ordinary order of the run `run`.
pub(crate) fn order(run: &str) -> NewRun {
    NewRun {
        run_id: id(run),
        account: AccountId::parse("acct-1").unwrap(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        correlation: Correlation::default(),
        priority: Priority::default(),
        session: None,
        turn: None,
        model: Some("fake".to_owned()),
        question: Some(format!("what is {run}?")),
        wanted: r#"{"model":"fake"}"#.to_owned(),
    }
}

/// Returns the transitions of a run that succeeds.
pub(crate) fn transitions() -> [Transition; 5] {
    let completion =
        Completion { exit_code: Some(0), oom_seen: Some(false), answer: Ok("answer".to_owned()) };
    [
        Transition::Prepare,
        Transition::Start,
        Transition::Run,
        Transition::Settle(completion),
        Transition::Finish(Some(Usage::default())),
    ]
}

pub(crate) fn cancelled() -> Failure {
    Failure::new(RunErrorCode::Cancelled, "cancelled")
}
