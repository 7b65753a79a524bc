//! containers starts the containers of servers.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    id::{InstallationId, ToolServerName},
    limit::ByteSize,
    name::label,
};
use platform_runtime::{
    random, report,
    settings::{Sandbox, StdioServer},
    sync::Mutex,
    task,
};
use runner_docker::{Docker, Error as DockerError, Limits, ServerStreams, ToolServerImage, ToolServerSpec};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    container_guard::ContainerGuard,
    error::ServerError,
    owner::OwnerLock,
    stdio::{LinkBounds, StdioLink, Streams},
};

/// Output that Docker keeps: nothing, its log is off.
const NO_LOG: ByteSize = ByteSize(0);

/// Starter of containers.
pub(crate) struct ServerContainers {
    docker_socket: PathBuf,
    state_dir: PathBuf,
    installation: InstallationId,
    /// Mark of this process, made with its first container.
    owner: Mutex<Option<OwnerLock>>,
    /// Tasks that start, use and remove containers.
    pub(crate) tasks: TaskTracker,
}

/// Returns the name of a container of `server`, which ends with `suffix`.
#[must_use]
pub fn container_name(installation: &InstallationId, server: &str, suffix: &str) -> String {
    format!("sluice-{installation}-tools-{server}-{suffix}")
}

impl ServerContainers {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        Self {
            docker_socket: sandbox.docker_socket.clone(),
            state_dir: sandbox.state_dir.clone(),
            installation: sandbox.installation.clone(),
            owner: Mutex::new(None),
            tasks: TaskTracker::new(),
        }
    }

    /// Starts the container of a server, and opens a link to it. A caller that leaves meanwhile leaves no container.
    pub(crate) async fn start(
        &self,
        name: &ToolServerName,
        stdio: &StdioServer,
        bounds: LinkBounds,
    ) -> Result<StdioLink, ServerError> {
        let failed =
            |error: &dyn std::error::Error| ServerError::NotStarted { problem: report::chain(error) };
        let owner = self.owner().map_err(|error| failed(&error))?;
        let suffix = format!("{:08x}", random::bits() & 0xffff_ffff);
        let container = container_name(&self.installation, name.as_str(), &suffix);
        let docker = Docker::connect(&self.docker_socket).await.map_err(|error| failed(&error))?;
        let image = docker.tool_server_image(&stdio.image).await.map_err(|error| failed(&error))?;
        let labels = [
            (label::INSTALLATION, self.installation.to_string()),
            (label::TOOL_SERVER, name.to_string()),
            (label::OWNER, owner),
        ];
        let spec = spec_of(stdio, image, container.clone(), labels.into());
        let guard = ContainerGuard::new(docker.clone(), container.clone(), self.tasks.token());
        let left = CancellationToken::new();
        let _left_on_drop = left.clone().drop_guard();
        let starting = async move { (start_container(&docker, &spec, &left).await, guard) };
        let starting = task::spawn("start of a container", self.tasks.track_future(starting));
        let (started, guard) = starting.await.map_err(|_panicked| ServerError::Stopped)?;
        let started = started.ok_or(ServerError::Stopped)?;
        let ServerStreams { output, input } = started.map_err(|error| failed(&error))?;
        tracing::info!(server = %name, container, "tool server started");
        Ok(StdioLink::start(Streams { output, input }, bounds, &self.tasks, Box::pin(guard.remove())))
    }

    /// Returns the name of this process on labels, which shows that it is alive.
    fn owner(&self) -> std::io::Result<String> {
        let mut owner = self.owner.lock();
        let owner = match owner.take() {
            Some(held) => owner.insert(held),
            None => owner.insert(OwnerLock::create(&self.state_dir)?),
        };
        Ok(owner.name().to_owned())
    }
}

/// Creates a container and starts it; `None` if the caller has left meanwhile. The creation goes on without a caller: what
/// Docker makes after its removal would stay.
async fn start_container(
    docker: &Docker,
    spec: &ToolServerSpec,
    left: &CancellationToken,
) -> Option<Result<ServerStreams, DockerError>> {
    match docker.create_tool_server(spec).await {
        Ok(()) => left.run_until_cancelled(docker.start_tool_server(&spec.name)).await,
        Err(error) => Some(Err(error)),
    }
}

fn spec_of(
    stdio: &StdioServer,
    image: ToolServerImage,
    name: String,
    labels: BTreeMap<&'static str, String>,
) -> ToolServerSpec {
    let StdioServer { memory, pids, milli_cpu, .. } = *stdio;
    ToolServerSpec {
        name,
        image,
        labels,
        command: stdio.command.clone(),
        environment: stdio.environment.clone(),
        network: stdio.network.clone(),
        limits: Limits { memory, pids, milli_cpu, output: NO_LOG },
    }
}
