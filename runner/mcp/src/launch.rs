//! launch starts the container of a server, and opens links.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    id::{AccountId, InstallationId, ToolServerName},
    limit::ByteSize,
    name::label,
};
use platform_runtime::{
    random, report,
    settings::{Sandbox, ServerTransport, StdioServer, ToolServer},
    sync::Mutex,
    task,
};
use runner_connections::ConnectionBroker;
use runner_docker::{Docker, Error as DockerError, Limits, ServerStreams, ToolServerImage, ToolServerSpec};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    container_guard::ContainerGuard,
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
        let image = docker.tool_server_image(&stdio.image).await.map_err(|error| failed(&error))?;
        let labels = [
            (label::INSTALLATION, self.installation.to_string()),
            (label::TOOL_SERVER, name.to_string()),
            (label::OWNER, owner),
        ];
        let spec = spec_of(stdio, image, container.clone(), labels.into());
        let guard = ContainerGuard::new(docker.clone(), container.clone(), self.tasks.clone());
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use platform_runtime::{config::Sources, settings::Settings};
    use runner_store::{Address, Store};

    use super::*;

    fn settings(dir: &Path) -> Settings {
        let text = format!(
            "[sandbox]\nstate_dir = '{0}/state'\ndocker_socket = '{0}/docker.sock'\n\
             [tools.servers.notes]\nimage = 'i:1'\ncommand = ['x']\ntools = ['add']",
            dir.display()
        );
        let file = Some(("s.toml".into(), text));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap()
    }

    /// Returns a launcher whose Docker is at `docker.sock` in `dir`.
    pub(crate) async fn launcher(dir: &Path) -> Launcher {
        let settings = settings(dir);
        let address = Address::parse(&format!("sqlite://{}/private/s.db", dir.display()), None).unwrap();
        let store = Store::open(&address, settings.sandbox.installation.clone()).await.unwrap();
        Launcher::new(&settings.sandbox, ConnectionBroker::of(&settings, store, Default::default()))
    }

    /// Returns a server that runs in a container, and an account.
    pub(crate) fn server(dir: &Path) -> (ToolServerName, ToolServer, AccountId) {
        let (name, server) = settings(dir).tools.servers.into_iter().next().unwrap();
        (name, server, AccountId::parse("a").unwrap())
    }
}
