//! Puts a relay in front of Docker that ends attachments to containers early, as a proxy with a time limit does.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use crate::docker_gate::{DOCKER, relay};

/// Relay of Docker's API on its own socket, which serves until the process ends.
#[derive(Debug)]
pub struct CuttingDocker {
    socket: PathBuf,
    cuts: Arc<AtomicUsize>,
}

impl CuttingDocker {
    /// Listens on `socket`, and ends each attachment when it has passed `mark` on.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn on(socket: &Path, mark: &'static str) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(docker) = UnixStream::connect(DOCKER) else { continue };
                let (Ok(client_again), Ok(docker_again)) = (client.try_clone(), docker.try_clone()) else {
                    continue;
                };
                let is_attached = Arc::new(AtomicBool::new(false));
                let answers =
                    Answers { mark, is_attached: Arc::clone(&is_attached), cuts: Arc::clone(&shared) };
                thread::spawn(move || {
                    relay(client, docker, |request| {
                        let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
                        if String::from_utf8_lossy(line).contains("/attach?") {
                            is_attached.store(true, Ordering::Release);
                        }
                    });
                });
                thread::spawn(move || answers.relay(docker_again, client_again));
            }
        });
        Self { socket: socket.to_owned(), cuts }
    }

    /// Returns the path of its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the number of attachments that it has ended.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Acquire)
    }
}

/// Docker's answers on one connection.
struct Answers {
    mark: &'static str,
    is_attached: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
}

impl Answers {
    fn relay(&self, mut docker: UnixStream, mut client: UnixStream) {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = docker.read(&mut piece) {
            if client.write_all(&piece[..length]).is_err() {
                break;
            }
            let is_marked = String::from_utf8_lossy(&piece[..length]).contains(self.mark);
            if is_marked && self.is_attached.load(Ordering::Acquire) {
                docker.shutdown(Shutdown::Both).ok();
                client.shutdown(Shutdown::Both).ok();
                self.cuts.fetch_add(1, Ordering::AcqRel);
                return;
            }
        }
        client.shutdown(Shutdown::Write).ok();
    }
}
