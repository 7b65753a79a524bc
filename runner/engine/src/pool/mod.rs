//! Keeps warm containers: started, isolated, each with a workspace and a socket directory of its own, and for one run
//! only.
//!
//! `sluice up` keeps as many as agents' entries say. Each is in the store from before its first part is created until
//! its last part is gone. A run claims one by making its resources the run's own (`run::making`). From then on the pool
//! knows nothing of it. The pool removes containers that no longer fit any entry or have ended while they waited. It
//! creates them one after the other, so that they do not delay the runs that they are to speed up.
//!
//! Not here: removing what an ended process has left (`reaper`).

mod making;
mod removing;
mod template;

use std::{cell::Cell, collections::BTreeMap, convert::Infallible, time::Duration};

use futures_util::{StreamExt, stream};
use platform_core::id::AgentId;
use platform_runtime::{report, settings::Agent};
use runner_control_client as data_plane;
use runner_docker::{self as docker, Waits};
use runner_model::away::Away;
use runner_store::{self as store, PoolStage, Pooled};
use runner_workspace as workspace;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{removing::remove, template::template};
use crate::{
    agents::Catalog,
    context::EngineHandles,
    lease_clock::{RENEWALS_PER_LEASE, boot_now, held_until},
};

/// Interval between checks whether a run has claimed one.
const LOOK: Duration = Duration::from_millis(200);
/// Interval between looks at images and containers.
const GLANCE: Duration = Duration::from_secs(2);
/// Delays after a failure: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Longest time for removing everything at the end. What is left is for the next `sluice up` or the reaper.
const DRAIN: Duration = Duration::from_secs(20);
/// Number of containers that are removed at the same time.
const AT_A_TIME: usize = 4;

/// Reason why there is no warm container.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] store::Error),
    /// The data plane failed.
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    /// The workspace failed, or the disk has no space for another.
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    /// Docker failed.
    #[error("the sandbox failed")]
    Docker(#[from] docker::Error),
    /// The image is not made for warm containers.
    #[error(
        "containers of image {image} do not wait for a start file: an image that does names its entrypoint on the label `{}` and has no command; or set `warm` to 0",
        platform_core::name::label::ENTRYPOINT
    )]
    NeverWaits {
        /// Image in the agent's settings.
        image: String,
    },
    /// Workspaces are not images here, so nothing bounds the disk use of a warm container.
    #[error("workspaces are directories here, and nothing would bound what waits: they have to be images")]
    Unbounded,
    /// A warm container ended while it waited for a run.
    #[error("container {container} of image {image} has ended while it waited")]
    Ended {
        /// Name of the container.
        container: String,
        /// Id of its image.
        image: String,
    },
    /// The warm container may belong to another process by now.
    #[error("it is another's by now: this process was held up for longer than its lease")]
    Lost,
}

/// Pool of this process's warm containers.
#[derive(Debug)]
pub(crate) struct Pool<'h> {
    host: &'h EngineHandles,
    catalog: &'h Catalog,
    /// Moment of the boot clock before which no other process can have begun to remove our containers.
    sure_until: Cell<Duration>,
    /// True if this process has no warm containers, as far as it knows.
    is_empty: Cell<bool>,
}

/// Warm containers that one template should have.
struct Want {
    agent: AgentId,
    entry: Agent,
    image: String,
    count: usize,
}

/// State outside the store, observed a moment ago.
#[derive(Default)]
struct Glance {
    /// All agents of the catalog.
    agents: Vec<AgentId>,
    wants: BTreeMap<String, Want>,
    /// Reason per agent for which its runs can have no warm containers.
    troubles: BTreeMap<AgentId, String>,
    /// Names of containers that run, including those created since; absent if they were not listed.
    running: Option<Vec<String>>,
    /// Reason why the disk has no space for one more run, if it has none.
    room: Option<String>,
}

impl<'h> Pool<'h> {
    pub(crate) const fn new(host: &'h EngineHandles, catalog: &'h Catalog) -> Self {
        Self { host, catalog, sure_until: Cell::new(Duration::ZERO), is_empty: Cell::new(true) }
    }

    /// Keeps the configured number ready until `stop` is triggered; then removes all. To be polled to its end: dropping
    /// it would leave containers that are being created without an owner.
    pub(crate) async fn keep(&self, stop: &CancellationToken) {
        let hurry = async {
            stop.cancelled().await;
            sleep(DRAIN).await;
        };
        tokio::select! {
            () = self.fill(stop) => {}
            never = self.renew() => match never {},
            () = hurry => {}
        }
        self.drain().await;
    }

    async fn fill(&self, stop: &CancellationToken) {
        let (mut glance, mut looked) = (Glance::default(), None::<Instant>);
        let (mut pause, mut said) = (PAUSES.0, String::new());
        while !stop.is_cancelled() {
            let next = match self.round((&mut glance, &mut looked)).await {
                Ok(()) => {
                    (pause, said) = (PAUSES.0, String::new());
                    LOOK
                }
                Err(error) => {
                    let error = report::chain(&error);
                    if error != said {
                        tracing::warn!(error, "fewer containers wait for runs than should");
                        said = error;
                    }
                    looked = None;
                    let longer = (pause * 2).min(PAUSES.1);
                    std::mem::replace(&mut pause, longer)
                }
            };
            drop(timeout(next, stop.cancelled()).await);
        }
    }

    async fn round(&self, (glance, looked): (&mut Glance, &mut Option<Instant>)) -> Result<(), Error> {
        if looked.is_none_or(|at| at.elapsed() >= GLANCE) {
            let now = self.glance().await?;
            now.tell_news(glance);
            for gone in glance.agents.iter().filter(|agent| !now.agents.contains(agent)) {
                self.host.observer.metrics.pool_has(gone, 0, 0);
            }
            (*glance, *looked) = (now, Some(Instant::now()));
        }
        // Most installations have no warm containers, and then this costs nothing.
        if glance.wants.is_empty() && self.is_empty.get() { Ok(()) } else { self.pass(glance).await }
    }

    /// Removes all warm containers of this process.
    async fn drain(&self) {
        let removed = timeout(DRAIN, async {
            let ours = self.ours().await?;
            let removing = ours.iter().map(|pooled| self.leave(pooled));
            let ended: Vec<_> = stream::iter(removing).buffer_unordered(AT_A_TIME).collect().await;
            ended.into_iter().collect::<Result<Vec<()>, Error>>()
        });
        match removed.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %report::chain(&error), "something that waits is left for the reaper");
            }
            Err(_elapsed) => tracing::warn!("removing what waits took too long: it is left for the reaper"),
        }
    }

    /// Renews the lease on the warm containers, so that no other process takes them for abandoned.
    async fn renew(&self) -> Infallible {
        let EngineHandles { store, worker, lease, .. } = self.host;
        loop {
            let since = boot_now();
            if !self.is_empty.get() {
                match store.keep_warm_containers(worker, *lease).await {
                    Ok(()) => self.sure_from(since),
                    Err(error) => {
                        tracing::warn!(error = %report::chain(&error), "what waits for runs is not kept");
                    }
                }
            }
            sleep(lease.duration() / RENEWALS_PER_LEASE).await;
        }
    }

    /// Records that the lease on the warm containers was acquired or renewed not before `since`.
    fn sure_from(&self, since: Duration) {
        self.sure_until.set(held_until(since, self.host.lease));
    }

    /// Returns the rows that this process manages: also those that an ended process has left.
    async fn ours(&self) -> Result<Vec<Pooled>, Error> {
        let mut rows = self.host.store.pool().await?;
        rows.retain(|row| row.stage != PoolStage::Gone && (self.is_mine(row) || row.over));
        Ok(rows)
    }

    fn is_mine(&self, pooled: &Pooled) -> bool {
        pooled.owner == self.host.worker.to_string()
    }

    /// Observes what should be ready, by template, and which containers run.
    ///
    /// # Errors
    /// If Docker is unavailable: the state observed before still holds.
    async fn glance(&self) -> Result<Glance, Error> {
        let EngineHandles { docker, workspaces, installation, .. } = self.host;
        let agents = self.catalog.agents().await;
        let mut glance = Glance { agents: agents.keys().cloned().collect(), ..Glance::default() };
        for (agent, entry) in agents {
            let Ok(count) = usize::try_from(entry.warm) else { continue };
            if count == 0 {
                continue;
            }
            match self.image(&entry).await {
                Ok(image) => {
                    let template = template(self.host, (&agent, &entry), &image);
                    drop(glance.wants.insert(template, Want { agent, entry, image, count }));
                }
                Err(Error::Docker(error)) if error.is_away() => return Err(error.into()),
                Err(error) => drop(glance.troubles.insert(agent, report::chain(&error))),
            }
        }
        if !(glance.wants.is_empty() && self.is_empty.get()) {
            glance.running = Some(docker.running_warm_containers(installation).await?);
            // Runs have priority for disk space.
            glance.room = workspaces
                .disk_space()
                .and_then(|space| Ok(space.enough()?))
                .err()
                .map(|error| report::chain(&error));
        }
        Ok(glance)
    }

    async fn image(&self, agent: &Agent) -> Result<String, Error> {
        if !self.host.workspaces.are_images() {
            return Err(Error::Unbounded);
        }
        match self.host.docker.image_that_waits(&agent.image).await? {
            (id, Waits::ForStartFile) => Ok(id),
            (_, Waits::Never) => Err(Error::NeverWaits { image: agent.image.to_string() }),
        }
    }

    /// Removes containers that are no longer wanted, and creates at most one that is missing. A failure with one does
    /// not stop the removal of the others.
    async fn pass(&self, glance: &mut Glance) -> Result<(), Error> {
        let ours = self.ours().await?;
        self.is_empty.set(ours.is_empty());
        self.count(glance, &ours);
        let mut missing: BTreeMap<_, _> =
            glance.wants.iter().map(|(template, want)| (template.as_str(), want.count)).collect();
        let mut wrong = Vec::new();
        for pooled in &ours {
            let place = missing.get_mut(pooled.warm.template.as_str()).filter(|left| **left > 0);
            match place {
                Some(left) if pooled.stage == PoolStage::Ready && self.is_mine(pooled) => {
                    if glance.may_run(pooled) {
                        *left -= 1;
                        continue;
                    }
                    let image = glance.wants.get(&pooled.warm.template).map(|want| want.image.clone());
                    let (container, image) = (pooled.warm.container.clone(), image.unwrap_or_default());
                    wrong.push(Error::Ended { container, image });
                }
                _ => {}
            }
            wrong.extend(self.leave(pooled).await.err());
        }
        if let Some(error) = wrong.into_iter().next() {
            return Err(error);
        }
        if glance.room.is_some() {
            return self.make_room(&ours).await;
        }
        let next = missing.into_iter().find(|(_, left)| *left > 0);
        if let Some((template, want)) = next.and_then(|(template, _)| glance.wants.get_key_value(template)) {
            let made = self.make(template, want).await?;
            self.is_empty.set(false);
            glance.running.iter_mut().for_each(|running| running.push(made.container.clone()));
        }
        Ok(())
    }

    /// Removes one warm container: the disk has no space for a run that cannot use it.
    async fn make_room(&self, ours: &[Pooled]) -> Result<(), Error> {
        match ours.iter().find(|pooled| pooled.stage == PoolStage::Ready) {
            Some(pooled) => {
                tracing::warn!(container = pooled.warm.container, "gives its room on the disk to runs");
                self.leave(pooled).await
            }
            None => Ok(()),
        }
    }

    /// Updates the metrics of the pool.
    fn count(&self, glance: &Glance, ours: &[Pooled]) {
        for agent in &glance.agents {
            let of = |stage| {
                let its = |pooled: &&Pooled| pooled.stage == stage && pooled.warm.agent == *agent;
                ours.iter().filter(its).count() as u64
            };
            self.host.observer.metrics.pool_has(agent, of(PoolStage::Ready), of(PoolStage::Wanted));
        }
    }

    async fn leave(&self, pooled: &Pooled) -> Result<(), Error> {
        let EngineHandles { store, worker, .. } = self.host;
        match store.warm_leaves(&pooled.warm.container, worker).await? {
            true => {
                if pooled.stage == PoolStage::Ready {
                    self.host.observer.metrics.pool_expired(&pooled.warm.agent);
                }
                self.clear(&pooled.warm).await
            }
            // A run has claimed it first.
            false => Ok(()),
        }
    }
}

impl Glance {
    /// Logs failures that are new since `before`.
    fn tell_news(&self, before: &Self) {
        for (agent, error) in &self.troubles {
            if before.troubles.get(agent) != Some(error) {
                tracing::warn!(%agent, error, "nothing waits for its runs");
            }
        }
    }

    /// Returns whether its container runs, as far as was observed.
    fn may_run(&self, pooled: &Pooled) -> bool {
        let Some(running) = &self.running else { return true };
        running.contains(&pooled.warm.container)
    }
}
