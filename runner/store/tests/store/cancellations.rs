//! Cancels operations while the database works on them.

use std::sync::Arc;

use futures_util::future::join_all;
use platform_runtime::task;
use runner_store::{Address, Claimant, Store};
use tempfile::TempDir;
use test_postgres::Database;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

use crate::database::{host, id, open, order};

crate::on_postgres!(a_cancelled_begin_leaves_no_transaction);

/// Name of Postgres's socket within its directory.
const SOCKET: &str = ".s.PGSQL.5432";

/// Treatment of a database's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Passes them on.
    Pass,
    /// Passes them on until the next transaction begins.
    Armed,
    /// Holds them back.
    Held,
}

/// Proxy of a Postgres server that can hold the answer to a `BEGIN`.
struct HoldingProxy {
    _dir: TempDir,
    address: Address,
    answers: Arc<watch::Sender<Answers>>,
    accepting: JoinHandle<()>,
}

impl Drop for HoldingProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl HoldingProxy {
    fn start(database: &Database) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let answers = Arc::new(watch::Sender::new(Answers::Pass));
        let (server, held) = (database.socket_dir().join(SOCKET), Arc::clone(&answers));
        let accepting = task::spawn("accept", async move {
            while let Ok((client, _)) = listener.accept().await {
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = UnixStream::connect(&server).await.unwrap().into_split();
                task::spawn("requests", forward_requests(from_client, to_server, Arc::clone(&held)));
                task::spawn("answers", forward_answers(from_server, to_client, held.subscribe()));
            }
        });
        let address = Address::parse(&database.url_over(dir.path()), None).unwrap();
        Self { _dir: dir, address, answers, accepting }
    }

    /// Runs `operation` until its transaction begins in the database, and drops it there.
    async fn cancel_in_begin(&self, operation: impl Future) {
        self.answers.send_replace(Answers::Armed);
        let mut answers = self.answers.subscribe();
        tokio::select! {
            held = answers.wait_for(|answers| *answers == Answers::Held) => drop(held.unwrap()),
            _ = operation => panic!("the operation ended without a transaction"),
        }
        self.answers.send_replace(Answers::Pass);
    }
}

async fn forward_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    held: Arc<watch::Sender<Answers>>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let begins = buffer[..length].windows(5).any(|word| word == b"BEGIN");
        held.send_if_modified(|answers| {
            let holds = begins && *answers == Answers::Armed;
            if holds {
                *answers = Answers::Held;
            }
            holds
        });
        to.write_all(&buffer[..length]).await.unwrap();
    }
}

async fn forward_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut held: watch::Receiver<Answers>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        held.wait_for(|answers| *answers != Answers::Held).await.unwrap();
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Reads the store over each connection of its pool: without a transaction, which one left open would take in, and
/// with one.
async fn read_on_all_connections(store: &Store) {
    for _ in 0..3 {
        join_all((0..8).map(async |_| store.cursors("consumer").await.unwrap())).await;
        join_all((0..8).map(async |_| store.run(&id("r1")).await.unwrap())).await;
    }
}

async fn a_cancelled_begin_leaves_no_transaction() {
    let database = Database::create().await;
    let proxy = HoldingProxy::start(&database);
    let store = open(&proxy.address).await.unwrap().serving(host(1)).await.unwrap();
    store.create(&order("r1"), Claimant::AnyWorker).await.unwrap();
    for _ in 0..4 {
        proxy.cancel_in_begin(store.run(&id("r1"))).await;
        read_on_all_connections(&store).await;
        proxy.cancel_in_begin(store.create(&order("r2"), Claimant::AnyWorker)).await;
        read_on_all_connections(&store).await;
    }
    assert_eq!(database.query("SELECT count(*) FROM runs"), "1", "a cancelled operation did nothing");
}
