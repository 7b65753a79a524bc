//! Provides the store of a test: a file, or a Postgres server of its own.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use platform_core::{
    control::Usage,
    event::RunErrorCode,
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId},
    priority::Priority,
    secret::Secret,
};
use platform_runtime::poll::poll_until;
use runner_model::lifecycle::{Completion, Failure, Transition};
use runner_store::{Address, HostId, HostIdentity, NewRun, Store};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tempfile::TempDir;
use tokio::time::Instant;

/// Directory of Debian's Postgres programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// User that runs Postgres, which refuses to run as root. This one exists on every system.
const UNPRIVILEGED_UID: u32 = 65534;
/// Longest wait for a condition.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Store of a test, removed on drop.
#[derive(Debug)]
pub(crate) struct Database {
    server: Option<Server>,
    dir: TempDir,
}

#[derive(Debug)]
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Fast shutdown, which also removes its shared memory.
        let pid = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        if kill_process(pid, Signal::INT).is_ok() {
            drop(self.0.wait());
        }
    }
}

fn temporary() -> TempDir {
    tempfile::Builder::new().prefix("sluice-store-").tempdir_in("/tmp").unwrap()
}

/// Returns a command that runs a program of Postgres, as a user that it accepts.
fn postgres(program: &str) -> Command {
    let path = Path::new(PROGRAMS).join(program);
    assert!(path.exists(), "no {}: scripts/setup.sh tools installs it", path.display());
    if !rustix::process::geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(path);
    command
}

/// Returns the path of an empty cluster, which is created once per checkout because that takes seconds.
fn cluster() -> PathBuf {
    let cluster_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres-15");
    if cluster_dir.exists() {
        return cluster_dir;
    }
    let dir = temporary();
    if rustix::process::geteuid().is_root() {
        chown(dir.path(), Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
    }
    fs::write(dir.path().join("password"), SECRET).unwrap();
    let output = postgres("initdb")
        .current_dir(dir.path())
        .args(["--no-sync", "--wal-segsize=1", "--username=sluice", "--encoding=UTF8", "--locale=C.UTF-8"])
        .args(["--auth=trust", "--pwfile=password", "--pgdata=data"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // Of two processes that create one at once, the first wins.
    let copied = cluster_dir.with_extension(std::process::id().to_string());
    copy(&dir.path().join("data"), &copied);
    if fs::rename(&copied, &cluster_dir).is_err() {
        fs::remove_dir_all(&copied).unwrap();
    }
    cluster_dir
}

/// Copies a directory with its owners and modes.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self { server: None, dir: temporary() }
    }

    /// Starts a server that accepts every client that reaches its socket.
    pub(crate) async fn postgres() -> Self {
        Self::postgres_with_method("trust").await
    }

    /// Starts a server that asks for [`SECRET`].
    pub(crate) async fn postgres_with_password() -> Self {
        Self::postgres_with_method("scram-sha-256").await
    }

    async fn postgres_with_method(auth_method: &str) -> Self {
        let dir = temporary();
        let data = dir.path().join("data");
        copy(&cluster(), &data);
        if rustix::process::geteuid().is_root() {
            chown(dir.path(), Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
        }
        let hosts = data.join("pg_hba.conf");
        let text = fs::read_to_string(&hosts).unwrap().replace("trust", auth_method);
        fs::write(&hosts, text).unwrap();
        let mut database = Self { server: None, dir };
        database.start().await;
        database
    }

    /// Starts the server, even again after [`Database::stop`].
    pub(crate) async fn start(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let server = postgres("postgres")
            .arg("-D")
            .arg(self.dir.path().join("data"))
            .arg("-k")
            .arg(self.dir.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.server = Some(Server(server));
        let log = self.dir.path().join("log");
        let ready = async || fs::read_to_string(&log).unwrap().contains("ready to accept").then_some(());
        eventually("Postgres is ready", ready).await;
    }

    /// Stops the server.
    pub(crate) fn stop(&mut self) {
        self.server = None;
        fs::write(self.dir.path().join("log"), "").unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.server.is_some()
    }

    pub(crate) fn url(&self) -> String {
        let dir = self.dir.path().display();
        match &self.server {
            Some(_) => format!("postgres:///postgres?host={dir}&user=sluice"),
            None => format!("sqlite://{dir}/private/sluice.db"),
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

/// Password of the database.
pub(crate) const SECRET: &str = "pw-canary-51d0?&=/%40";

pub(crate) fn secret() -> Secret {
    Secret::new(SECRET.to_owned())
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
