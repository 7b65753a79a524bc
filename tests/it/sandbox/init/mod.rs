//! Tests `sandbox-init`: first as a program on the host, then as the first process of containers.

mod bridge;
mod entry;
mod image;
mod life;
mod pool;
mod waiting;

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness::{Init, docker::docker, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    process::Command,
};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

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

/// A container of our image, by its id. Removed on drop.
struct Container(String);

impl Container {
    async fn start(options: &[&str], command: &[&str]) -> Self {
        Self(docker(&[&["run", "--detach"], options, &[IMAGE], command].concat()).await)
    }

    /// Returns its exit code, once it has ended.
    async fn exit_code(&self) -> i32 {
        docker(&["wait", &self.0]).await.parse().unwrap()
    }

    /// Returns its output on stdout.
    async fn output(&self) -> String {
        let output = Command::new("docker").args(["logs", &self.0]).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        std::process::Command::new("docker").args(["rm", "--force", "--volumes", &self.0]).output().ok();
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

/// Waits until a process watches files.
async fn watches(pid: u32) {
    let watches = || async {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target == Path::new("anon_inode:inotify"))
    };
    eventually("it watches", watches, |watches| *watches).await;
}
