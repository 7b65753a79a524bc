//! Docker's socket with an ear: what a container is made with, what it prints and what Docker tells of it are searched.
//!
//! In threads, so that it serves a test whose runtime is busy.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    thread,
};

use memchr::memmem;

use super::{Flow, Places, search};
use crate::docker::SOCKET;

/// Serves Docker's API on a socket of its own until it is dropped.
#[derive(Debug)]
pub struct Spy {
    socket: PathBuf,
}

impl Spy {
    /// Listens on `socket`. Before a container is removed, `shared` is searched: what its agent can write to.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn on(socket: &Path, shared: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let shared = shared.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(docker) = UnixStream::connect(SOCKET) else { continue };
                let (Ok(client_again), Ok(docker_again)) = (client.try_clone(), docker.try_clone()) else {
                    continue;
                };
                let shared = shared.clone();
                thread::spawn(move || {
                    carry(client, docker, |piece| before_removal(piece, &shared), "what Docker is told")
                });
                thread::spawn(move || carry(docker_again, client_again, |_| (), "what Docker tells"));
            }
        });
        Self { socket: socket.to_owned() }
    }
}

impl Drop for Spy {
    /// The thread waits for one more client, and ends with the process.
    fn drop(&mut self) {
        std::fs::remove_file(&self.socket).ok();
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, before: impl Fn(&[u8]), place: &str) {
    let (mut flow, mut piece) = (Flow::of(place.to_owned()), vec![0; 64 << 10]);
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let piece = &piece[..length];
        flow.piece(piece);
        before(piece);
        if to.write_all(piece).is_err() {
            break;
        }
    }
    // The other direction may have more to say.
    to.shutdown(Shutdown::Write).ok();
}

/// Looks at a container while it is there.
fn before_removal(request: &[u8], shared: &Path) {
    let Some(line) = request.strip_prefix(b"DELETE ") else { return };
    let Some(at) = memmem::find(line, b"/containers/") else { return };
    let rest = &line[at + b"/containers/".len()..];
    let name: Vec<_> = rest.iter().copied().take_while(|byte| !b"? /".contains(byte)).collect();
    let name = String::from_utf8_lossy(&name);
    // What it printed is in no log of Docker's, and has come by.
    if let Ok(answer) = ask(&format!("/containers/{name}/json")) {
        search(&format!("container {name}"), &answer);
    }
    Places::files(shared);
}

fn ask(path: &str) -> std::io::Result<Vec<u8>> {
    let mut docker = UnixStream::connect(SOCKET)?;
    write!(docker, "GET {path} HTTP/1.1\r\nhost: docker\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    docker.read_to_end(&mut answer)?;
    Ok(answer)
}
