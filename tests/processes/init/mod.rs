//! Tests `sandbox-init` as a program on the host. `tests/containers/sandbox/init` has it as the first process of containers.

mod bridge;
mod entry;
mod life;
mod waiting;

use std::path::PathBuf;

use harness::Init;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

/// A socket as a proxy has one, at which the test itself listens.
struct Peer {
    listener: UnixListener,
    dir: tempfile::TempDir,
}

impl Peer {
    fn bind() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { listener: UnixListener::bind(dir.path().join("llm.sock")).unwrap(), dir }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("llm.sock")
    }

    async fn accept(&self) -> UnixStream {
        self.listener.accept().await.unwrap().0
    }

    /// Answers one health request with 200.
    async fn is_healthy(&self) {
        self.is("HTTP/1.1 200 OK").await;
    }

    /// Answers one health request with `status`.
    async fn is(&self, status: &str) {
        let mut question = self.accept().await;
        let mut asked = [0; 512];
        let length = question.read(&mut asked).await.unwrap();
        assert!(asked[..length].starts_with(b"GET /health HTTP/1.1\r\n"), "asks for something else");
        let answer = format!("{status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        question.write_all(answer.as_bytes()).await.unwrap();
    }

    /// Starts a bridge to this socket.
    async fn bridged(&self) -> Init {
        let socket = self.socket();
        tokio::join!(Init::to(&socket), self.is_healthy()).0
    }
}

/// Returns pseudorandom bytes, so that no piece looks like another.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}
