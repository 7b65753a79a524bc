//! Describes a gateway's container as data: its setup, and the settings that follow from it.

use std::{path::PathBuf, time::Duration};

use platform_core::{
    control::SocketDir,
    limit::{self, ByteSize, Millis},
    name::{env, label, path},
};
use platform_runtime::settings::Volume;
use runner_docker::{GatewaySpec, Limits};
use serde::{Deserialize, Serialize};

use super::{config::PORT, gateway::ManagedGateway};
use crate::SOCKET;

/// Paths inside the container.
const CONFIG_DIR: &str = "/config";
const BRIDGE_DIR: &str = "/bridge";
const OPENCLAW: &str = "/opt/openclaw/node_modules/openclaw/openclaw.mjs";

/// Setup of a container, besides its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setup {
    program: String,
    /// Id of its image.
    image: String,
    memory: ByteSize,
    pids: u32,
    milli_cpu: u32,
    drain: Millis,
    /// Directory of its socket at the data plane.
    socket: PathBuf,
    /// Directory of the gateway's own files on this host.
    directory: PathBuf,
    /// Volumes of its agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<Volume>,
}

impl ManagedGateway<'_> {
    /// Returns the setup that its container should have now.
    pub(super) fn setup(&self, image: String, socket: SocketDir) -> Setup {
        let managed = &self.gateway.managed;
        Setup {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            image,
            memory: managed.memory,
            pids: managed.pids,
            milli_cpu: managed.milli_cpu,
            drain: managed.drain_timeout,
            socket: socket.path,
            directory: self.paths.dir().clone(),
            volumes: self.settings.gateway_volumes(self.id),
        }
    }

    /// Returns the settings of the container that is created from `setup`; `name` names the setup together with its
    /// configuration.
    pub(super) fn spec(&self, setup: Setup, name: String) -> GatewaySpec {
        let labels = [
            (label::INSTALLATION, self.settings.sandbox.installation.to_string()),
            (label::GATEWAY, self.id.to_string()),
            (label::SETUP, name),
        ];
        GatewaySpec {
            name: self.container_name(),
            image: setup.image,
            labels: labels.into(),
            command: ["node", OPENCLAW, "gateway", "run"].map(str::to_owned).into(),
            environment: environment().into(),
            reads: [(self.paths.config(), CONFIG_DIR), (setup.socket, path::SOCKET_DIR)],
            writes: [(self.paths.bridge(), BRIDGE_DIR), (self.paths.state(), path::WORKSPACE)],
            volumes: setup.volumes,
            limits: Limits {
                memory: setup.memory,
                pids: setup.pids,
                milli_cpu: setup.milli_cpu,
                output: limit::sandbox::OUTPUT,
            },
            drain: Duration::from_millis(setup.drain.0),
        }
    }
}

/// Returns an environment in which the gateway starts nothing by itself, nothing from elsewhere, and nothing twice.
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
