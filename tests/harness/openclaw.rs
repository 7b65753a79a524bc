//! Configures, starts and stops the real OpenClaw gateway that `scripts/openclaw.sh` installs.

use std::{
    fs, iter,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::{
    agent::Agent,
    bridge::free_port,
    eventually::eventually_within,
    failure::{self, end_of},
};

/// Longest start: the newer version needs 12 to 26 s here, and longer on a busy machine.
pub const START: Duration = Duration::from_secs(120);
/// Longest wait for a clean end: the gateway waits for active turns.
const STOP: Duration = Duration::from_secs(60);

/// Provider in the generated configuration. The headers plugin serves it too.
pub const PROVIDER: &str = "sluicegate";

/// Protocol that a gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Protocol 3: the oldest version that is tested, installed only by `make test-openclaw VERSION=...`.
    Old,
    /// Protocol 4: the version that set-up installs, or the one that `make test-openclaw VERSION=...` names.
    New,
}

impl Version {
    /// Returns the version for `scripts/openclaw.sh`; `None` selects the script's default.
    const fn number(self) -> Option<&'static str> {
        match self {
            Self::Old => Some("2026.2.6-3"),
            Self::New => None,
        }
    }
}

/// Settings that a gateway is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Version of OpenClaw.
    pub version: Version,
    /// Base URL of its only provider, with `/v1`.
    pub base_url: String,
    /// Models of its provider; the first is the default.
    pub models: Vec<String>,
    /// Tools that its agents may use.
    pub tools: Vec<String>,
    /// If true, `services/openclaw-headers-plugin` is loaded.
    pub plugin: bool,
    /// Address on which it listens beside the loopback, if any.
    pub also_on: Option<IpAddr>,
    /// Longest conversation, in bytes; the next turn shortens a longer one first.
    pub conversation: Option<usize>,
    /// Agents that its operator has described beside `main`.
    pub agents: Vec<String>,
}

impl Setup {
    /// Returns a setup of the newer version without the plugin, with `exec` and `read` for its agents.
    #[must_use]
    pub fn new(base_url: &str, models: &[&str]) -> Self {
        Self {
            version: Version::New,
            base_url: base_url.to_owned(),
            models: models.iter().map(|&model| model.to_owned()).collect(),
            tools: vec!["exec".to_owned(), "read".to_owned()],
            plugin: false,
            also_on: None,
            conversation: None,
            agents: Vec::new(),
        }
    }
}

/// A gateway on this machine. Killed and removed on drop.
#[derive(Debug)]
pub struct OpenClaw {
    /// URL for clients: `ws://127.0.0.1:PORT`, or that of the other address that it listens on.
    pub url: String,
    /// Token that a client needs to connect.
    pub token: &'static str,
    process: Child,
    version: Version,
    address: SocketAddr,
    dir: tempfile::TempDir,
}

impl OpenClaw {
    /// Starts a gateway and waits until it accepts clients.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn start(setup: &Setup) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-openclaw-").tempdir_in("/tmp").unwrap();
        let address = free_port();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        fs::write(dir.path().join("workspace/AGENTS.md"), "You are an agent under test.\n").unwrap();
        let config = configuration(setup, dir.path(), address.port());
        fs::write(dir.path().join("openclaw.json"), config.to_string()).unwrap();
        let process = spawn(setup.version, dir.path());
        let url = format!("ws://{}:{}", setup.also_on.unwrap_or(address.ip()), address.port());
        let (token, version) = ("test-token", setup.version);
        let mut gateway = Self { url, token, process, version, address, dir };
        gateway.wait_until_ready().await;
        gateway
    }

    /// Waits until it accepts clients.
    async fn wait_until_ready(&mut self) {
        let (agent, log, version) = (Agent::over_tcp(self.address), self.log_file(), self.version);
        let ready = || {
            let ended = self.process.try_wait().unwrap();
            assert_eq!(ended, None, "OpenClaw ended: {}", fs::read_to_string(&log).unwrap_or_default());
            let agent = agent.clone();
            async move {
                match version {
                    Version::Old => agent.connect().await.is_ok(),
                    Version::New => agent
                        .request(http::Method::GET, "/readyz", bytes::Bytes::new())
                        .await
                        .is_ok_and(|answer| answer.status == 200),
                }
            }
        };
        eventually_within(START, "OpenClaw is ready", ready, |ready| *ready).await;
    }

    /// Kills it, as the kernel of a machine without free memory would.
    ///
    /// # Panics
    /// If it has already ended.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Starts it again at the same address, with its state.
    pub async fn start_again(&mut self) {
        self.process = spawn(self.version, self.dir.path());
        self.wait_until_ready().await;
    }

    /// Approves a pairing request as an operator would on its host: `openclaw devices approve`.
    ///
    /// # Panics
    /// If OpenClaw refuses.
    pub async fn approve(&self, request: &str) {
        let mut command = command(Version::New, self.dir.path());
        let output = command.args(["devices", "approve", request]).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Returns the folder of its agents.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// Returns its configuration, which it may have changed.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn configuration(&self) -> Value {
        let text = fs::read_to_string(self.dir.path().join("openclaw.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends it as an operator would, and kills it if that takes long.
    ///
    /// # Panics
    /// If it has already ended.
    pub async fn stop(mut self) {
        let pid = i32::try_from(self.pid().unwrap()).unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::TERM,
        )
        .unwrap();
        if tokio::time::timeout(STOP, self.process.wait()).await.is_err() {
            self.process.kill().await.unwrap();
        }
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }
}

impl Drop for OpenClaw {
    fn drop(&mut self) {
        failure::show(|| format!("OpenClaw's log ends:\n{}", end_of(&self.log())));
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn spawn(version: Version, dir: &Path) -> Child {
    let output = fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
    command(version, dir)
        .args(["gateway", "run"])
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap()
}

/// Returns OpenClaw's own command line, with the configuration and the state in `dir`.
fn command(version: Version, dir: &Path) -> Command {
    let mut command = Command::new(repository().join("scripts/openclaw.sh"));
    command
        .arg("run")
        .current_dir(dir.join("workspace"))
        .envs(version.number().map(|number| ("OPENCLAW_VERSION", number)))
        .env("GATEWAY_HOME", dir)
        .env("OPENCLAW_CONFIG_PATH", dir.join("openclaw.json"))
        .env("OPENCLAW_STATE_DIR", dir.join("state"))
        .envs([
            ("OPENCLAW_DISABLE_BONJOUR", "1"),
            ("OPENCLAW_LOAD_SHELL_ENV", "0"),
            ("OPENCLAW_NO_RESPAWN", "1"),
            ("OPENCLAW_SKIP_CHANNELS", "1"),
        ])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

fn configuration(setup: &Setup, dir: &Path, port: u16) -> Value {
    let model = |id: &String| {
        json!({
            "id": id, "name": id, "reasoning": false, "input": ["text"],
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
            "contextWindow": 200_000, "maxTokens": 8192,
        })
    };
    let provider = json!({
        "baseUrl": setup.base_url,
        "apiKey": "proxy-handles-auth",
        "api": "openai-completions",
        "models": setup.models.iter().map(model).collect::<Vec<_>>(),
    });
    let plugins = if setup.plugin {
        let path = repository().join("services/openclaw-headers-plugin");
        json!({ "allow": ["memory-core", "sluicegate-headers"], "load": { "paths": [path] } })
    } else {
        json!({ "allow": ["memory-core"] })
    };
    let compaction = setup
        .conversation
        .map_or_else(|| json!({}), |bytes| json!({ "mode": "default", "maxActiveTranscriptBytes": bytes }));
    let bind = setup.also_on.map_or(json!("loopback"), |_| json!("custom"));
    let main = json!({ "id": "main", "default": true, "workspace": dir.join("workspace") });
    let others =
        setup.agents.iter().map(|id| json!({ "id": id, "workspace": dir.join(format!("workspace-{id}")) }));
    let agents: Vec<_> = iter::once(main).chain(others).collect();
    let mut config = json!({
        "models": { "mode": "replace", "providers": { PROVIDER: provider } },
        "agents": {
            "defaults": {
                "compaction": compaction,
                "model": { "primary": format!("{PROVIDER}/{}", setup.models[0]) },
                "workspace": dir.join("workspace"),
                "skipBootstrap": true,
                "timeoutSeconds": 120,
                "heartbeat": { "every": "0m" },
                "sandbox": { "mode": "off" },
            },
            "list": agents,
        },
        "tools": { "allow": setup.tools, "elevated": { "enabled": false } },
        "plugins": plugins,
        "cron": { "enabled": false },
        "gateway": {
            "mode": "local", "port": port, "bind": bind,
            "auth": { "mode": "token", "token": "test-token" },
            "controlUi": { "enabled": false },
        },
    });
    if let Some(address) = setup.also_on {
        config["gateway"]["customBindHost"] = json!(address);
    }
    config
}
