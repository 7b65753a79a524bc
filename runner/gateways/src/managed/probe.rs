//! Checks whether a gateway is ready, through the socket that its container has created.
//!
//! The container chooses what is at that path, and it may be a link to another socket of this host. Links are not
//! followed.

use std::{io, path::Path, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use platform_outbound::send;
use platform_runtime::socket;
use tokio::time::timeout;

/// Longest wait for an answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Readiness that the gateway reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// The gateway is ready for turns.
    Ready,
    /// The gateway is not ready yet, or not any more.
    NotReady,
}

/// Asks the gateway at `socket` whether it is ready. An older version does not know the path, and answers 404 once it
/// is ready.
pub(super) async fn check_ready(socket: &Path) -> io::Result<ProbeAnswer> {
    timeout(PROBE_TIMEOUT, request_readiness(socket))
        .await
        .unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
}

async fn request_readiness(path: &Path) -> io::Result<ProbeAnswer> {
    let stream = socket::connect(path).await?;
    let request = Request::get("/readyz").header(header::HOST, "localhost").body(Bytes::new());
    let answer = send(stream, request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
    Ok(match answer.status() {
        StatusCode::OK | StatusCode::NOT_FOUND => ProbeAnswer::Ready,
        _ => ProbeAnswer::NotReady,
    })
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixListener,
    };

    use super::*;

    #[tokio::test]
    async fn answers_differ_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (socket, link) = (dir.path().join("gateway.sock"), dir.path().join("link.sock"));
        let listener = UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        for (status, answer) in [
            ("200 OK", ProbeAnswer::Ready),
            ("503 Not Yet", ProbeAnswer::NotReady),
            ("404 Not Found", ProbeAnswer::Ready),
        ] {
            let serve = async {
                let (mut client, _) = listener.accept().await.unwrap();
                let length = client.read(&mut [0; 1024]).await.unwrap();
                assert!(length > 0);
                let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                client.write_all(text.as_bytes()).await.unwrap();
            };
            let (answered, ()) = tokio::join!(check_ready(&socket), serve);
            assert_eq!(answered.unwrap(), answer, "{status}");
        }
        assert!(check_ready(&link).await.is_err(), "a link");
        assert_eq!(check_ready(dir.path()).await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(check_ready(&dir.path().join("none")).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
