//! Serves an upstream that answers with the bytes of the test, write by write, and keeps the last request.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{agent::Agent, pace::pace};

/// Usual delay between two writes, so that a reader sees them one by one. A reader that sees them together must behave
/// the same.
const WRITE_DELAY: Duration = Duration::from_millis(1);

/// An upstream that answers every request with the same writes, then closes the connection.
#[derive(Debug)]
pub struct RawScriptedUpstream {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug)]
struct Script {
    writes: Vec<Vec<u8>>,
    /// Delay behind each write.
    delay: Duration,
    request: Vec<u8>,
}

impl RawScriptedUpstream {
    /// Starts to serve on a free port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let script = Script { writes: Vec::new(), delay: WRITE_DELAY, request: Vec::new() };
        let address = listener.local_addr().unwrap();
        let upstream = Self { address, script: Arc::new(Mutex::new(script)) };
        let script = Arc::clone(&upstream.script);
        platform_runtime::task::spawn("raw scripted upstream", async move {
            while let Ok((connection, _)) = listener.accept().await {
                platform_runtime::task::spawn("raw scripted answer", answer(connection, Arc::clone(&script)));
            }
        });
        upstream
    }

    /// Sets the writes of later answers.
    pub fn say(&self, writes: &[&[u8]]) {
        lock(&self.script).writes = writes.iter().map(|write| write.to_vec()).collect();
    }

    /// Sets the delay behind each write of later answers.
    pub fn delay(&self, delay: Duration) {
        lock(&self.script).delay = delay;
    }

    /// Returns the bytes received of the last request, made readable.
    #[must_use]
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&lock(&self.script).request).into_owned()
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a client that connects without Sluicegate.
    #[must_use]
    pub fn agent(&self) -> Agent {
        Agent::over_tcp(self.address)
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(mut connection: TcpStream, script: Arc<Mutex<Script>>) {
    let Some(request) = read_request(&mut connection).await else { return };
    let (writes, delay) = {
        let mut script = lock(&script);
        script.request = request;
        (script.writes.clone(), script.delay)
    };
    if connection.set_nodelay(true).is_err() {
        return;
    }
    for write in writes {
        if connection.write_all(&write).await.is_err() {
            return;
        }
        pace(delay).await;
    }
}

/// Reads a whole request; returns `None` if the connection ended before.
async fn read_request(connection: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut request, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    while !is_whole(&request) {
        // A request with unknown framing is answered after a second without further bytes.
        match timeout(Duration::from_secs(1), connection.read(&mut piece)).await {
            Ok(Ok(length @ 1..)) => request.extend_from_slice(&piece[..length]),
            Ok(_) => return None,
            Err(_elapsed) => break,
        }
    }
    Some(request)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None if head.contains("chunked") => body.contains("\r\n0\r\n") && body.ends_with("\r\n\r\n"),
        None => true,
    }
}
