//! Waits until a proxy serves the run's socket, so that the agent's first call can succeed.

use std::{io, path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

use crate::error::Error;

/// Longest wait for the proxy to be reachable.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay between two requests. A running proxy answers the first.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes read of an answer's first line.
const MAX_LINE: u64 = 128;

const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Waits until the proxy answers `/health` with 200 through `socket`, which need not exist yet.
pub(crate) async fn wait_until_served(socket: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + HEALTH_TIMEOUT;
    loop {
        let answer = match timeout(ANSWER_TIMEOUT, request_health(socket)).await {
            Ok(Ok(line)) if is_healthy(&line) => return Ok(()),
            Ok(Ok(line)) => line,
            Ok(Err(error)) => format!("nothing: {error}"),
            Err(_elapsed) => "nothing".to_owned(),
        };
        if Instant::now() >= deadline {
            return Err(Error::Unhealthy { socket: socket.to_owned(), after: HEALTH_TIMEOUT, answer });
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Requests `/health` and returns the first line of the answer.
async fn request_health(socket: &Path) -> io::Result<String> {
    let mut proxy = UnixStream::connect(socket).await?;
    proxy.write_all(REQUEST).await?;
    let mut line = String::new();
    BufReader::new(proxy.take(MAX_LINE)).read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

fn is_healthy(line: &str) -> bool {
    let mut words = line.split(' ');
    words.next().is_some_and(|version| version.starts_with("HTTP/1.")) && words.next() == Some("200")
}

#[cfg(test)]
mod tests {
    use super::is_healthy;

    #[test]
    fn only_200_is_healthy() {
        for line in ["HTTP/1.1 200 OK", "HTTP/1.0 200", "HTTP/1.1 200 "] {
            assert!(is_healthy(line), "{line}");
        }
        for line in
            ["", "200", "HTTP/1.1", "HTTP/1.1 503 Service Unavailable", "HTTP/1.1 2000 OK", "SSH-2.0 200"]
        {
            assert!(!is_healthy(line), "{line}");
        }
    }
}
