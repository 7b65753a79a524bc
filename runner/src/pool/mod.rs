//! Containers that wait for a run: started, sealed, each with a workspace and a socket directory of its own, and for one run only.
//!
//! `sluice up` keeps as many as agents' entries say. Each is in the store before the first thing of it is made, until the last is
//! gone; a run takes one by making its things the run's own (`run::making`), and from then on the pool knows nothing of it.
//! What no longer fits any entry is removed, as is what has ended while it waited. They are made one after the other, so
//! that runs do not wait for what is to make them fast.
//!
//! Not here: removing what a process has left that is gone (`reaper`).

mod making;
mod mould;
mod removing;

use std::{cell::Cell, collections::BTreeMap, convert::Infallible, time::Duration};

use futures_util::{StreamExt, stream};
use platform_core::id::AgentId;
use platform_runtime::{report, settings::Agent};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{mould::mould, removing::remove};
use crate::{
    agents::Catalog,
    away::Away,
    data_plane,
    run::{Host, RENEWALS, now, sure_until},
    sandbox::docker::{self, Waits},
    store::{self, PoolStage, Pooled},
    workspace,
};

/// How often it is looked whether one was taken.
const LOOK: Duration = Duration::from_millis(200);
/// How often images and containers are looked at.
const GLANCE: Duration = Duration::from_secs(2);
/// Pauses after something failed: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long removing everything may take at the end. What is left is for whoever comes next.
const DRAIN: Duration = Duration::from_secs(20);
/// Removed at a time.
const AT_A_TIME: usize = 4;

/// Why nothing waits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the store failed")]
    Store(#[from] store::Error),
    #[error("the data plane failed")]
    DataPlane(#[from] data_plane::Error),
    #[error("the workspace failed")]
    Workspace(#[from] workspace::Error),
    #[error("the sandbox failed")]
    Docker(#[from] docker::Error),
    #[error(
        "containers of image {image} do not wait for a start file: an image that does names its entrypoint on the label `{}` and has no command; or set `warm` to 0",
        platform_core::name::label::WAITS
    )]
    NeverWaits { image: String },
    #[error("workspaces are directories here, and nothing would bound what waits: they have to be images")]
    Unbounded,
    #[error("container {container} of image {image} has ended while it waited")]
    Ended { container: String, image: String },
    #[error("it is another's by now: this process was held up for longer than its lease")]
    Lost,
}

/// What is kept ready here.
#[derive(Debug)]
pub(crate) struct Pool<'h> {
    host: &'h Host,
    catalog: &'h Catalog,
    /// Nobody else can have begun to remove what is ours before this moment of the boot clock.
    sure_until: Cell<Duration>,
    /// Whether nothing is ours, as far as is known.
    is_empty: Cell<bool>,
}

/// What is to be ready of one mould.
struct Want {
    agent: AgentId,
    entry: Agent,
    image: String,
    count: usize,
}

/// What was seen outside the store, a moment ago.
#[derive(Default)]
struct Glance {
    /// All there are.
    agents: Vec<AgentId>,
    wants: BTreeMap<String, Want>,
    /// Why nothing can wait for runs of an agent.
    troubles: BTreeMap<AgentId, String>,
    /// Names of containers that run, those that were made since among them; absent if nobody looked.
    running: Option<Vec<String>>,
    /// Why the disk has no room for one more run, if it has none.
    room: Option<String>,
}

impl<'h> Pool<'h> {
    pub(crate) const fn new(host: &'h Host, catalog: &'h Catalog) -> Self {
        Self { host, catalog, sure_until: Cell::new(Duration::ZERO), is_empty: Cell::new(true) }
    }

    /// Keeps as many ready as there are to be, until `stop` is triggered; then it removes them. To be polled to its end: what is
    /// under way would be made without anybody to see it.
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
        // Most installations keep nothing ready, and pay nothing for it.
        if glance.wants.is_empty() && self.is_empty.get() { Ok(()) } else { self.pass(glance).await }
    }

    /// Removes everything that waits here.
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

    /// Keeps what is here from being taken for abandoned.
    async fn renew(&self) -> Infallible {
        let Host { store, worker, lease, .. } = self.host;
        loop {
            let since = now();
            if !self.is_empty.get() {
                match store.keep_spares(worker, *lease).await {
                    Ok(()) => self.sure_from(since),
                    Err(error) => {
                        tracing::warn!(error = %report::chain(&error), "what waits for runs is not kept");
                    }
                }
            }
            sleep(lease.duration() / RENEWALS).await;
        }
    }

    /// What is ours was kept, or wanted, not before `since`.
    fn sure_from(&self, since: Duration) {
        self.sure_until.set(sure_until(since, self.host.lease));
    }

    /// Returns what is ours to look after: also what a process that is gone has left.
    async fn ours(&self) -> Result<Vec<Pooled>, Error> {
        let mut rows = self.host.store.pool().await?;
        rows.retain(|row| row.stage != PoolStage::Gone && (self.is_mine(row) || row.over));
        Ok(rows)
    }

    fn is_mine(&self, pooled: &Pooled) -> bool {
        pooled.owner == self.host.worker.to_string()
    }

    /// What is to be ready, by mould, and what runs.
    ///
    /// # Errors
    /// If Docker is away: what was known before still holds.
    async fn glance(&self) -> Result<Glance, Error> {
        let Host { docker, workspaces, installation, .. } = self.host;
        let agents = self.catalog.agents().await;
        let mut glance = Glance { agents: agents.keys().cloned().collect(), ..Glance::default() };
        for (agent, entry) in agents {
            let Ok(count) = usize::try_from(entry.warm) else { continue };
            if count == 0 {
                continue;
            }
            match self.image(&entry).await {
                Ok(image) => {
                    let mould = mould(self.host, (&agent, &entry), &image);
                    drop(glance.wants.insert(mould, Want { agent, entry, image, count }));
                }
                Err(Error::Docker(error)) if error.is_away() => return Err(error.into()),
                Err(error) => drop(glance.troubles.insert(agent, report::chain(&error))),
            }
        }
        if !(glance.wants.is_empty() && self.is_empty.get()) {
            glance.running = Some(docker.running_spares(installation).await?);
            // Runs come first.
            glance.room =
                workspaces.room().and_then(|room| room.enough()).err().map(|error| report::chain(&error));
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

    /// Removes what is not to wait any more, and makes at most one that is. What went wrong with one does not keep the others.
    async fn pass(&self, glance: &mut Glance) -> Result<(), Error> {
        let ours = self.ours().await?;
        self.is_empty.set(ours.is_empty());
        self.count(glance, &ours);
        let mut missing: BTreeMap<_, _> =
            glance.wants.iter().map(|(mould, want)| (mould.as_str(), want.count)).collect();
        let mut wrong = Vec::new();
        for pooled in &ours {
            let place = missing.get_mut(pooled.spare.mould.as_str()).filter(|left| **left > 0);
            match place {
                Some(left) if pooled.stage == PoolStage::Ready && self.is_mine(pooled) => {
                    if glance.may_run(pooled) {
                        *left -= 1;
                        continue;
                    }
                    let image = glance.wants.get(&pooled.spare.mould).map(|want| want.image.clone());
                    let (container, image) = (pooled.spare.container.clone(), image.unwrap_or_default());
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
        if let Some((mould, want)) = next.and_then(|(mould, _)| glance.wants.get_key_value(mould)) {
            let made = self.make(mould, want).await?;
            self.is_empty.set(false);
            glance.running.iter_mut().for_each(|running| running.push(made.container.clone()));
        }
        Ok(())
    }

    /// Gives up one that waits: the disk has no room for a run that does not fit it.
    async fn make_room(&self, ours: &[Pooled]) -> Result<(), Error> {
        match ours.iter().find(|pooled| pooled.stage == PoolStage::Ready) {
            Some(pooled) => {
                tracing::warn!(container = pooled.spare.container, "gives its room on the disk to runs");
                self.leave(pooled).await
            }
            None => Ok(()),
        }
    }

    /// Has metrics tell what there is.
    fn count(&self, glance: &Glance, ours: &[Pooled]) {
        for agent in &glance.agents {
            let of = |stage| {
                let its = |pooled: &&Pooled| pooled.stage == stage && pooled.spare.agent == *agent;
                ours.iter().filter(its).count() as u64
            };
            self.host.observer.metrics.pool_has(agent, of(PoolStage::Ready), of(PoolStage::Wanted));
        }
    }

    async fn leave(&self, pooled: &Pooled) -> Result<(), Error> {
        let Host { store, worker, .. } = self.host;
        match store.spare_leaves(&pooled.spare.container, worker).await? {
            true => {
                if pooled.stage == PoolStage::Ready {
                    self.host.observer.metrics.pool_expired(&pooled.spare.agent);
                }
                self.clear(&pooled.spare).await
            }
            // A run was faster.
            false => Ok(()),
        }
    }
}

impl Glance {
    /// Tells of what is wrong and was not before.
    fn tell_news(&self, before: &Self) {
        for (agent, error) in &self.troubles {
            if before.troubles.get(agent) != Some(error) {
                tracing::warn!(%agent, error, "nothing waits for its runs");
            }
        }
    }

    /// Whether its container runs, as far as was seen.
    fn may_run(&self, pooled: &Pooled) -> bool {
        let Some(running) = &self.running else { return true };
        running.contains(&pooled.spare.container)
    }
}
