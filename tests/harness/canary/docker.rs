//! Relays Docker's API and searches everything that passes: the settings of containers, their output, and Docker's
//! answers about them.
//!
//! The relay runs in threads, so that it serves a test while the test's runtime is busy.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use memchr::memmem;

use super::{Flow, Places, search};
use crate::{docker::SOCKET, tier};

/// A searching relay of Docker's API, on its own socket. The socket is removed on drop.
#[derive(Debug)]
pub struct Spy {
    socket: PathBuf,
    has_created: Arc<AtomicBool>,
}

impl Spy {
    /// Listens on `socket`. Before the removal of a container, searches `shared`, the directory that its agent can
    /// write to.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn on(socket: &Path, shared: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let shared = shared.to_owned();
        let has_created = Arc::<AtomicBool>::default();
        let is_creating = Arc::clone(&has_created);
        thread::spawn(move || {
            for client in listener.incoming().flatten().filter(|_| tier::may_use_docker()) {
                let Ok(docker) = UnixStream::connect(SOCKET) else { continue };
                let (Ok(client_again), Ok(docker_again)) = (client.try_clone(), docker.try_clone()) else {
                    continue;
                };
                let (shared, is_creating) = (shared.clone(), Arc::clone(&is_creating));
                thread::spawn(move || {
                    let before = |piece: &[u8]| {
                        if piece.starts_with(b"POST ") && memmem::find(piece, b"/create").is_some() {
                            is_creating.store(true, Ordering::Release);
                        }
                        search_before_removal(piece, &shared);
                    };
                    relay(client, docker, before, "what Docker is told")
                });
                thread::spawn(move || relay(docker_again, client_again, |_| (), "what Docker tells"));
            }
        });
        Self { socket: socket.to_owned(), has_created }
    }

    /// Returns whether Docker was asked to create a container or a volume.
    pub(crate) fn has_created(&self) -> bool {
        self.has_created.load(Ordering::Acquire)
    }
}

impl Drop for Spy {
    /// Removes the socket. The listening thread stays blocked and ends with the process.
    fn drop(&mut self) {
        std::fs::remove_file(&self.socket).ok();
    }
}

fn relay(mut from: UnixStream, mut to: UnixStream, before: impl Fn(&[u8]), origin: &str) {
    let (mut flow, mut piece) = (Flow::of(origin.to_owned()), vec![0; 64 << 10]);
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let piece = &piece[..length];
        flow.piece(piece);
        before(piece);
        if to.write_all(piece).is_err() {
            break;
        }
    }
    // The other direction may still carry data.
    to.shutdown(Shutdown::Write).ok();
}

/// Searches a container's description and files, if `request` is about to remove it.
fn search_before_removal(request: &[u8], shared: &Path) {
    let Some(line) = request.strip_prefix(b"DELETE ") else { return };
    let Some(at) = memmem::find(line, b"/containers/") else { return };
    let rest = &line[at + b"/containers/".len()..];
    let name: Vec<_> = rest.iter().copied().take_while(|byte| !b"? /".contains(byte)).collect();
    let name = String::from_utf8_lossy(&name);
    // Its output needs no search: Docker keeps no log of it, and it has already passed this relay.
    if let Ok(answer) = get(&format!("/containers/{name}/json")) {
        search(&format!("container {name}"), &answer);
    }
    Places::files(shared);
}

fn get(path: &str) -> std::io::Result<Vec<u8>> {
    let mut docker = UnixStream::connect(SOCKET)?;
    write!(docker, "GET {path} HTTP/1.1\r\nhost: docker\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    docker.read_to_end(&mut answer)?;
    Ok(answer)
}
