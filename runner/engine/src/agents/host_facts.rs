//! Looks up the needs of agents on this host, and the models that the upstream offers. Changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use platform_core::{
    control::UpstreamHealth,
    id::{AgentId, GatewayId},
};
use platform_runtime::{
    report::{self, ErrorText},
    settings::{Agent, Execution, Image, Settings},
};
use runner_control_client::DataPlane;
use runner_docker::{self as docker, Docker};
use runner_gateways as gateway;
use tokio::time::timeout;

use super::BlockReason;

/// Longest wait for the upstream's models. Without an answer, agents are judged as if the upstream offered every model.
const MODELS_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for all requests to Docker.
const DOCKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Probes of the backends that agents need.
#[derive(Debug, Clone)]
pub struct Probes {
    docker: PathBuf,
    data_plane: DataPlane,
    gateways: Arc<BTreeMap<GatewayId, gateway::GatewayPaths>>,
}

/// Findings about the backends.
#[derive(Debug)]
pub struct HostFacts {
    /// Images and volumes that Docker lacks, or the reason why it does not answer.
    pub(crate) docker: Result<MissingOnDocker, ErrorText>,
    /// Models that the upstream offers, if it answered.
    pub(crate) models: Option<Vec<String>>,
    /// Gateways that cannot be reached, with the reason.
    pub(crate) gateways: BTreeMap<GatewayId, String>,
}

/// Images and volumes that agents need and Docker cannot provide.
#[derive(Debug, Default)]
pub(crate) struct MissingOnDocker {
    pub(crate) images: BTreeMap<Image, BlockReason>,
    pub(crate) volumes: BTreeMap<String, BlockReason>,
}

impl Probes {
    /// Returns the probes of the backends in `settings`, and connects to none of them.
    pub fn of(settings: &Settings) -> Self {
        Self {
            docker: settings.sandbox.docker_socket.clone(),
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            gateways: Arc::new(gateway::GatewayPaths::of_all(settings)),
        }
    }

    /// Looks up everything that `agents` need. Cannot fail: an unavailable backend is a fact, too.
    pub async fn probe(&self, agents: &BTreeMap<AgentId, Agent>) -> HostFacts {
        let (docker, models, gateways) = tokio::join!(
            timeout(DOCKER_TIMEOUT, self.docker(agents)),
            fetch_offered_models(&self.data_plane),
            self.gateways(agents)
        );
        let timed_out =
            |_elapsed| Err(ErrorText(format!("Docker did not answer within {} s", DOCKER_TIMEOUT.as_secs())));
        let docker = docker.map_or_else(timed_out, |answer| answer.map_err(|error| ErrorText::of(&error)));
        HostFacts { docker, models, gateways }
    }

    /// Returns the gateways of `agents` that cannot be reached. Only connects, and sends no request.
    async fn gateways(&self, agents: &BTreeMap<AgentId, Agent>) -> BTreeMap<GatewayId, String> {
        let needed = agents.values().filter(|agent| agent.mode == Execution::Gateway);
        let needed: BTreeSet<_> = needed.flat_map(|agent| &agent.gateways).collect();
        let probe = |id: &GatewayId| {
            let paths = self.gateways.get(id).cloned();
            let id = id.clone();
            async move {
                let reached = paths?.reach().await;
                Some((id, report::chain(&reached.err()?)))
            }
        };
        join_all(needed.into_iter().map(probe)).await.into_iter().flatten().collect()
    }

    async fn docker(&self, agents: &BTreeMap<AgentId, Agent>) -> Result<MissingOnDocker, docker::Error> {
        let docker = Docker::connect(&self.docker).await?;
        let mut missing = MissingOnDocker::default();
        for image in agents.values().map(|agent| &agent.image).collect::<BTreeSet<_>>() {
            if let Err(error) = docker.image(image).await {
                missing.images.insert(image.clone(), error.into());
            }
        }
        let volumes = agents.values().flat_map(|agent| &agent.volumes).map(|volume| &volume.volume);
        for volume in volumes.collect::<BTreeSet<_>>() {
            if let Err(error) = docker.volume(volume).await {
                missing.volumes.insert(volume.clone(), error.into());
            }
        }
        Ok(missing)
    }
}

/// Returns the models that the upstream offers. Returns `None` if it offers none, or `data_plane` cannot ask it now.
pub async fn fetch_offered_models(data_plane: &DataPlane) -> Option<Vec<String>> {
    match timeout(MODELS_TIMEOUT, data_plane.upstream()).await {
        Ok(Ok(UpstreamHealth::Ready { models, .. })) if !models.is_empty() => Some(models),
        _ => None,
    }
}

impl From<docker::Error> for BlockReason {
    fn from(error: docker::Error) -> Self {
        match error {
            docker::Error::NoImage { image } => Self::NoImage(image),
            docker::Error::NoVolume { volume } => Self::NoVolume(volume),
            other => Self::Unknown { why: report::chain(&other) },
        }
    }
}
