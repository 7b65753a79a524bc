//! Sandboxes on Docker. The only module that speaks to it.

mod listed;
mod request;

use std::{path::Path, time::Duration};

use bollard::{
    API_DEFAULT_VERSION, Docker as Client,
    container::{AttachContainerResults, LogOutput},
    errors::Error as ClientError,
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
        KillContainerOptions, RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptions,
    },
};
use futures_util::StreamExt;
use platform_core::{event::OutputStream, limit::ByteSize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    listed::{Listed, Removal},
    request::labels,
};
use super::{Capture, Ended, KilledBy, Limits, Piece, SandboxSpec};

/// How long Docker may take to answer; not how long a container may run.
const PATIENCE_S: u64 = 60;
/// How long output may still come after a container has ended.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// Why Docker did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Nobody answers.
    #[error("Docker does not answer on {socket}: start it, or set sandbox.docker_socket")]
    Unreachable {
        /// Its API socket.
        socket: String,
        /// Why not.
        #[source]
        source: ClientError,
    },
    /// The image is not on this host.
    #[error(
        "image {image} is not on this host: build it with `make images`, or name another one for the agent"
    )]
    NoImage {
        /// The image.
        image: String,
    },
    /// Docker said no.
    #[error("Docker cannot {action} container {container}")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// On which container.
        container: String,
        /// Why not.
        #[source]
        source: ClientError,
    },
}

/// A connection to Docker.
#[derive(Debug, Clone)]
pub(crate) struct Docker(Client);

/// Docker, as it describes itself.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) engine: String,
    pub(crate) api: String,
}

/// A container that exists. It stays until [`Container::remove`].
pub(crate) struct Container {
    docker: Client,
    name: String,
    attached: AttachContainerResults,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Docker {
    /// Connects, speaking the daemon's own version of the API.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable { socket: socket.display().to_string(), source };
        let client = Client::connect_with_unix(&socket.to_string_lossy(), PATIENCE_S, API_DEFAULT_VERSION)
            .map_err(unreachable)?;
        Ok(Self(client.negotiate_version().await.map_err(unreachable)?))
    }

    pub(crate) async fn version(&self) -> Result<Version, Error> {
        let version = self.0.version().await.map_err(refused("tell the version of", "engine"))?;
        Ok(Version {
            engine: version.version.unwrap_or_default(),
            api: version.api_version.unwrap_or_default(),
        })
    }

    /// Whether `image` is on this host.
    pub(crate) async fn has_image(&self, image: &str) -> Result<bool, Error> {
        match self.0.inspect_image(image).await {
            Ok(_) => Ok(true),
            Err(error) if is_not_found(&error) => Ok(false),
            Err(source) => Err(refused("look for the image of", image)(source)),
        }
    }

    /// Makes a container and attaches to its output. When it fails, there is none.
    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Result<Container, Error> {
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let created = self.0.create_container(Some(options), request::body(spec)).await;
        if let Err(source) = created {
            if is_not_found(&source) {
                return Err(Error::NoImage { image: spec.image.clone() });
            }
            // Where Docker did not say no, it may have said yes too late.
            if !matches!(source, ClientError::DockerResponseServerError { .. }) {
                remove(&self.0, &spec.name).await;
            }
            return Err(refused("create", &spec.name)(source));
        }
        let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        match self.0.attach_container(&spec.name, Some(options)).await {
            Ok(attached) => Ok(Container { docker: self.0.clone(), name: spec.name.clone(), attached }),
            Err(source) => {
                remove(&self.0, &spec.name).await;
                Err(refused("attach to", &spec.name)(source))
            }
        }
    }
}

impl Container {
    /// Starts it, passes its output on as it comes, and waits for its end, its time limit or `cancel`.
    pub(crate) async fn run(
        &mut self,
        limits: Limits,
        output: mpsc::Sender<Piece>,
        cancel: &CancellationToken,
    ) -> Result<Ended, Error> {
        if cancel.is_cancelled() {
            return Ok(Ended::before_its_start());
        }
        let started = self.docker.start_container(&self.name, None::<StartContainerOptions>).await;
        started.map_err(refused("start", &self.name))?;
        let (docker, name) = (self.docker.clone(), self.name.clone());
        let end = async {
            let killed_by = tokio::select! {
                waited = wait(&docker, &name) => { waited?; None }
                () = tokio::time::sleep(limits.runtime.duration()) => Some(KilledBy::Timeout),
                () = cancel.cancelled() => Some(KilledBy::Cancel),
            };
            if killed_by.is_some() {
                kill(&docker, &name).await?;
                wait(&docker, &name).await?;
            }
            Ok::<_, Error>(killed_by)
        };
        let mut captured = Output::new(limits.output);
        let killed_by = {
            tokio::pin!(end);
            tokio::select! {
                ended = &mut end => {
                    let rest = captured.read(&mut self.attached, &output);
                    drop(tokio::time::timeout(OUTPUT_GRACE, rest).await);
                    ended?
                }
                () = captured.read(&mut self.attached, &output) => end.await?,
            }
        };
        let state = self.inspect().await?;
        let Output { stdout, stderr } = captured;
        Ok(Ended {
            exit_code: state.0,
            oom_seen: state.1,
            killed_by,
            stdout: stdout.finish(),
            stderr: stderr.finish(),
        })
    }

    async fn inspect(&self) -> Result<(Option<i64>, bool), Error> {
        let inspected = self.docker.inspect_container(&self.name, None::<InspectContainerOptions>).await;
        let state = inspected.map_err(refused("inspect", &self.name))?.state.unwrap_or_default();
        Ok((state.exit_code, state.oom_killed.unwrap_or(false)))
    }

    /// Removes it, running or not; says whether it is gone.
    pub(crate) async fn remove(self) -> bool {
        remove(&self.docker, &self.name).await
    }
}

/// Both outputs of a container.
struct Output {
    stdout: Capture,
    stderr: Capture,
}

impl Output {
    fn new(limit: ByteSize) -> Self {
        Self { stdout: Capture::new(limit), stderr: Capture::new(limit) }
    }

    /// Reads until the container's outputs are closed. Cancel safe: what was read is kept.
    async fn read(&mut self, attached: &mut AttachContainerResults, to: &mpsc::Sender<Piece>) {
        while let Some(Ok(output)) = attached.output.next().await {
            let (stream, bytes) = match output {
                LogOutput::StdErr { message } => (OutputStream::Stderr, message),
                LogOutput::StdOut { message }
                | LogOutput::Console { message }
                | LogOutput::StdIn { message } => (OutputStream::Stdout, message),
            };
            match stream {
                OutputStream::Stdout => self.stdout.push(&bytes),
                OutputStream::Stderr => self.stderr.push(&bytes),
            }
            let piece = Piece { stream, text: String::from_utf8_lossy(&bytes).into_owned() };
            // Live output is for whoever can keep up; the capture has it all.
            drop(to.try_send(piece));
            // Output without end is always ready: the time limit beside us must get its turn.
            tokio::task::yield_now().await;
        }
    }
}

async fn wait(docker: &Client, container: &str) -> Result<(), Error> {
    let mut waited = docker.wait_container(container, None::<WaitContainerOptions>);
    match waited.next().await {
        // Any exit code but 0 comes as an error.
        None | Some(Ok(_) | Err(ClientError::DockerContainerWaitError { .. })) => Ok(()),
        Some(Err(source)) => Err(refused("wait for", container)(source)),
    }
}

async fn kill(docker: &Client, container: &str) -> Result<(), Error> {
    match docker.kill_container(container, None::<KillContainerOptions>).await {
        // It may have ended by itself at the same moment.
        Err(source) if !is_gone(&source) => Err(refused("kill", container)(source)),
        _ => Ok(()),
    }
}

async fn remove(docker: &Client, container: &str) -> bool {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match docker.remove_container(container, Some(options)).await {
        Err(error) if !is_gone(&error) => {
            tracing::warn!(container, error = %platform_runtime::report::chain(&error), "container stays behind");
            false
        }
        _ => true,
    }
}

fn refused<'c>(action: &'static str, container: &'c str) -> impl FnOnce(ClientError) -> Error + use<'c> {
    move |source| Error::Refused { action, container: container.to_owned(), source }
}

const fn is_not_found(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 404, .. })
}

/// Not there, or on its way out already.
const fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 404 | 409, .. })
}
