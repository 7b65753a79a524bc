//! An upstream that answers with the bytes of a test, write by write, and remembers the last request.

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

use crate::agent::Agent;

/// Delay between two writes, so that a reader sees them one by one. A reader that sees them together must behave the
/// same.
const BREATH: Duration = Duration::from_millis(1);

/// Answers every request with the same writes, then closes.
#[derive(Debug)]
pub struct RawScriptedUpstream {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    says: Vec<Vec<u8>>,
    heard: Vec<u8>,
}

impl RawScriptedUpstream {
    /// Serves on a free port.
    ///
    /// # Panics
    /// If there is none.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), script: Arc::default() };
        let script = Arc::clone(&upstream.script);
        platform_runtime::task::spawn("raw scripted upstream", async move {
            while let Ok((connection, _)) = listener.accept().await {
                platform_runtime::task::spawn("raw scripted answer", answer(connection, Arc::clone(&script)));
            }
        });
        upstream
    }

    /// From now on it answers with these writes.
    pub fn say(&self, writes: &[&[u8]]) {
        lock(&self.script).says = writes.iter().map(|write| write.to_vec()).collect();
    }

    /// Returns the bytes received of the last request, made readable.
    #[must_use]
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&lock(&self.script).heard).into_owned()
    }

    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client without Sluicegate.
    #[must_use]
    pub fn agent(&self) -> Agent {
        Agent::over_tcp(self.address)
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(mut connection: TcpStream, script: Arc<Mutex<Script>>) {
    let Some(heard) = request(&mut connection).await else { return };
    let says = {
        let mut script = lock(&script);
        script.heard = heard;
        script.says.clone()
    };
    if connection.set_nodelay(true).is_err() {
        return;
    }
    for write in says {
        if connection.write_all(&write).await.is_err() {
            return;
        }
        tokio::time::sleep(BREATH).await;
    }
}

/// A whole request; none if the connection ended before there was one.
async fn request(connection: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut heard, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    while !is_whole(&heard) {
        // One that is not framed as we understand it is answered nevertheless.
        match timeout(Duration::from_secs(1), connection.read(&mut piece)).await {
            Ok(Ok(length @ 1..)) => heard.extend_from_slice(&piece[..length]),
            Ok(_) => return None,
            Err(_elapsed) => break,
        }
    }
    Some(heard)
}

fn is_whole(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None if head.contains("chunked") => body.contains("\r\n0\r\n") && body.ends_with("\r\n\r\n"),
        None => true,
    }
}
