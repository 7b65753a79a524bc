//! container_guard removes the container of a server, whatever becomes of the task that starts or uses it.

use std::time::Duration;

use platform_runtime::{
    report,
    retry::{Backoff, Transient as _},
    task,
};
use runner_docker::{Docker, Error as DockerError};
use tokio::{runtime::Handle, time::Instant};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Delays between tries to remove a container.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));

/// Name of a container that may exist, and is removed at the latest on drop.
pub(crate) struct ContainerGuard {
    docker: Docker,
    container: String,
    /// The end of this process waits for it.
    token: TaskTrackerToken,
    is_removed: bool,
}

impl ContainerGuard {
    /// Creates the guard of a container, before there is one.
    pub(crate) const fn new(docker: Docker, container: String, token: TaskTrackerToken) -> Self {
        Self { docker, container, token, is_removed: false }
    }

    /// Removes the container. Cancel safe: it is removed all the same.
    pub(crate) async fn remove(mut self) {
        remove(&self.docker, &self.container).await;
        self.is_removed = true;
    }
}

impl Drop for ContainerGuard {
    fn drop(&mut self) {
        // Without a runtime this process ends, and gc removes what it leaves.
        if self.is_removed || Handle::try_current().is_err() {
            return;
        }
        let docker = self.docker.clone();
        let container = self.container.clone();
        let token = self.token.clone();
        let removal = async move {
            remove(&docker, &container).await;
            drop(token);
        };
        drop(task::spawn("removal of a tool server", removal));
    }
}

async fn remove(docker: &Docker, container: &str) {
    // As `retry_transient` does: with a closure that borrows, its future cannot be spawned.
    let deadline = Instant::now() + DockerError::RETRY_TIMEOUT;
    let mut delays = BACKOFF;
    while let Err(error) = docker.remove(container).await {
        if !error.is_transient() || Instant::now() >= deadline {
            tracing::warn!(container, error = report::chain(&error), "tool server not removed; left for gc");
            return;
        }
        delays.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, path::Path, sync::Arc, time::Duration};

    use platform_runtime::{
        config::Sources,
        settings::{ServerTransport, Settings},
        sync::Mutex,
    };
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
        net::{UnixListener, UnixStream},
        sync::Notify,
        time::{sleep, timeout},
    };

    use super::*;
    use crate::{containers::ServerContainers, stdio::LinkBounds};

    /// Time that this Docker takes to create a container.
    const CREATE_TIME: Duration = Duration::from_secs(1);

    /// Containers of a scripted Docker that never answers a start.
    #[derive(Clone, Default)]
    struct DockerDouble {
        containers: Arc<Mutex<Vec<String>>>,
        created: Arc<Mutex<usize>>,
        /// Told of each request to create or to start a container.
        asked: Arc<Notify>,
    }

    impl DockerDouble {
        fn serve(socket: &Path) -> Self {
            let double = Self::default();
            let listener = UnixListener::bind(socket).unwrap();
            let serving = double.clone();
            drop(task::spawn("docker", async move {
                while let Ok((stream, _)) = listener.accept().await {
                    drop(task::spawn("docker", serving.clone().answer(stream)));
                }
            }));
            double
        }

        async fn answer(self, stream: UnixStream) {
            let mut stream = BufReader::new(stream);
            while let Some((method, path)) = request(&mut stream).await {
                let (status, body) = self.act(&method, &path).await;
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
            }
        }

        async fn act(&self, method: &str, path: &str) -> (&'static str, &'static str) {
            let name = || path.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
            match method {
                "GET" if path.contains("/version") => ("200 OK", r#"{"ApiVersion":"1.48","Version":"29"}"#),
                "GET" => ("200 OK", r#"{"Id":"sha256:1"}"#),
                "POST" if path.contains("/containers/create") => {
                    let name = path.split("name=").nth(1).unwrap().split('&').next().unwrap().to_owned();
                    self.asked.notify_one();
                    sleep(CREATE_TIME).await;
                    self.containers.lock().push(name);
                    *self.created.lock() += 1;
                    ("201 Created", r#"{"Id":"c1","Warnings":[]}"#)
                }
                "POST" => {
                    self.asked.notify_one();
                    pending().await
                }
                _ => {
                    let name = name();
                    self.containers.lock().retain(|known| *known != name);
                    ("204 No Content", "")
                }
            }
        }
    }

    /// Reads a request: its method and path.
    async fn request(stream: &mut BufReader<UnixStream>) -> Option<(String, String)> {
        let mut first = String::new();
        stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let mut words = first.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?))
    }

    /// Returns the settings of a server, and of a Docker at `docker.sock` in `dir`.
    fn settings(dir: &Path) -> Settings {
        let text = format!(
            "[sandbox]\nstate_dir = '{0}/state'\ndocker_socket = '{0}/docker.sock'\n\
             [tools.servers.notes]\nimage = 'i:1'\ncommand = ['x']\ntools = ['add']",
            dir.display()
        );
        let file = Some(("s.toml".into(), text));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap()
    }

    #[tokio::test]
    async fn a_start_that_is_cut_off_leaves_no_container() {
        // While Docker creates the container, and while it starts it.
        for requests in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let docker = DockerDouble::serve(&dir.path().join("docker.sock"));
            let settings = settings(dir.path());
            let containers = ServerContainers::new(&settings.sandbox);
            let (name, server) = settings.tools.servers.iter().next().unwrap();
            let ServerTransport::Stdio(stdio) = &server.transport else { panic!("{server:?}") };
            let bounds = LinkBounds { message: 1 << 16, idle: Duration::from_secs(60) };
            let asked = async {
                for _ in 0..requests {
                    docker.asked.notified().await;
                }
            };
            tokio::select! {
                started = containers.start(name, stdio, bounds) => panic!("{started:?}"),
                () = asked => {}
            }
            let there = async || (*docker.created.lock(), docker.containers.lock().len());
            if requests == 2 {
                assert_eq!(there().await, (1, 1), "the control: it is there");
            }
            let gone = async {
                while there().await != (1, 0) {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            assert!(timeout(Duration::from_secs(60), gone).await.is_ok(), "{requests}: {:?}", there().await);
        }
    }
}
