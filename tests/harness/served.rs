//! Starts a `sluice up` that serves its HTTP API, and adds principals to it.

use std::net::SocketAddr;

use rustix::process::Signal;

use crate::{agent::Agent, canary, shell_agents::shell_agent, up::Up, world::World};

const AGENTS: &str = "[agents.'test:long']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\nrun_timeout = '50s'\n";

/// World with its API up, and an agent that answers `it is done`.
#[derive(Debug)]
pub struct Served {
    /// The world.
    pub world: World,
    /// Its `sluice up`.
    pub up: Up,
    /// The API, as a client without a token uses it.
    pub api: Agent,
}

/// Starts a world with its API up; returns it with a client.
///
/// # Panics
/// If it does not start.
pub async fn served(api_settings: &str, toml: &str) -> (World, Up, Agent) {
    let mut world = World::with(&format!("[api]\nlisten = '127.0.0.1:0'\n{api_settings}\n{toml}")).await;
    assert!(world.stop_proxy().await);
    let sluice = world.sluice().env("SLUICE_LOG", "info").log_to(&world.path().join("up.log"));
    let up = Up::start(sluice).await;
    let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://"));
    let address: SocketAddr = address.unwrap_or_else(|| panic!("{}", up.said)).parse().unwrap();
    (world, up, Agent::over_tcp(address).searched())
}

impl Served {
    /// Starts a world with settings of the API.
    pub async fn with(settings: &str) -> Self {
        Self::of(settings, "echo it is done").await
    }

    /// Starts a world with an agent `test:sh` that runs `script`.
    pub async fn of(settings: &str, script: &str) -> Self {
        let (world, up, api) = served(settings, &format!("{AGENTS}{}", shell_agent(script, ""))).await;
        Self { world, up, api }
    }

    /// Adds a principal; returns the API as it uses it.
    pub async fn principal(&self, arguments: &[&str]) -> Agent {
        self.authorized(&self.token(arguments).await)
    }

    /// Adds a principal; returns its token.
    ///
    /// # Panics
    /// If the principal cannot be added.
    pub async fn token(&self, arguments: &[&str]) -> String {
        let added = self.world.sluice().run(&[&["principals", "add"], arguments].concat()).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        let token = added.stdout.trim();
        canary::hand_out(token);
        token.to_owned()
    }

    /// Returns the API as the principal with this token uses it.
    #[must_use]
    pub fn authorized(&self, token: &str) -> Agent {
        self.api.clone().with_header("authorization", &format!("Bearer {token}"))
    }

    /// Returns the URL of the API.
    ///
    /// # Panics
    /// If it is not served.
    #[must_use]
    pub fn url(&self) -> String {
        let url = self.up.said.lines().find_map(|line| line.strip_prefix("api       "));
        url.unwrap_or_else(|| panic!("{}", self.up.said)).to_owned()
    }

    /// Returns the address of the API, which has no TLS.
    ///
    /// # Panics
    /// If it is not served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let url = self.url();
        url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect(&url)
    }

    /// Adds a principal of an account, with a role; returns the API as it uses it.
    pub async fn of_role(&self, name: &str, account: &str, role: &str) -> Agent {
        self.principal(&[name, "--account", account, "--role", role]).await
    }

    /// Stops it. Nothing may be left.
    pub async fn end(self) {
        self.up.stop(Signal::TERM).await;
        self.world.assert_nothing_left().await;
    }
}
