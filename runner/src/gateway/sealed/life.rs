//! Making a gateway's container, making it anew when it is to be another, and ending it.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use platform_core::{
    control::{GatewayDoor, SocketDir, UpstreamHealth},
    id::{GatewayId, InstallationId},
    limit,
    name::{SANDBOX_UID, env, label, path},
};
use platform_runtime::{
    report,
    settings::{Attribution, Gateway, Settings},
    socket,
};
use serde_json::{Value, json};

use super::{
    Finding, check,
    config::{self, PORT, Parts},
    files::Files,
    probe::{self, Answer},
    setup,
};
use crate::{
    data_plane::{self, DataPlane},
    gateway::{Place, SOCKET},
    sandbox::{
        Limits,
        docker::{self, Docker, GatewaySpec},
    },
};

/// How long a gateway may take until it answers. Alone on two cores OpenClaw 2026.9 takes 11 s.
const START: Duration = Duration::from_secs(180);
/// Pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(250);
/// Lines of its output that are shown when it does not begin.
const TAIL: u32 = 20;
/// Where things are in the container.
const CONFIG_DIR: &str = "/config";
const BRIDGE_DIR: &str = "/bridge";
const OPENCLAW: &str = "/opt/openclaw/node_modules/openclaw/openclaw.mjs";

/// Why a gateway is not what it was asked to be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no [gateways.{id}]; there are: {}", if known.is_empty() { "none" } else { known })]
    Unknown { id: GatewayId, known: String },
    #[error("gateway {id} does not run here but at {url}: start it there")]
    Elsewhere { id: GatewayId, url: String },
    #[error(
        "there is no model for gateway {0}: name some in `models` of an agent with `gateways = [\"{0}\"]`, or start the proxy and its upstream"
    )]
    NoModel(GatewayId),
    #[error("gateway {id} is not started like this: {}", list(.findings))]
    Unsafe { id: GatewayId, findings: Vec<Finding> },
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Dir(#[from] socket::Error),
    #[error(transparent)]
    Secret(#[from] crate::gateway::Error),
    #[error(transparent)]
    Docker(#[from] docker::Error),
    #[error(transparent)]
    DataPlane(#[from] data_plane::Error),
    #[error("gateway {id} did not answer within {} s; its output ends:\n{tail}", START.as_secs())]
    Silent { id: GatewayId, tail: String },
    #[error("gateway {id} has ended; its output ends:\n{tail}")]
    Ended { id: GatewayId, tail: String },
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What became of a gateway that was to be up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    Started,
    /// It ran and was the same.
    Unchanged,
    /// It ran, and these were not as they are to be.
    Restarted(Vec<String>),
}

/// What is told while it takes its time.
#[derive(Debug)]
pub(crate) enum Event<'e> {
    /// These are not as they are to be, so it is stopped, which may take so long.
    Stopping(&'e [String], Duration),
}

/// What stays of a gateway that is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Its conversations, its token and its slots.
    State,
    Nothing,
}

/// Name of a gateway's container.
pub(crate) fn container(installation: &InstallationId, gateway: &str) -> String {
    format!("sluice-{installation}-gateway-{gateway}")
}

/// A gateway that runs here.
#[derive(Debug)]
pub(crate) struct Sealed<'s> {
    settings: &'s Settings,
    pub(super) id: &'s GatewayId,
    pub(super) gateway: &'s Gateway,
    pub(super) place: Place,
    docker: Docker,
    data_plane: DataPlane,
}

impl<'s> Sealed<'s> {
    /// The gateway of this name.
    pub(crate) async fn open(settings: &'s Settings, id: &GatewayId) -> Result<Self, Error> {
        let Some((id, gateway)) = settings.gateways.get_key_value(id) else {
            let known: Vec<_> = settings.gateways.keys().map(GatewayId::as_str).collect();
            return Err(Error::Unknown { id: id.clone(), known: known.join(", ") });
        };
        if let Some(url) = &gateway.url {
            return Err(Error::Elsewhere { id: id.clone(), url: url.clone() });
        }
        let place = Place::of(settings, id, gateway);
        let docker = Docker::connect(&settings.sandbox.docker_socket).await?;
        let data_plane = DataPlane::at(&settings.proxy.control_socket());
        Ok(Self { settings, id, gateway, place, docker, data_plane })
    }

    fn name(&self) -> String {
        container(&self.settings.sandbox.installation, self.id.as_str())
    }

    /// Has it run as it is configured now. Does nothing if it does. Not cancel safe: asked again, it goes on.
    pub(crate) async fn up(&self, tell: &dyn Fn(Event<'_>)) -> Result<Done, Error> {
        let image = self.docker.image(&self.gateway.sealed.image).await?;
        let files = Files { place: &self.place };
        files.prepare()?;
        let config = self.config(&files).await?;
        let findings = check::of_config(self.gateway, &config);
        if !findings.is_empty() {
            return Err(Error::Unsafe { id: self.id.clone(), findings });
        }
        let door = GatewayDoor { peer_uid: SANDBOX_UID, socket_dir: files.door()? };
        let socket = self.data_plane.open_gateway(self.id, &door).await?;
        let made_from = self.setup(&image, &socket);
        let whole = json!({ "container": made_from, "config": config });
        let name = setup::name(&whole);
        let found = self.docker.gateway(&self.name()).await?;
        let same = |found: &docker::GatewayFound| found.labels.get(label::SETUP) == Some(&name);
        let done = match found {
            Some(found) if found.is_running && same(&found) => return Ok(Done::Unchanged),
            Some(found) if found.is_running => {
                let was = json!({ "container": files.setup(), "config": files.config() });
                let differences = setup::differences(&was, &whole);
                tell(Event::Stopping(&differences, self.drain()));
                self.docker.end_gateway(&self.name(), self.drain()).await?;
                Done::Restarted(differences)
            }
            Some(_ended) => {
                self.docker.remove(&self.name()).await?;
                Done::Started
            }
            None => Done::Started,
        };
        files.keep(&made_from, &config, &self.gateway.provider)?;
        self.docker.start_gateway(&self.spec(image, socket, name)).await?;
        Ok(done)
    }

    /// Waits until it answers; how long that took.
    pub(crate) async fn until_ready(&self) -> Result<Duration, Error> {
        let begun = Instant::now();
        loop {
            if matches!(self.ask().await, Ok(Answer::Ready)) {
                return Ok(begun.elapsed());
            }
            let is_there = self.docker.gateway(&self.name()).await?.is_some_and(|found| found.is_running);
            if !is_there || begun.elapsed() > START {
                let tail = self.docker.tail(&self.name(), TAIL).await.unwrap_or_default();
                let id = self.id.clone();
                return Err(if is_there { Error::Silent { id, tail } } else { Error::Ended { id, tail } });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends it, once its sessions have ended or its time is up. Whether it was there.
    pub(crate) async fn down(&self, kept: Kept) -> Result<bool, Error> {
        let was_there = self.docker.gateway(&self.name()).await?.is_some();
        self.docker.end_gateway(&self.name(), self.drain()).await?;
        self.data_plane.close_gateway(self.id).await?;
        if kept == Kept::Nothing {
            self.docker.remove_volume(&self.name()).await?;
            Files { place: &self.place }.remove()?;
        }
        Ok(was_there)
    }

    /// Its container, if there is one.
    pub(super) async fn found(&self) -> Result<Option<docker::GatewayFound>, Error> {
        Ok(self.docker.gateway(&self.name()).await?)
    }

    /// What it says of itself.
    pub(super) async fn ask(&self) -> io::Result<Answer> {
        probe::ask(&self.place.bridge().join(SOCKET)).await
    }

    /// The configuration that its container has.
    pub(super) fn written(&self) -> Option<Value> {
        Files { place: &self.place }.config()
    }

    /// The configuration that it would have, but for its secrets.
    pub(super) async fn planned(&self) -> Value {
        let models = self.models(&Files { place: &self.place }).await;
        let slotted = self.gateway.attribution == Attribution::Slot;
        let slots = vec![String::new(); if slotted { self.gateway.sessions as usize } else { 0 }];
        config::configuration(self.gateway, Parts { models: &models, token: "", slots: &slots })
    }

    fn drain(&self) -> Duration {
        Duration::from_millis(self.gateway.sealed.drain.0)
    }

    async fn config(&self, files: &Files<'_>) -> Result<Value, Error> {
        let models = self.models(files).await;
        if models.is_empty() {
            return Err(Error::NoModel(self.id.clone()));
        }
        let slotted = self.gateway.attribution == Attribution::Slot;
        let slots = if slotted { files.slots(self.gateway.sessions as usize)? } else { Vec::new() };
        let token = files.token()?;
        let parts = Parts { models: &models, token: token.expose(), slots: &slots };
        Ok(config::configuration(self.gateway, parts))
    }

    /// Models that its agents may ask: those that the registry names for it, and those that the upstream offers; if that
    /// does not tell, those that were known before. The default comes first.
    async fn models(&self, files: &Files<'_>) -> Vec<String> {
        let agents = self.settings.agents.values().filter(|agent| agent.gateways.contains(self.id));
        let named =
            agents.flat_map(|agent| agent.models.iter().map(ToString::to_string).chain(agent.model.clone()));
        let mut models: BTreeSet<String> = named.collect();
        let default = self.settings.upstream.default_model.clone();
        models.extend(default.clone());
        match self.data_plane.upstream().await {
            Ok(UpstreamHealth::Ready { models: offered, .. }) => models.extend(offered),
            other => {
                let why = other.err().map(|error| report::chain(&error));
                tracing::warn!(gateway = %self.id, why, "the upstream does not tell its models");
                models.extend(files.config().iter().flat_map(|config| check::models(self.gateway, config)));
            }
        }
        // A pattern, as wildcards of the upstream are, names no model.
        models.retain(|model| !model.contains('*'));
        let first = default.into_iter().filter(|model| models.contains(model)).collect::<Vec<_>>();
        let others = models.iter().filter(|model| !first.contains(model));
        first.iter().chain(others).cloned().collect()
    }

    /// What its container is made from, beside its configuration.
    fn setup(&self, image: &str, socket: &SocketDir) -> Value {
        let sealed = &self.gateway.sealed;
        json!({
            "program": env!("CARGO_PKG_VERSION"),
            "image": image,
            "memory": sealed.memory,
            "pids": sealed.pids,
            "milli_cpu": sealed.milli_cpu,
            "drain": sealed.drain,
            "socket": socket.path,
            "directory": self.place.dir(),
        })
    }

    fn spec(&self, image: String, socket: SocketDir, setup: String) -> GatewaySpec {
        let sealed = &self.gateway.sealed;
        let labels = [
            (label::INSTALLATION, self.settings.sandbox.installation.to_string()),
            (label::GATEWAY, self.id.to_string()),
            (label::SETUP, setup),
        ];
        GatewaySpec {
            name: self.name(),
            image,
            labels: labels.into(),
            command: ["node", OPENCLAW, "gateway", "run"].map(str::to_owned).into(),
            environment: environment().into(),
            reads: [(self.place.config(), CONFIG_DIR), (socket.path, path::SOCKET_DIR)],
            bridge: (self.place.bridge(), BRIDGE_DIR),
            volume: self.name(),
            limits: Limits {
                memory: sealed.memory,
                pids: sealed.pids,
                milli_cpu: sealed.milli_cpu,
                output: limit::sandbox::OUTPUT,
            },
            drain: self.drain(),
        }
    }
}

/// Nothing of its own accord, nothing from elsewhere, nothing that is started twice.
fn environment() -> [(&'static str, String); 13] {
    [
        ("HOME", "/workspace/home".to_owned()),
        ("OPENCLAW_STATE_DIR", "/workspace/state".to_owned()),
        ("OPENCLAW_CONFIG_PATH", format!("{CONFIG_DIR}/openclaw.json")),
        ("OPENCLAW_CONFIG_READONLY", "1".to_owned()),
        ("OPENCLAW_LOAD_SHELL_ENV", "0".to_owned()),
        ("OPENCLAW_SKIP_CHANNELS", "1".to_owned()),
        ("OPENCLAW_DISABLE_BONJOUR", "1".to_owned()),
        ("OPENCLAW_NO_RESPAWN", "1".to_owned()),
        ("OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED", "1".to_owned()),
        (env::OPENAI_API_BASE, path::API_BASE.to_owned()),
        (env::LLM_PROXY_SOCKET, path::SOCKET.to_owned()),
        (env::SANDBOX_ENTRY_SOCKET, format!("{BRIDGE_DIR}/{SOCKET}")),
        (env::SANDBOX_ENTRY_PORT, PORT.to_string()),
    ]
}
