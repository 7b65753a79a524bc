//! Observes the warm containers that the pool should have, and those that run.

use std::collections::BTreeMap;

use platform_core::id::AgentId;
use platform_runtime::{report, retry::Transient, settings::Agent};
use runner_docker::Waits;
use runner_store::PoolEntry;

use super::{ContainerTemplate, Error, Pool};
use crate::context::EngineHandles;

/// Target number of warm containers for one template.
pub(super) struct PoolTarget {
    pub(super) agent_id: AgentId,
    pub(super) agent: Agent,
    /// Id of the image.
    pub(super) image: String,
    pub(super) count: usize,
}

/// Observed state outside the store: the configuration, Docker and the disk.
#[derive(Default)]
pub(super) struct PoolSnapshot {
    /// All agents of the catalog.
    pub(super) agents: Vec<AgentId>,
    /// Targets by template.
    pub(super) targets: BTreeMap<String, PoolTarget>,
    /// Reason for each agent that can have no warm containers.
    problems: BTreeMap<AgentId, String>,
    /// Names of containers that run, including those created after the snapshot; absent if they were not listed.
    pub(super) running: Option<Vec<String>>,
    /// Reason why the disk has no space for one more run, if it has none.
    pub(super) insufficient_disk: Option<String>,
}

impl Pool<'_> {
    /// Observes the target of each template, and the running containers.
    ///
    /// # Errors
    /// If Docker is unavailable. The previous snapshot remains valid.
    pub(super) async fn observe(&self) -> Result<PoolSnapshot, Error> {
        let EngineHandles { docker, workspaces, installation, .. } = self.engine;
        let agents = self.catalog.agents().await;
        let mut snapshot =
            PoolSnapshot { agents: agents.keys().cloned().collect(), ..PoolSnapshot::default() };
        for (agent_id, agent) in agents {
            let Ok(count) = usize::try_from(agent.warm_pool_size) else { continue };
            if count == 0 {
                continue;
            }
            match self.image(&agent).await {
                Ok(image) => {
                    let template = ContainerTemplate::new(self.engine, &agent_id, &agent, &image).id();
                    let target = PoolTarget { agent_id, agent, image, count };
                    drop(snapshot.targets.insert(template, target));
                }
                Err(Error::Docker(error)) if error.is_transient() => return Err(error.into()),
                Err(error) => drop(snapshot.problems.insert(agent_id, report::chain(&error))),
            }
        }
        if !(snapshot.targets.is_empty() && self.is_empty.get()) {
            snapshot.running = Some(docker.running_warm_containers(installation).await?);
            // Runs have priority for disk space.
            let space = workspaces.disk_space().and_then(|space| Ok(space.enough()?));
            snapshot.insufficient_disk = space.err().map(|error| report::chain(&error));
        }
        Ok(snapshot)
    }

    /// Returns the id of the agent's image, if warm containers can be created from it.
    async fn image(&self, agent: &Agent) -> Result<String, Error> {
        if !self.engine.workspaces.are_images() {
            return Err(Error::Unbounded);
        }
        match self.engine.docker.image_that_waits(&agent.image).await? {
            (id, Waits::ForStartFile) => Ok(id),
            (_, Waits::Never) => Err(Error::NeverWaits { image: agent.image.to_string() }),
        }
    }
}

impl PoolSnapshot {
    /// Logs problems that are new since `previous`.
    pub(super) fn log_new_problems(&self, previous: &Self) {
        for (agent, error) in &self.problems {
            if previous.problems.get(agent) != Some(error) {
                tracing::warn!(%agent, error, "no warm containers for this agent");
            }
        }
    }

    /// Returns false if the entry's container was observed not to run.
    pub(super) fn may_run(&self, entry: &PoolEntry) -> bool {
        let Some(running) = &self.running else { return true };
        running.contains(&entry.warm.container)
    }

    /// Builds the error for a warm container that has ended.
    pub(super) fn ended_error(&self, entry: &PoolEntry) -> Error {
        let image = self.targets.get(&entry.warm.template).map(|target| target.image.clone());
        Error::Ended { container: entry.warm.container.clone(), image: image.unwrap_or_default() }
    }
}
