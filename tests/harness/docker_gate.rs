//! Puts a gate in front of Docker, which delays one request until the test opens it.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// Docker's own socket.
pub(crate) const DOCKER: &str = "/var/run/docker.sock";

/// Relay of Docker's API on its own socket, which serves until the process ends.
#[derive(Debug)]
pub struct DockerGate {
    socket: PathBuf,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// Method of the delayed request, and a piece of its target.
    delayed: (&'static str, &'static str),
    is_held: AtomicBool,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl DockerGate {
    /// Listens on `socket`, and delays requests of `method` with `piece` in their target.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn on(socket: &Path, method: &'static str, piece: &'static str) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let delayed = (method, piece);
        let state =
            Arc::new(State { delayed, is_held: false.into(), is_open: false.into(), opened: Condvar::new() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(docker) = UnixStream::connect(DOCKER) else { continue };
                let (Ok(client_again), Ok(docker_again)) = (client.try_clone(), docker.try_clone()) else {
                    continue;
                };
                let state = Arc::clone(&shared);
                thread::spawn(move || relay(client, docker, |piece| state.delay(piece)));
                thread::spawn(move || relay(docker_again, client_again, |_| ()));
            }
        });
        Self { socket: socket.to_owned(), state }
    }

    /// Returns the path of its socket.
    #[must_use]
    pub fn socket(&self) -> String {
        self.socket.display().to_string()
    }

    /// Returns whether it delays a request, or has delayed one.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.state.is_held.load(Ordering::Acquire)
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        *self.state.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.opened.notify_all();
    }
}

impl State {
    fn delay(&self, request: &[u8]) {
        let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (method, piece) = self.delayed;
        if !(line.starts_with(method) && line.contains(piece)) {
            return;
        }
        self.is_held.store(true, Ordering::Release);
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(is_open, |is_open| !*is_open));
    }
}

/// Passes bytes on until either end closes. `before` sees each piece first.
pub(crate) fn relay(mut from: UnixStream, mut to: UnixStream, before: impl Fn(&[u8])) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        before(&piece[..length]);
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}
