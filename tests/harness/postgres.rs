//! Starts a Postgres server of the test's own, for tests of several programs on one store.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use runner_store::{Address, Store};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::{World, eventually, process};

/// Directory of Debian's programs that initialise and serve a database.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Uid and gid of Debian's unprivileged user: Postgres refuses to run as root.
const NOBODY: u32 = 65534;

/// A server that accepts every client of its socket. Stopped and removed on drop.
#[derive(Debug)]
pub struct Postgres {
    server: Child,
    dir: TempDir,
}

impl Postgres {
    /// Starts a server with an empty database.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start() -> Self {
        let dir = temporary();
        copy(&cluster(), &dir.path().join("data"));
        chown_to_server(dir.path());
        let mut server = program("postgres");
        server.arg("-D").arg(dir.path().join("data")).arg("-k").arg(dir.path());
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]);
        Self::serve(&mut server, dir).await
    }

    /// Starts a server with a program that creates the database, in the directory of its last argument.
    pub(crate) async fn served_by(program: &mut Command) -> Self {
        let dir = temporary();
        Self::serve(program.arg(dir.path()), dir).await
    }

    async fn serve(command: &mut Command, dir: TempDir) -> Self {
        let log = dir.path().join("log");
        let output = fs::File::create(&log).unwrap();
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).spawn().unwrap();
        let postgres = Self { server, dir };
        let output = || async { fs::read_to_string(&log).unwrap() };
        eventually("Postgres is ready", output, |output| output.contains("ready to accept")).await;
        postgres
    }

    /// Returns its address in the form of `store.url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres:///postgres?host={}&user=sluice", self.dir.path().display())
    }

    /// Returns its address in the form of LiteLLM's `DATABASE_URL`.
    #[must_use]
    pub fn prisma_url(&self) -> String {
        format!("postgresql://sluice@localhost/postgres?host={}", self.dir.path().display())
    }

    /// Configures `world` to keep its store in this database, and opens the store.
    ///
    /// # Panics
    /// If the store cannot be opened.
    pub async fn keep(&self, world: &World) -> Store {
        let sqlite = format!("sqlite://{}/store/sluice.db", world.path().display());
        world.reconfigure(&sqlite, &self.url());
        let address = Address::parse(&self.url(), None).unwrap();
        Store::open(&address, world.installation().parse().unwrap()).await.unwrap()
    }

    /// Returns what `psql` prints for a query, without the names of columns.
    ///
    /// # Panics
    /// If the query fails.
    #[must_use]
    pub fn query(&self, query: &str) -> String {
        let output = program("psql")
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--username=sluice", "--dbname=postgres"])
            .arg("--host")
            .arg(self.dir.path())
            .args(["--command", query])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Suspends the server: queries and new connections wait.
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Resumes the server.
    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let server = self.server.id();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        for pid in std::iter::once(server.cast_signed()).chain(children) {
            // A process without a client may have ended.
            kill_process(Pid::from_raw(pid).unwrap(), signal).ok();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.resume();
        // SIGINT requests the fast shutdown, which removes the shared memory.
        let pid = Pid::from_raw(self.server.id().cast_signed()).unwrap();
        if kill_process(pid, Signal::INT).is_ok() {
            drop(self.server.wait());
        }
    }
}

/// Returns the directory of an empty cluster. It is created once per checkout, because that takes seconds.
fn cluster() -> PathBuf {
    let cluster = process::binary("sluice").ancestors().nth(2).unwrap().join("tmp/postgres-of-tests");
    if cluster.exists() {
        return cluster;
    }
    fs::create_dir_all(cluster.parent().unwrap()).unwrap();
    let dir = temporary();
    chown_to_server(dir.path());
    let output = program("initdb")
        .current_dir(dir.path())
        .args(["--no-sync", "--wal-segsize=1", "--username=sluice", "--encoding=UTF8", "--locale=C.UTF-8"])
        .args(["--auth=trust", "--pgdata=data"])
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

/// Returns the command of a Postgres program, under a user that may run it.
fn program(name: &str) -> Command {
    let path = Path::new(PROGRAMS).join(name);
    assert!(path.exists(), "no {}: scripts/setup.sh tools installs it", path.display());
    if !geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(path);
    command
}

fn temporary() -> TempDir {
    tempfile::Builder::new().prefix("sluice-pg-").tempdir_in("/tmp").unwrap()
}

/// Gives `dir` to the user that the server runs as.
fn chown_to_server(dir: &Path) {
    if geteuid().is_root() {
        chown(dir, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// Copies a directory with its owners and modes.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}
