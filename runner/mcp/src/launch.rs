//! launch starts the container of a server, and opens links.

use std::path::PathBuf;

use platform_core::{
    id::{AccountId, InstallationId, ToolServerName},
    limit::ByteSize,
    name::label,
};
use platform_runtime::{
    random, report,
    settings::{Sandbox, ServerTransport, StdioServer, ToolServer},
    sync::Mutex,
};
use runner_connections::ConnectionBroker;
use runner_docker::{Docker, Limits, ServerStreams, ToolServerSpec};
use tokio_util::task::TaskTracker;

use crate::{
    error::ServerError,
    http::{Bearer, HttpLink},
    owner::OwnerLock,
    session::Link,
    stdio::{LinkBounds, StdioLink, Streams},
};

/// Bytes of a message besides the result in it. A list of tools may be as long.
const MAX_ENVELOPE: usize = 1 << 20;
/// Output that Docker keeps: nothing, its log is off.
const NO_LOG: ByteSize = ByteSize(0);

/// Starter of servers.
pub(crate) struct Launcher {
    docker_socket: PathBuf,
    state_dir: PathBuf,
    installation: InstallationId,
    connections: ConnectionBroker,
    /// Mark of this process, made with its first container.
    owner: Mutex<Option<OwnerLock>>,
    pub(crate) tasks: TaskTracker,
}

/// Returns the name of a container of `server`, which ends with `suffix`.
#[must_use]
pub fn container_name(installation: &InstallationId, server: &str, suffix: &str) -> String {
    format!("sluice-{installation}-tools-{server}-{suffix}")
}

impl Launcher {
    pub(crate) fn new(sandbox: &Sandbox, connections: ConnectionBroker) -> Self {
        Self {
            docker_socket: sandbox.docker_socket.clone(),
            state_dir: sandbox.state_dir.clone(),
            installation: sandbox.installation.clone(),
            connections,
            owner: Mutex::new(None),
            tasks: TaskTracker::new(),
        }
    }

    /// Opens a link to a server, for an account.
    pub(crate) async fn link(
        &self,
        name: &ToolServerName,
        server: &ToolServer,
        account: &AccountId,
    ) -> Result<Link, ServerError> {
        let message = usize::try_from(server.max_result.0).unwrap_or(usize::MAX).saturating_add(MAX_ENVELOPE);
        match &server.transport {
            ServerTransport::Http(url) => {
                let bearer = self.bearer(server, account);
                Ok(Link::Http(HttpLink::new(url.clone(), bearer, message)?))
            }
            ServerTransport::Stdio(stdio) => {
                let bounds = LinkBounds { message, idle: server.idle_timeout.duration() };
                Ok(Link::Stdio(self.start(name, stdio, bounds).await?))
            }
        }
    }

    fn bearer(&self, server: &ToolServer, account: &AccountId) -> Option<Bearer> {
        let provider = server.connection.clone()?;
        Some(Bearer::new(self.connections.clone(), account.clone(), provider))
    }

    async fn start(
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
        let image = docker.image(&stdio.image).await.map_err(|error| failed(&error))?;
        let labels = [
            (label::INSTALLATION, self.installation.to_string()),
            (label::TOOL_SERVER, name.to_string()),
            (label::OWNER, owner),
        ];
        let StdioServer { memory, pids, milli_cpu, .. } = *stdio;
        let spec = ToolServerSpec {
            name: container.clone(),
            image,
            labels: labels.into(),
            command: stdio.command.clone(),
            environment: stdio.environment.clone(),
            network: stdio.network.clone(),
            limits: Limits { memory, pids, milli_cpu, output: NO_LOG },
        };
        let ServerStreams { output, input } =
            docker.start_tool_server(&spec).await.map_err(|error| failed(&error))?;
        tracing::info!(server = %name, container, "tool server started");
        let cleanup = async move {
            if let Err(error) = docker.remove(&container).await {
                tracing::warn!(
                    container,
                    error = report::chain(&error),
                    "tool server not removed; left for gc"
                );
            }
        };
        Ok(StdioLink::start(Streams { output, input }, bounds, &self.tasks, Box::pin(cleanup)))
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
