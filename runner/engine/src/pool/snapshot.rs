//! Observes what the pool should have, and what of it exists outside the store.

use std::collections::BTreeMap;

use platform_core::id::AgentId;
use platform_runtime::{report, retry::Transient, settings::Agent};
use runner_docker::Waits;
use runner_store::PoolEntry;

use super::{ContainerTemplate, Error, Pool};
use crate::context::EngineHandles;

/// Warm containers that one template should have.
pub(super) struct PoolTarget {
    pub(super) agent_id: AgentId,
    pub(super) agent: Agent,
    /// Id of the image.
    pub(super) image: String,
    pub(super) count: usize,
}

/// State outside the store, observed a moment ago.
#[derive(Default)]
pub(super) struct PoolSnapshot {
    /// All agents of the catalog.
    pub(super) agents: Vec<AgentId>,
    /// Targets by template.
    pub(super) targets: BTreeMap<String, PoolTarget>,
    /// Reason per agent for which its runs can have no warm containers.
    troubles: BTreeMap<AgentId, String>,
    /// Names of containers that run, including those created since; absent if they were not listed.
    pub(super) running: Option<Vec<String>>,
    /// Reason why the disk has no space for one more run, if it has none.
    pub(super) insufficient_disk: Option<String>,
}

impl Pool<'_> {
    /// Observes what should be ready, by template, and which containers run.
    ///
    /// # Errors
    /// If Docker is unavailable: the state observed before still holds.
    pub(super) async fn observe(&self) -> Result<PoolSnapshot, Error> {
        let EngineHandles { docker, workspaces, installation, .. } = self.engine;
        let agents = self.catalog.agents().await;
        let mut snapshot =
            PoolSnapshot { agents: agents.keys().cloned().collect(), ..PoolSnapshot::default() };
        for (agent_id, agent) in agents {
            let Ok(count) = usize::try_from(agent.warm) else { continue };
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
                Err(error) => drop(snapshot.troubles.insert(agent_id, report::chain(&error))),
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
    /// Logs failures that are new since `before`.
    pub(super) fn log_new_troubles(&self, before: &Self) {
        for (agent, error) in &self.troubles {
            if before.troubles.get(agent) != Some(error) {
                tracing::warn!(%agent, error, "no warm containers for this agent");
            }
        }
    }

    /// Returns whether its container runs, as far as was observed.
    pub(super) fn may_run(&self, pooled: &PoolEntry) -> bool {
        let Some(running) = &self.running else { return true };
        running.contains(&pooled.warm.container)
    }

    /// Returns the error that a warm container has ended.
    pub(super) fn ended(&self, pooled: &PoolEntry) -> Error {
        let image = self.targets.get(&pooled.warm.template).map(|target| target.image.clone());
        Error::Ended { container: pooled.warm.container.clone(), image: image.unwrap_or_default() }
    }
}
