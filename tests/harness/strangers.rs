//! Plays clients without a credential that take connections of an HTTP API and give them back as late as they can.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use platform_runtime::task;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

use crate::pace::pace;

/// Delay between two bytes of a slow body.
const BYTE_DELAY: Duration = Duration::from_millis(500);
/// Shortest and longest delay before a client opens another connection after one was closed. Clients have different
/// ones, so that they do not come back all at once.
const RETURN_DELAYS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];
/// Length of a body that never becomes whole.
const BODY_LENGTH: usize = 400;

/// Habit of a stranger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Silence.
    Idle,
    /// Head of a sign-in, and now and then a byte of the body.
    SlowBody,
}

/// Clients without a credential. They leave on drop.
#[derive(Debug)]
pub struct Strangers {
    clients: Vec<JoinHandle<()>>,
    opened: Arc<AtomicUsize>,
}

impl Strangers {
    /// Sends `count` clients with this habit to the API at `address`. Each comes back when its connection was closed.
    #[must_use]
    pub fn come(address: SocketAddr, count: usize, habit: Habit) -> Self {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Where the limit is lower already, connections fail and are tried again.
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
        let opened = Arc::<AtomicUsize>::default();
        let [shortest, longest] = RETURN_DELAYS;
        let step = (longest - shortest) / u32::try_from(count.max(1)).expect("so many clients are possible");
        let client = |index: u32| {
            let delay = shortest + step * index;
            let opened = Arc::clone(&opened);
            task::spawn("stranger", async move {
                loop {
                    if let Ok(wire) = TcpStream::connect(address).await {
                        opened.fetch_add(1, Ordering::Relaxed);
                        stay(wire, address, habit).await;
                    }
                    pace(delay).await;
                }
            })
        };
        Self { clients: (0..).take(count).map(client).collect(), opened }
    }

    /// Returns how many connections they have opened.
    #[must_use]
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.clients.iter().for_each(JoinHandle::abort);
    }
}

/// Keeps a connection for as long as the API lets it.
async fn stay(mut wire: TcpStream, address: SocketAddr, habit: Habit) {
    let mut answer = [0; 64];
    if habit == Habit::Idle {
        drop(wire.read(&mut answer).await);
        return;
    }
    let mut next = unfinished_sign_in(address, "").into_bytes();
    while wire.write_all(&next).await.is_ok() {
        next = b"x".to_vec();
        if timeout(BYTE_DELAY, wire.read(&mut answer)).await.is_ok() {
            return;
        }
    }
}

/// Returns the head of a sign-in at the API at `address`, with these lines in it. No byte of its body follows.
#[must_use]
pub fn unfinished_sign_in(address: SocketAddr, lines: &str) -> String {
    format!(
        "POST /api/v1/session/link HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n{lines}content-type: application/json\r\ncontent-length: {BODY_LENGTH}\r\n\r\n"
    )
}

/// Returns a body that makes the sign-in whole; its code is wrong.
#[must_use]
pub fn wrong_sign_in() -> String {
    format!("{:<BODY_LENGTH$}", r#"{"code":"wrong"}"#)
}
