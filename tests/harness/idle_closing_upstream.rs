//! Serves an upstream that closes idle connections after a while, as all upstreams do, and counts its requests.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::pace::pace;

/// An upstream that answers chats until the test ends.
#[derive(Debug)]
pub struct IdleClosingUpstream {
    address: SocketAddr,
    counters: Arc<Mutex<Counters>>,
}

/// Counters of an upstream.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counters {
    /// Accepted connections.
    pub connections: u64,
    /// Connections that it closed because they were idle.
    pub closed: u64,
    /// Requests on a connection that had carried one before.
    pub used_again: u64,
    /// Longest time for which a connection was idle before another request on it, in milliseconds.
    pub longest_idle_ms: u128,
    /// Requests received, by call.
    #[serde(skip)]
    pub calls: BTreeMap<String, u32>,
}

/// Timing of an upstream.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Idle time after which a connection is closed.
    pub idle: Duration,
    /// Duration of each answer, so that calls overlap.
    pub hold: Duration,
}

impl IdleClosingUpstream {
    /// Starts to serve on a free port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(timing: Timing) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), counters: Arc::default() };
        let counters = Arc::clone(&upstream.counters);
        platform_runtime::task::spawn("idle-closing upstream", async move {
            while let Ok((stream, _)) = listener.accept().await {
                lock(&counters).connections += 1;
                let counters = Arc::clone(&counters);
                platform_runtime::task::spawn("idle-closing connection", async move {
                    drop(serve(stream, timing, &counters).await);
                });
            }
        });
        upstream
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        lock(&self.counters).clone()
    }
}

fn lock(counters: &Mutex<Counters>) -> MutexGuard<'_, Counters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(stream: TcpStream, timing: Timing, counters: &Mutex<Counters>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut idle_since: Option<Instant> = None;
    loop {
        let Ok(begun) = timeout(timing.idle, stream.fill_buf()).await else {
            lock(counters).closed += 1;
            return Ok(());
        };
        if begun?.is_empty() {
            return Ok(());
        }
        if let Some(since) = idle_since {
            let mut counters = lock(counters);
            counters.used_again += 1;
            counters.longest_idle_ms = counters.longest_idle_ms.max(since.elapsed().as_millis());
        }
        let call = read_request(&mut stream).await?;
        *lock(counters).calls.entry(call).or_default() += 1;
        pace(timing.hold).await;
        stream.write_all(answer().as_bytes()).await?;
        idle_since = Some(Instant::now());
    }
}

/// Reads a request and returns the id of its call.
async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let (mut call, mut length, mut line) = (String::new(), 0, String::new());
    while stream.read_line(&mut line).await? > 0 && line != "\r\n" {
        match line.trim_end().split_once(": ") {
            Some(("x-litellm-call-id", value)) => value.clone_into(&mut call),
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            _ => {}
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).await?;
    Ok(call)
}

fn answer() -> String {
    let message = json!({ "role": "assistant", "content": "Yes." });
    let body = json!({
        "id": "1", "object": "chat.completion", "model": "fake",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    });
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
