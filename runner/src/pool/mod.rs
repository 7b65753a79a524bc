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
    data_plane,
    run::{Host, now},
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
/// Renewals in the time of a lease: some may fail.
const RENEWALS: u32 = 4;

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
        "containers of image {image} do not wait for a start file: label one that does with `{}=1` and give it no command, or set `warm` to 0",
        platform_core::name::label::WAITS
    )]
    NeverWaits { image: String },
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
    /// Names of containers that run, those that were made since among them; absent if Docker did not tell.
    running: Option<Vec<String>>,
}

impl<'h> Pool<'h> {
    pub(crate) const fn new(host: &'h Host, catalog: &'h Catalog) -> Self {
        Self { host, catalog, sure_until: Cell::new(Duration::ZERO) }
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
            if looked.is_none_or(|at| at.elapsed() >= GLANCE) {
                let before = std::mem::replace(&mut glance, self.glance().await);
                glance.tell_news(&before);
                looked = Some(Instant::now());
            }
            let next = match self.pass(&mut glance).await {
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
                    let now = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    now
                }
            };
            drop(timeout(next, stop.cancelled()).await);
        }
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
            match store.keep_spares(worker, *lease).await {
                Ok(()) => {
                    // Clocks run at slightly different speeds.
                    self.sure_until.set(since + lease.duration() - lease.duration() / 8);
                }
                Err(error) => {
                    tracing::warn!(error = %report::chain(&error), "what waits for runs is not kept");
                }
            }
            sleep(lease.duration() / RENEWALS).await;
        }
    }

    async fn ours(&self) -> Result<Vec<Pooled>, Error> {
        let owner = self.host.worker.to_string();
        let mut rows = self.host.store.pool().await?;
        rows.retain(|row| row.owner == owner && row.stage != PoolStage::Gone);
        Ok(rows)
    }

    /// What is to be ready, by mould, and what runs.
    async fn glance(&self) -> Glance {
        let (mut wants, mut troubles) = (BTreeMap::new(), BTreeMap::new());
        let agents = self.catalog.agents().await;
        let all = agents.keys().cloned().collect();
        for (agent, entry) in agents {
            let Ok(count) = usize::try_from(entry.warm) else { continue };
            if count == 0 {
                continue;
            }
            match self.image(&entry).await {
                Ok(image) => {
                    let want = wants.entry(mould(&entry, &image));
                    let want = want.or_insert_with(|| Want { agent, entry, image, count: 0 });
                    want.count += count;
                }
                Err(error) => drop(troubles.insert(agent, report::chain(&error))),
            }
        }
        let running = self.host.docker.running_spares(&self.host.installation).await;
        Glance { agents: all, wants, troubles, running: running.ok() }
    }

    async fn image(&self, agent: &Agent) -> Result<String, Error> {
        match self.host.docker.image_that_waits(&agent.image).await? {
            (id, Waits::ForStartFile) => Ok(id),
            (_, Waits::Never) => Err(Error::NeverWaits { image: agent.image.to_string() }),
        }
    }

    /// Removes one after the other what is not to wait any more, and makes at most one that is.
    async fn pass(&self, glance: &mut Glance) -> Result<(), Error> {
        let ours = self.ours().await?;
        self.count(glance, &ours);
        let mut missing: BTreeMap<_, _> =
            glance.wants.iter().map(|(mould, want)| (mould.as_str(), want.count)).collect();
        for pooled in &ours {
            let place = missing.get_mut(pooled.spare.mould.as_str()).filter(|left| **left > 0);
            match place {
                Some(left) if pooled.stage == PoolStage::Ready && glance.may_run(pooled) => *left -= 1,
                _ => self.leave(pooled).await?,
            }
        }
        let next = missing.into_iter().find(|(_, left)| *left > 0);
        if let Some((mould, want)) = next.and_then(|(mould, _)| glance.wants.get_key_value(mould)) {
            let made = self.make(mould, want).await?;
            glance.running.iter_mut().for_each(|running| running.push(made.container.clone()));
        }
        Ok(())
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
                self.host.observer.metrics.pool_expired(&pooled.spare.agent);
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
