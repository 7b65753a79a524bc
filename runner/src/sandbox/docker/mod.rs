//! Sandboxes on Docker. The only module that speaks to it.
//!
//! Docker may be away for a while, restarted or stopped. Who looks at something asks again until it answers, for as long as
//! [`AWAY`]; who changes something is told, and decides. Whatever changes something may be asked for twice.

mod container;
mod gateway;
mod listed;
mod mend;
mod output;
mod request;
mod walls;

use std::{path::Path, time::Duration};

use bollard::{
    API_DEFAULT_VERSION, Docker as Client,
    errors::Error as ClientError,
    query_parameters::{
        CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
        StartContainerOptions,
    },
};
use platform_core::{limit::ByteSize, name};
use platform_runtime::{
    report,
    settings::{Image, Volume},
};
use tokio::time::Instant;

pub(crate) use self::{
    container::{Container, Found},
    gateway::{GatewayFound, GatewaySpec},
    listed::{Listed, Removal},
    request::{labels, spare_labels},
};
use super::SandboxSpec;
use crate::away::Away;

/// How long Docker may take to answer; not how long a container may run.
const PATIENCE_S: u64 = 60;
/// How long Docker may be away.
const AWAY: Duration = Duration::from_secs(120);
/// Pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(200);

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
    #[error("image {image} is not on this host: {}", mend(image))]
    NoImage {
        /// The image.
        image: Image,
    },
    /// The image with this id is not on this host any more.
    #[error("image {id} was removed from this host after the run had been prepared")]
    ImageGone {
        /// Its id.
        id: String,
    },
    /// A volume is not on this host. Docker would make an empty one.
    #[error(
        "volume {volume} is not on this host: `docker volume create {volume}` makes an empty one, or correct `volumes` of the agent"
    )]
    NoVolume {
        /// Its name.
        volume: String,
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

impl Away for Error {
    const PATIENCE: Duration = AWAY;

    fn is_away(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoImage { .. } | Self::ImageGone { .. } | Self::NoVolume { .. } => false,
            Self::Refused { source, .. } => is_away(source),
        }
    }
}

/// A connection to Docker.
#[derive(Debug, Clone)]
pub(crate) struct Docker(Client);

/// What containers of an image do without a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// They wait to be told.
    ForStartFile,
    /// Something else.
    Never,
}

/// Docker, as it describes itself.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) engine: String,
    pub(crate) api: String,
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

    /// Id of `image`, which never comes to stand for another one.
    pub(crate) async fn image(&self, image: &Image) -> Result<String, Error> {
        self.image_that_waits(image).await.map(|(id, _)| id)
    }

    /// The same, and whether containers of it wait for a start file: a label says of which first process that is true, it still is
    /// the image's, and the image brings no command. Labels are inherited by images that are made from one, and entrypoints are not.
    pub(crate) async fn image_that_waits(&self, image: &Image) -> Result<(String, Waits), Error> {
        let no_image = || Error::NoImage { image: image.clone() };
        match self.0.inspect_image(image.as_str()).await {
            Ok(found) => {
                let config = found.config.unwrap_or_default();
                let entrypoint = config.entrypoint.unwrap_or_default();
                let labels = config.labels.unwrap_or_default();
                let its_own =
                    labels.get(name::label::WAITS).is_some_and(|first| entrypoint == [first.as_str()]);
                let has_command = config.cmd.is_some_and(|cmd| !cmd.is_empty());
                let waits = if its_own && !has_command { Waits::ForStartFile } else { Waits::Never };
                Ok((found.id.ok_or_else(no_image)?, waits))
            }
            Err(error) if is_not_found(&error) => Err(no_image()),
            Err(source) => Err(refused("look for the image of", image.as_str())(source)),
        }
    }

    /// Looks whether `volume` is on this host.
    pub(crate) async fn volume(&self, volume: &str) -> Result<(), Error> {
        match self.0.inspect_volume(volume).await {
            Ok(_) => Ok(()),
            Err(error) if is_not_found(&error) => Err(Error::NoVolume { volume: volume.to_owned() }),
            Err(source) => Err(refused("look for the volume of", volume)(source)),
        }
    }

    /// Makes a container, or finds it made, and attaches to its output. When this fails and Docker is not away,
    /// there is none.
    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Result<Container, Error> {
        let id = self.make(spec).await?;
        match Container::attach(&self.0, id, (&spec.name, spec.limits.output)).await {
            Err(error) if !error.is_away() => {
                if let Err(error) = self.remove(&spec.name).await {
                    tracing::warn!(error = %report::chain(&error), "a container stays behind");
                }
                Err(error)
            }
            attached => attached,
        }
    }

    /// Makes a container that waits, or finds it made, and has it wait.
    pub(crate) async fn wait(&self, spec: &SandboxSpec) -> Result<(), Error> {
        let id = self.make(spec).await?;
        let started = self.0.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(refused("start", &spec.name))
    }

    /// Attaches to the output of a container that waits, and has printed nothing yet; `None` if it waits no more. `output` is
    /// what is kept of each of its outputs. Docker subscribes before it answers, so nothing is missed of what comes after.
    pub(crate) async fn waiting(&self, name: &str, output: ByteSize) -> Result<Option<Container>, Error> {
        Container::waiting(&self.0, name, output).await
    }

    async fn make(&self, spec: &SandboxSpec) -> Result<String, Error> {
        for Volume { volume, .. } in &spec.volumes {
            self.volume(volume).await?;
        }
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        match self.0.create_container(Some(options), request::body(spec)).await {
            Ok(created) => Ok(created.id),
            // The answer to an earlier try got lost, or it is another's.
            Err(error) if is_taken(&error) => match self.made(spec).await? {
                Some(id) => Ok(id),
                None => Err(refused("create", &spec.name)(error)),
            },
            Err(error) if is_not_found(&error) => Err(Error::ImageGone { id: spec.image.clone() }),
            Err(source) => Err(refused("create", &spec.name)(source)),
        }
    }

    /// Id of the container that has the name in `spec`, if it is the one that `spec` asks for.
    async fn made(&self, spec: &SandboxSpec) -> Result<Option<String>, Error> {
        let found = self.0.inspect_container(&spec.name, None::<InspectContainerOptions>).await;
        let found = found.map_err(refused("inspect", &spec.name))?;
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        let is_ours = spec.labels.iter().all(|(key, value)| labels.get(*key) == Some(value));
        Ok(found.id.filter(|_id| is_ours))
    }

    /// The container called `name`, and how far it has come; for whoever did not make it. `output` is what is kept of each
    /// of its outputs.
    pub(crate) async fn find(&self, name: &str, output: ByteSize) -> Result<Found, Error> {
        Container::find(&self.0, name, output).await
    }

    /// Removes the container called `name`, running or not; there may be none. It is gone when this returns.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.0.remove_container(name, Some(options)).await {
            Err(error) if !is_gone(&error) => Err(refused("remove", name)(error)),
            _ => Ok(()),
        }
    }

    /// Removes the container called `name` unless its agent runs; there may be none. Whoever asks looks again.
    pub(crate) async fn discard(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::new().v(true).build();
        match self.0.remove_container(name, Some(options)).await {
            // It runs, or is on its way out.
            Err(error) if is_taken(&error) => tokio::time::sleep(PAUSE).await,
            Err(error) if !is_not_found(&error) => return Err(refused("remove", name)(error)),
            _ => {}
        }
        Ok(())
    }
}

/// Does `once` until Docker answers.
async fn patiently<T>(once: impl AsyncFn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let deadline = Instant::now() + AWAY;
    loop {
        match once().await {
            Err(error) if is_away(&error) && Instant::now() < deadline => {
                tracing::debug!(%error, "Docker is asked again");
                tokio::time::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}

/// How an image comes to this host.
fn mend(image: &Image) -> &'static str {
    if image.is_pinned() {
        "pull or load that very image, or pin the one that is here (`docker images --digests --no-trunc`)"
    } else {
        "build it with `make images`, or name another one for the agent"
    }
}

fn refused<'c>(action: &'static str, container: &'c str) -> impl FnOnce(ClientError) -> Error + use<'c> {
    move |source| Error::Refused { action, container: container.to_owned(), source }
}

/// Nobody answered, or not to the end.
const fn is_away(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::HyperResponseError { .. }
            // No socket, or nobody behind it.
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

const fn is_taken(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 409, .. })
}

/// Not there, or on its way out already.
const fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::DockerResponseServerError { status_code: 404 | 409, .. })
}
