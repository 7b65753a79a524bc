//! Creates a gateway's container, replaces it when its setup changes, and ends it.

use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

use platform_core::{
    control::{GatewayListener, UpstreamHealth},
    name::{SANDBOX_UID, label},
};
use platform_runtime::{
    lock::Lock,
    poll::poll,
    report,
    settings::{Attribution, Gateway},
};
use runner_docker::{GatewayContainer, GatewaySpec};
use runner_store::{NewGatewayAgent, Store};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Error, check,
    config::{self, ConfigInputs},
    disk::Disk,
    files::Files,
    gateway::ManagedGateway,
    probe::{self, ProbeAnswer},
    setup,
    spec::Setup,
};
use crate::SOCKET;

/// Longest wait for a gateway's first answer. Alone on two cores OpenClaw 2026.9 takes 11 s.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Interval between attempts to lock a gateway, and between checks of its readiness.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Number of slots for each active session: the slot of a cancelled run is in quarantine for minutes.
const SLOTS_PER_SESSION: usize = 4;
/// Settings that a running gateway takes from its file, in less than a second (measured with OpenClaw 2026.9.6).
const RELOADED: [&str; 2] = ["config.agents.entries.", "config.models.providers."];
/// Number of lines of its output that are shown when it does not start.
const TAIL_LINES: u32 = 20;

/// Result of starting a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartResult {
    /// The gateway did not run, and was started.
    Started,
    /// The gateway ran with the same setup.
    Unchanged,
    /// The gateway ran, and took these settings without a restart: those of its agents.
    Reloaded(Vec<String>),
    /// The gateway ran, and these settings differed.
    Restarted(Vec<String>),
}

/// Progress that [`ManagedGateway::up`] and [`ManagedGateway::down`] report.
#[derive(Debug)]
pub enum StartProgress<'e> {
    /// Another command holds the gateway's lock, and this one waits for it.
    Waiting,
    /// These settings differ, so the gateway is stopped, which may take this long.
    Stopping(&'e [String], Duration),
}

/// Data that is kept when a gateway is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptData {
    /// Its conversations, its token and its slots.
    State,
    /// No data: its disk and its files are removed.
    Nothing,
}

/// Setup of a gateway as it should be: of its container, and its configuration.
struct GatewayPlan {
    setup: Setup,
    config: Value,
    spec: GatewaySpec,
}

impl GatewayPlan {
    fn write(&self, files: &Files<'_>, gateway: &Gateway) -> Result<(), Error> {
        files.write_setup(&self.setup, &self.config, &gateway.provider)
    }
}

/// Returns whether a running gateway takes all of these settings from its file.
fn are_reloaded(differences: &[String]) -> bool {
    differences.iter().all(|path| is_reloaded(path))
}

fn is_reloaded(path: &str) -> bool {
    RELOADED.iter().any(|taken| path.starts_with(taken))
}

impl ManagedGateway<'_> {
    /// Starts the gateway as it is configured now, with the agents that people made. Does nothing if it runs with this
    /// configuration. Only one process at a time acts on a gateway. Not cancel safe: a repeated call continues.
    pub async fn up(
        &self,
        store: &Store,
        on_progress: &(dyn Fn(StartProgress<'_>) + Sync),
    ) -> Result<StartResult, Error> {
        let _lock = self.lock(on_progress).await?;
        let files = Files { paths: &self.paths };
        let plan = self.plan(&files, store).await?;
        // Known before a gateway is stopped that would not start again.
        self.docker.volumes(&plan.spec.volumes).await?;
        let result = match self.docker.gateway(&self.container_name()).await? {
            Some(found) if found.is_running => {
                let differences = self.differences(&files, &plan, &found);
                if differences.is_empty() {
                    return Ok(StartResult::Unchanged);
                }
                if are_reloaded(&differences) {
                    plan.write(&files, self.gateway)?;
                    return Ok(StartResult::Reloaded(differences));
                }
                on_progress(StartProgress::Stopping(&differences, self.drain()));
                self.docker.end_gateway(&self.container_name(), self.drain()).await?;
                StartResult::Restarted(differences)
            }
            Some(_ended) => {
                self.docker.remove(&self.container_name()).await?;
                StartResult::Started
            }
            None => StartResult::Started,
        };
        plan.write(&files, self.gateway)?;
        self.disk().prepare().await?;
        if let Some(exceeded) = self.disk().exceeded().await? {
            return Err(Error::Full { id: self.id.clone(), exceeded, state: self.paths.state() });
        }
        self.docker.start_gateway(&plan.spec).await?;
        Ok(result)
    }

    /// Writes the configuration of a gateway that runs, with the agents that people made, and returns it. Restarts nothing:
    /// what the gateway does not take while it runs is an error.
    pub(crate) async fn reload(&self, store: &Store) -> Result<Value, Error> {
        let _lock = self.lock(&|_progress| {}).await?;
        let files = Files { paths: &self.paths };
        let found = self.docker.gateway(&self.container_name()).await?.filter(|found| found.is_running);
        let found = found.ok_or_else(|| Error::Down(self.id.clone()))?;
        let plan = self.plan(&files, store).await?;
        let differences = self.differences(&files, &plan, &found);
        if !are_reloaded(&differences) {
            let changed = differences.into_iter().filter(|path| !is_reloaded(path)).collect();
            return Err(Error::NeedsRestart { id: self.id.clone(), changed });
        }
        if !differences.is_empty() {
            plan.write(&files, self.gateway)?;
        }
        Ok(plan.config)
    }

    /// Returns what the gateway should be now. The lock is held, so that no other process writes older agents meanwhile.
    async fn plan(&self, files: &Files<'_>, store: &Store) -> Result<GatewayPlan, Error> {
        let image = self.docker.image(&self.gateway.managed.image).await?;
        files.prepare()?;
        let made = store.gateway_agents(self.id).await?;
        // Agents of an account that the gateway served before are not the present one's.
        let made = made.into_iter().filter(|made| made.removed.is_none()).map(|made| made.agent);
        let made: Vec<_> = made.filter(|made| made.account == self.gateway.account).collect();
        let config = self.config(files, &made).await?;
        let findings = check::check_config(self.gateway, &config);
        if !findings.is_empty() {
            return Err(Error::Unsafe { id: self.id.clone(), findings });
        }
        let listener = GatewayListener { peer_uid: SANDBOX_UID, socket_dir: files.listener_dir()? };
        let socket = self.data_plane.open_gateway(self.id, &listener).await?;
        let setup = self.setup(image, socket);
        let name = setup::name(&json!({ "container": setup, "config": config }));
        let spec = self.spec(setup.clone(), name);
        Ok(GatewayPlan { setup, config, spec })
    }

    /// Returns where its container, or its files, differ from `plan`. The files count, and not the name that the container
    /// was given at its start: a running gateway has read them since.
    fn differences(&self, files: &Files<'_>, plan: &GatewayPlan, found: &GatewayContainer) -> Vec<String> {
        let written = json!({ "container": files.setup(), "config": files.config() });
        let planned = json!({ "container": plan.setup, "config": plan.config });
        let mut differences = setup::differences(&written, &planned);
        differences.extend(self.changed_settings(found).unwrap_or_else(|| vec!["setup.json".to_owned()]));
        differences.extend(found.networks.iter().map(|network| format!("network {network}")));
        differences
    }

    /// Keeps other processes from creating or ending the gateway, as long as the returned lock exists. The lock is
    /// released when its process ends.
    async fn lock(&self, on_progress: &(dyn Fn(StartProgress<'_>) + Sync)) -> Result<Lock, Error> {
        let files = Files { paths: &self.paths };
        if let Some(lock) = files.lock()? {
            return Ok(lock);
        }
        on_progress(StartProgress::Waiting);
        loop {
            sleep(POLL_INTERVAL).await;
            if let Some(lock) = files.lock()? {
                return Ok(lock);
            }
        }
    }

    /// Locks a gateway that has files on this host; `None` if another process holds the lock.
    pub(super) fn try_lock(&self) -> Result<Option<Lock>, Error> {
        let files = Files { paths: &self.paths };
        if self.paths.dir().is_dir() { files.lock() } else { Ok(None) }
    }

    /// Returns the last `lines` that the gateway has printed.
    pub async fn log(&self, lines: u32) -> Result<String, Error> {
        if self.container().await?.is_none() {
            return Err(Error::Down(self.id.clone()));
        }
        Ok(self.docker.tail(&self.container_name(), lines).await?)
    }

    /// Waits until the gateway answers; returns how long that took.
    pub async fn until_ready(&self) -> Result<Duration, Error> {
        let begun = Instant::now();
        poll(POLL_INTERVAL, async || self.ready_since(begun).await.transpose()).await
    }

    /// Returns how long the gateway took since `begun`, if it answers.
    async fn ready_since(&self, begun: Instant) -> Result<Option<Duration>, Error> {
        if matches!(self.probe().await, Ok(ProbeAnswer::Ready)) {
            return Ok(Some(begun.elapsed()));
        }
        let is_running =
            self.docker.gateway(&self.container_name()).await?.is_some_and(|found| found.is_running);
        if is_running && begun.elapsed() <= START_TIMEOUT {
            return Ok(None);
        }
        let tail = self.docker.tail(&self.container_name(), TAIL_LINES).await.unwrap_or_default();
        let id = self.id.clone();
        Err(if is_running { Error::Silent { id, tail } } else { Error::Ended { id, tail } })
    }

    /// Ends the gateway once its sessions have ended, at the latest after its drain timeout. Returns whether it
    /// existed. Only one process at a time acts on a gateway.
    pub async fn down(
        &self,
        kept: KeptData,
        on_progress: &(dyn Fn(StartProgress<'_>) + Sync),
    ) -> Result<bool, Error> {
        let _lock = self.lock(on_progress).await?;
        let existed = self.docker.gateway(&self.container_name()).await?.is_some();
        self.end(self.drain()).await?;
        self.data_plane.close_gateway(self.id).await?;
        match kept {
            KeptData::State => self.disk().unmount().await?,
            KeptData::Nothing => {
                self.disk().remove().await?;
                Files { paths: &self.paths }.remove()?;
            }
        }
        Ok(existed)
    }

    /// Stops its container, waiting at most `drain` for its end, and removes it.
    pub(super) async fn end(&self, drain: Duration) -> Result<(), Error> {
        Ok(self.docker.end_gateway(&self.container_name(), drain).await?)
    }

    /// Starts its container again, as it is.
    pub(super) async fn resume(&self) -> Result<(), Error> {
        self.disk().prepare().await?;
        Ok(self.docker.resume_gateway(&self.container_name()).await?)
    }

    /// Returns the disk that it writes to.
    pub(super) fn disk(&self) -> Disk<'_> {
        Disk { sandbox: &self.settings.sandbox, gateway: self.gateway, paths: &self.paths }
    }

    /// Returns its container, if there is one.
    pub(super) async fn container(&self) -> Result<Option<GatewayContainer>, Error> {
        Ok(self.docker.gateway(&self.container_name()).await?)
    }

    /// Returns the settings in which `found`, its container, differs from its setup; `None` if the setup is not known
    /// any more.
    pub(super) fn changed_settings(&self, found: &GatewayContainer) -> Option<Vec<String>> {
        let setup = Files { paths: &self.paths }.setup()?;
        let name = found.labels.get(label::SETUP).cloned().unwrap_or_default();
        Some(found.differences(&self.spec(setup, name)))
    }

    /// Asks the gateway whether it is ready.
    pub(super) async fn probe(&self) -> io::Result<ProbeAnswer> {
        probe::check_ready(&self.paths.bridge().join(SOCKET)).await
    }

    /// Returns the configuration that its container has.
    pub(super) fn written_config(&self) -> Option<Value> {
        Files { paths: &self.paths }.config()
    }

    /// Returns the configuration that it would have, without its secrets.
    pub(super) async fn planned_config(&self) -> Value {
        let models = self.models(&Files { paths: &self.paths }, &[]).await;
        let uses_slots = self.gateway.attribution == Attribution::Slot;
        let slots =
            vec![String::new(); if uses_slots { self.gateway.max_concurrent_sessions as usize } else { 0 }];
        let limits = &self.settings.models;
        let inputs = ConfigInputs { models: &models, token: "", slots: &slots, limits, agents: &[] };
        config::configuration(self.gateway, inputs)
    }

    pub(super) fn drain(&self) -> Duration {
        Duration::from_millis(self.gateway.managed.drain_timeout.0)
    }

    async fn config(&self, files: &Files<'_>, agents: &[NewGatewayAgent]) -> Result<Value, Error> {
        let models = self.models(files, agents).await;
        if models.is_empty() {
            return Err(Error::NoModel(self.id.clone()));
        }
        let uses_slots = self.gateway.attribution == Attribution::Slot;
        let slots = if uses_slots {
            files.slots(self.gateway.max_concurrent_sessions as usize * SLOTS_PER_SESSION)?
        } else {
            Vec::new()
        };
        let token = files.token()?;
        let limits = &self.settings.models;
        let inputs = ConfigInputs { models: &models, token: token.expose(), slots: &slots, limits, agents };
        Ok(config::configuration(self.gateway, inputs))
    }

    /// Returns the models that its agents may call: those that the registry names for it, and those that the upstream
    /// offers. If the upstream does not report its models, those known before are used. The default comes first.
    async fn models(&self, files: &Files<'_>, made: &[NewGatewayAgent]) -> Vec<String> {
        let agents = self.settings.agents.values().filter(|agent| agent.gateways.contains(self.id));
        let named =
            agents.flat_map(|agent| agent.models.iter().map(ToString::to_string).chain(agent.model.clone()));
        let made = made.iter().filter_map(|agent| agent.settings.model.as_ref().map(ToString::to_string));
        let mut models: BTreeSet<String> = named.chain(made).collect();
        let default = self.settings.upstream.default_model.clone();
        models.extend(default.clone());
        match self.data_plane.upstream().await {
            Ok(UpstreamHealth::Ready { models: offered, .. }) => models.extend(offered),
            other => {
                let error = other.err().map(|error| report::chain(&error));
                tracing::warn!(gateway = %self.id, error, "models of the upstream not known; keeping those of the last start");
                models.extend(files.config().iter().flat_map(|config| check::models(self.gateway, config)));
            }
        }
        // A pattern, as wildcards of the upstream are, names no model.
        models.retain(|model| !model.contains('*'));
        let first = default.into_iter().filter(|model| models.contains(model)).collect::<Vec<_>>();
        let others = models.iter().filter(|model| !first.contains(model));
        first.iter().chain(others).cloned().collect()
    }
}
