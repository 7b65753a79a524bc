//! Starts a Postgres server of a test's own, which the test may stop and pause.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use platform_runtime::poll::poll_until;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::program::{copy, program, psql, temporary};

/// Password of the user `sluice`, for which a server asks that was started with it.
pub const PASSWORD: &str = "pw-canary-51d0?&=/%40";

/// Database of a new cluster.
pub(crate) const FIRST: &str = "postgres";

/// Longest wait until a server is ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two looks at its log.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Server of a test's own, with one empty database. Stopped and removed on drop.
#[derive(Debug)]
pub struct Server {
    /// Absent while it is stopped.
    process: Option<Child>,
    dir: TempDir,
}

impl Server {
    /// Starts a server that accepts every client of its socket.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start() -> Self {
        Self::asking_by("trust").await
    }

    /// Starts a server that asks for [`PASSWORD`].
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_with_password() -> Self {
        Self::asking_by("scram-sha-256").await
    }

    async fn asking_by(auth_method: &str) -> Self {
        let mut server = Self { process: None, dir: temporary() };
        let data = server.dir.path().join("data");
        copy(&cluster(), &data);
        let hosts = data.join("pg_hba.conf");
        let text = fs::read_to_string(&hosts).unwrap().replace("trust", auth_method);
        fs::write(&hosts, text).unwrap();
        server.start_again().await;
        server
    }

    /// Starts a server with a program that creates the cluster, in the directory of its last argument.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn served_by(program: &mut Command) -> Self {
        let mut server = Self { process: None, dir: temporary() };
        let dir = server.dir.path().to_owned();
        server.serve(program.arg(dir)).await;
        server
    }

    /// Starts the server after [`Server::stop`].
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        let mut postgres = program("postgres");
        postgres.arg("-D").arg(self.dir.path().join("data")).arg("-k").arg(self.dir.path());
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]);
        self.serve(&mut postgres).await;
    }

    async fn serve(&mut self, command: &mut Command) {
        let log = self.dir.path().join("log");
        let output = fs::File::create(&log).unwrap();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).spawn().unwrap();
        self.process = Some(process);
        let said = || fs::read_to_string(&log).unwrap();
        let ready = async || said().contains("ready to accept").then_some(());
        let started = poll_until(Instant::now() + START_TIMEOUT, LOOK_INTERVAL, ready).await;
        assert!(started.is_some(), "Postgres is not ready within {START_TIMEOUT:?}: {}", said());
    }

    /// Stops the server: its clients lose their connections.
    pub fn stop(&mut self) {
        self.resume();
        if let Some(mut process) = self.process.take() {
            // SIGINT requests the fast shutdown, which removes the shared memory.
            signal(process.id().cast_signed(), Signal::INT);
            drop(process.wait());
        }
    }

    /// Suspends the server: queries and new connections wait.
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Resumes the server.
    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, which: Signal) {
        let Some(process) = &self.process else { return };
        let server = process.id();
        // The list is absent once the server has ended.
        let children =
            fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        for pid in std::iter::once(server.cast_signed()).chain(children) {
            signal(pid, which);
        }
    }

    /// Returns the directory of its socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the address of its database in the form of `store.url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres:///postgres?host={}&user=sluice", self.dir.path().display())
    }

    /// Returns the address of its database in the form of LiteLLM's `DATABASE_URL`.
    #[must_use]
    pub fn prisma_url(&self) -> String {
        format!("postgresql://sluice@localhost/postgres?host={}", self.dir.path().display())
    }

    /// Returns what a query of its database prints, without the names of columns.
    ///
    /// # Panics
    /// If the query fails.
    #[must_use]
    pub fn query(&self, query: &str) -> String {
        psql(self.dir.path(), FIRST, query)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Signals a process, which may have ended.
fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).ok();
}

/// Returns the directory of an empty cluster. It is created once per checkout, because that takes seconds.
fn cluster() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let cluster = own.ancestors().nth(3).unwrap().join("tmp/postgres-15");
    if cluster.exists() {
        return cluster;
    }
    fs::create_dir_all(cluster.parent().unwrap()).unwrap();
    let dir = temporary();
    fs::write(dir.path().join("password"), PASSWORD).unwrap();
    let output = program("initdb")
        .current_dir(dir.path())
        .args(["--no-sync", "--wal-segsize=1", "--username=sluice", "--encoding=UTF8", "--locale=C.UTF-8"])
        .args(["--auth=trust", "--pwfile=password", "--pgdata=data"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // If two tests create a cluster at once, the first rename wins.
    let ours = cluster.with_extension(std::process::id().to_string());
    copy(&dir.path().join("data"), &ours);
    if fs::rename(&ours, &cluster).is_err() {
        fs::remove_dir_all(&ours).unwrap();
    }
    cluster
}
