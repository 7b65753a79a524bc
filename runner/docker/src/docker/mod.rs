//! Runs sandboxes on Docker. No other module uses Docker's API.
//!
//! Docker may be unavailable for a while, restarted or stopped. A read is repeated until Docker answers, for as long as
//! [`Error::RETRY_TIMEOUT`]. A change reports the failure, and its caller decides. Each change may be requested twice.

mod container;
mod extract;
mod gateway;
mod isolation;
mod listed;
mod log_repair;
mod mirror;
mod output;
mod request;
mod tool_server;

use std::{io, path::Path, time::Duration};

use bollard::{
    API_DEFAULT_VERSION, Docker as Client,
    errors::Error as ClientError,
    models::ImageInspect,
    query_parameters::{
        CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
        StartContainerOptions,
    },
};
use platform_core::{
    code::{Code, Coded},
    limit::ByteSize,
    name,
};
use platform_runtime::{
    report,
    retry::{Backoff, Transient, retry_until},
    settings::{Image, Volume},
};
use tokio::time::Instant;

pub use self::{
    container::{Container, FoundContainer},
    extract::{EXTRACTION_SUFFIX, ExtractEnd, ExtractSpec, Extracted},
    gateway::{GatewayContainer, GatewaySpec},
    listed::{Listed, Removal},
    mirror::{MirrorContainer, MirrorOutput, MirrorSpec},
    request::{labels, warm_labels},
    tool_server::{ServerOutput, ServerStreams, ToolServerImage, ToolServerSpec},
};
use super::SandboxSpec;

/// Longest time Docker may take to answer, in seconds. It does not limit how long a container may run.
const REQUEST_TIMEOUT_S: u64 = 60;
/// Begin of the names of images that this repository builds.
const OWN_IMAGES: &str = "sluicegate/";
/// Delay before a request is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Errors of requests to Docker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Docker does not answer.
    #[error("Docker does not answer on {socket}: start it, or set sandbox.docker_socket")]
    Unreachable {
        /// Path of its API socket.
        socket: String,
        /// Failure of the connection.
        #[source]
        source: ClientError,
    },
    /// The system denies this user Docker's socket.
    #[error(
        "this user may not open Docker's socket {socket}: use root, or join the group `docker` (`usermod -aG docker USER`) and log in again"
    )]
    NotPermitted {
        /// Path of its API socket.
        socket: String,
    },
    /// The image is not on this host.
    #[error("image {image} is not on this host: {}", advice(image))]
    NoImage {
        /// Image that is missing.
        image: Image,
    },
    /// The image with this id is not on this host any more.
    #[error("image {id} was removed from this host after the run had been prepared")]
    ImageGone {
        /// Id of the image.
        id: String,
    },
    /// A volume is not on this host. Docker would silently create an empty one.
    #[error(
        "volume {volume} is not on this host: {}, or correct `volumes` of the agent",
        volume_advice(volume)
    )]
    NoVolume {
        /// Name of the volume.
        volume: String,
    },
    /// A container has the volume mounted.
    #[error(
        "volume {volume} is in use: end the runs and gateways that mount it (`docker ps --filter volume={volume}`)"
    )]
    VolumeInUse {
        /// Name of the volume.
        volume: String,
    },
    /// Docker refused a request.
    #[error("Docker cannot {action} container {container}")]
    Refused {
        /// Request, as a verb.
        action: &'static str,
        /// Name or id of the container.
        container: String,
        /// Docker's answer.
        #[source]
        source: ClientError,
    },
    /// The host cannot keep the output of a container.
    #[error("the output of container {container} cannot be kept")]
    Output {
        /// Name of the container.
        container: String,
        /// Failure of the file.
        #[source]
        source: io::Error,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code::DockerUnavailable
    }
}

impl Transient for Error {
    /// Longest time Docker may be unavailable before a read fails.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(120);

    fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NotPermitted { .. }
            | Self::NoImage { .. }
            | Self::ImageGone { .. }
            | Self::NoVolume { .. }
            | Self::Output { .. }
            | Self::VolumeInUse { .. } => false,
            Self::Refused { source, .. } => is_unavailable(source),
        }
    }
}

/// Client of Docker's API.
#[derive(Debug, Clone)]
pub struct Docker(Client);

/// Behaviour of an image's containers when they get no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// The container waits for a start file.
    ForStartFile,
    /// The container does something else.
    Never,
}

/// Docker's own description of its version.
#[derive(Debug)]
pub struct Version {
    /// Version of the Docker engine; empty if it states none.
    pub engine: String,
    /// Latest version of the API that the engine speaks; empty if it states none.
    pub api: String,
}

impl Docker {
    /// Connects, speaking the daemon's own version of the API.
    pub async fn connect(socket: &Path) -> Result<Self, Error> {
        let unreachable = |source| unreachable(socket, source);
        let client =
            Client::connect_with_unix(&socket.to_string_lossy(), REQUEST_TIMEOUT_S, API_DEFAULT_VERSION)
                .map_err(unreachable)?;
        Ok(Self(client.negotiate_version().await.map_err(unreachable)?))
    }

    /// Returns the versions of Docker and of its API. The answer also shows that Docker is available.
    pub async fn version(&self) -> Result<Version, Error> {
        let version = self.0.version().await.map_err(refused("tell the version of", "engine"))?;
        Ok(Version {
            engine: version.version.unwrap_or_default(),
            api: version.api_version.unwrap_or_default(),
        })
    }

    /// Returns the id of `image`. The id never refers to another image.
    pub async fn image(&self, image: &Image) -> Result<String, Error> {
        self.image_that_waits(image).await.map(|(id, _)| id)
    }

    /// Returns the id of `image`, and whether its containers wait for a start file. They do if the image has no
    /// command, and its entrypoint is the waiting first process that a label of the image names. An image inherits the
    /// labels of its base, but not always the entrypoint.
    pub async fn image_that_waits(&self, image: &Image) -> Result<(String, Waits), Error> {
        let found = self.inspect_image(image).await?;
        let config = found.config.unwrap_or_default();
        let entrypoint = config.entrypoint.unwrap_or_default();
        let labels = config.labels.unwrap_or_default();
        let has_our_entrypoint =
            labels.get(name::label::ENTRYPOINT).is_some_and(|first| entrypoint == [first.as_str()]);
        let has_command = config.cmd.is_some_and(|cmd| !cmd.is_empty());
        let waits = if has_our_entrypoint && !has_command { Waits::ForStartFile } else { Waits::Never };
        Ok((found.id.ok_or_else(|| Error::NoImage { image: image.clone() })?, waits))
    }

    async fn inspect_image(&self, image: &Image) -> Result<ImageInspect, Error> {
        match self.0.inspect_image(image.as_str()).await {
            Ok(found) => Ok(found),
            Err(error) if is_not_found(&error) => Err(Error::NoImage { image: image.clone() }),
            Err(source) => Err(refused("look for the image of", image.as_str())(source)),
        }
    }

    /// Checks that `volume` is on this host.
    pub async fn volume(&self, volume: &str) -> Result<(), Error> {
        match self.0.inspect_volume(volume).await {
            Ok(_) => Ok(()),
            Err(error) if is_not_found(&error) => Err(Error::NoVolume { volume: volume.to_owned() }),
            Err(source) => Err(refused("look for the volume of", volume)(source)),
        }
    }

    /// Checks that all `volumes` are on this host.
    pub async fn volumes(&self, volumes: &[Volume]) -> Result<(), Error> {
        for Volume { volume, .. } in volumes {
            self.volume(volume).await?;
        }
        Ok(())
    }

    /// Creates a container, or finds the one that an earlier attempt created, and attaches to its output. After an
    /// error no container remains, unless Docker is unavailable.
    pub async fn create(&self, spec: &SandboxSpec) -> Result<Container, Error> {
        let id = self.create_or_find(spec).await?;
        match Container::attach(&self.0, id, &spec.name, spec.settings.limits.output).await {
            Err(error) if !error.is_transient() => {
                if let Err(error) = self.remove(&spec.name).await {
                    tracing::warn!(
                        container = spec.name,
                        error = report::chain(&error),
                        "container not removed; left for gc"
                    );
                }
                Err(error)
            }
            attached => attached,
        }
    }

    /// Creates a warm container, or finds the one that an earlier attempt created. Starts it to wait for its start
    /// file.
    pub async fn wait(&self, spec: &SandboxSpec) -> Result<(), Error> {
        let id = self.create_or_find(spec).await?;
        let started = self.0.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(refused("start", &spec.name))
    }

    /// Attaches to a warm container that still waits and has printed nothing; `None` if it no longer waits. `output`
    /// limits the capture of each output. Docker subscribes before it answers, so no later output is missed.
    pub async fn find_waiting(&self, name: &str, output: ByteSize) -> Result<Option<Container>, Error> {
        Container::find_waiting(&self.0, name, output).await
    }

    async fn create_or_find(&self, spec: &SandboxSpec) -> Result<String, Error> {
        self.volumes(&spec.settings.volumes).await?;
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        match self.0.create_container(Some(options), request::body(spec)).await {
            Ok(created) => Ok(created.id),
            // Either the answer to an earlier attempt got lost, or the container is foreign.
            Err(error) if is_conflict(&error) => match self.find_existing(spec).await? {
                Some(id) => Ok(id),
                None => Err(refused("create", &spec.name)(error)),
            },
            Err(error) if is_not_found(&error) => Err(Error::ImageGone { id: spec.image.clone() }),
            Err(source) => Err(refused("create", &spec.name)(source)),
        }
    }

    /// Returns the id of the container that has the name in `spec`, if it has the labels of `spec`.
    async fn find_existing(&self, spec: &SandboxSpec) -> Result<Option<String>, Error> {
        let found = self.0.inspect_container(&spec.name, None::<InspectContainerOptions>).await;
        let found = found.map_err(refused("inspect", &spec.name))?;
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        let is_ours = spec.labels.iter().all(|(key, value)| labels.get(*key) == Some(value));
        Ok(found.id.filter(|_id| is_ours))
    }

    /// Finds the container called `name`, and its progress, for a process that did not create it. `output` limits the
    /// capture of each output.
    pub async fn find(&self, name: &str, output: ByteSize) -> Result<FoundContainer, Error> {
        Container::find(&self.0, name, output).await
    }

    /// Removes the container called `name`, running or not. A missing one is not an error. It is gone when this returns.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.0.remove_container(name, Some(options)).await {
            Err(error) if !is_gone(&error) => Err(refused("remove", name)(error)),
            _ => Ok(()),
        }
    }

    /// Removes the container called `name` unless its agent runs. A missing one is not an error. The caller checks the
    /// result with [`Self::find`].
    pub async fn discard(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::new().v(true).build();
        match self.0.remove_container(name, Some(options)).await {
            // The container runs, or is being removed.
            Err(error) if is_conflict(&error) => tokio::time::sleep(RETRY_DELAY).await,
            Err(error) if !is_not_found(&error) => return Err(refused("remove", name)(error)),
            _ => {}
        }
        Ok(())
    }
}

/// Repeats `read` until Docker answers, for at most [`Error::RETRY_TIMEOUT`].
async fn retry_read<T>(read: impl AsyncFnMut() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let deadline = Instant::now() + Error::RETRY_TIMEOUT;
    retry_until(deadline, Backoff::constant(RETRY_DELAY), is_unavailable, read).await
}

/// Returns advice for getting an image onto this host.
fn advice(image: &Image) -> String {
    if image.is_pinned() {
        "pull or load that very image, or pin the one that is here (`docker images --digests --no-trunc`)"
            .to_owned()
    } else if image.as_str().starts_with(OWN_IMAGES) {
        "`sluice images load` or `sluice images build` brings it, or name another one for the agent"
            .to_owned()
    } else {
        format!("`docker pull {image}` or build it, or name another one for the agent")
    }
}

/// Returns advice for getting a volume onto this host. That of a mirrored repository is named after it.
fn volume_advice(volume: &str) -> String {
    let mirrored =
        volume.strip_prefix("sluice-").and_then(|rest| rest.split_once(name::git_sync::VOLUME_INFIX));
    match mirrored {
        Some((_installation, repository)) => {
            format!("`sluice repo add {repository} URL` makes it and mirrors a repository into it")
        }
        None => format!(
            "`docker volume create {volume}` makes an empty one, `sluice repo add` one with a repository"
        ),
    }
}

/// Returns the error of a connection to Docker that failed with `source`.
fn unreachable(socket: &Path, source: ClientError) -> Error {
    let socket = socket.display().to_string();
    if is_denied(&source) { Error::NotPermitted { socket } } else { Error::Unreachable { socket, source } }
}

/// Returns whether the system denied permission, according to the causes of `error`.
fn is_denied(error: &ClientError) -> bool {
    let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    // Transparent: the system's error is not among its causes.
    if let ClientError::IOError { err } = error {
        return denied(err);
    }
    let mut causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.any(|cause| cause.downcast_ref().is_some_and(denied))
}

fn refused<'c>(action: &'static str, container: &'c str) -> impl FnOnce(ClientError) -> Error + use<'c> {
    move |source| Error::Refused { action, container: container.to_owned(), source }
}

/// Returns whether Docker gave no answer, or an incomplete one.
const fn is_unavailable(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::HyperResponseError { .. }
            // The socket is missing, or no process listens on it.
            | ClientError::HyperLegacyError { .. }
            | ClientError::SocketNotFoundError(_)
            | ClientError::HttpClientError { .. }
            | ClientError::IOError { .. }
            | ClientError::RequestTimeoutError
            | ClientError::JsonDataError { .. }
    )
}

const fn is_not_found(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 404, .. })
}

const fn is_conflict(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 409, .. })
}

/// Returns whether the container does not exist, or is being removed already.
const fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 404 | 409, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_permission_names_the_group() {
        let failed = |kind: io::ErrorKind| ClientError::IOError { err: kind.into() };
        let denied = unreachable(Path::new("/run/docker.sock"), failed(io::ErrorKind::PermissionDenied));
        assert!(denied.to_string().contains("join the group `docker`"), "{denied}");
        assert!(!denied.is_transient(), "waiting does not help");
        let absent = unreachable(Path::new("/run/docker.sock"), failed(io::ErrorKind::ConnectionRefused));
        assert!(absent.is_transient() && absent.to_string().contains("start it"), "{absent}");
    }

    #[test]
    fn a_missing_mirror_names_its_command() {
        let message = |volume: &str| Error::NoVolume { volume: volume.to_owned() }.to_string();
        assert!(message("sluice-default-repo-web").contains("`sluice repo add web URL`"));
        assert!(message("cache").contains("`docker volume create cache`"));
    }

    #[test]
    fn advice_on_an_image_fits_its_origin() {
        let advice = |image: &str| advice(&image.parse().unwrap());
        assert!(advice("sluicegate/sandbox-runtime:latest").contains("sluice images build"));
        assert!(advice("debian:bookworm").contains("docker pull debian:bookworm"));
        assert!(advice(&format!("debian@sha256:{}", "0".repeat(64))).contains("that very image"));
    }
}
