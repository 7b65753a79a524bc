//! Serves the dashboard as its users have it, and uses it in Chromium. The suites are in `tests/sdk/dashboard`, and
//! `scripts/browser.sh` installs what they need.

mod directed;
mod planted;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::process::Command;

pub use self::planted::Planted;
use crate::{
    agent::Agent, canary, process::binary, sdks::output_of, served::Served, store, up::Up, world::World,
};

/// People who use it: name, account, role.
const PEOPLE: [(&str, &str, &str); 6] = [
    ("boss", "acct-1", "operator"),
    ("ann", "acct-7", "member"),
    ("reader", "acct-7", "viewer"),
    ("bob", "acct-8", "member"),
    ("gone", "acct-7", "member"),
    ("low", "acct-low", "member"),
];

/// A `sluice up` with the dashboard and people who use it.
#[derive(Debug)]
pub struct Dashboard {
    /// The system behind it.
    pub there: Served,
    tokens: Map<String, Value>,
    dir: TempDir,
}

/// Observations of a suite, case by case.
#[derive(Debug)]
pub struct Cases(Vec<Value>);

impl Dashboard {
    /// Starts it with settings of the API, and the configuration of agents.
    ///
    /// # Panics
    /// If it does not start, or if the pages are not built.
    pub async fn start(api: &str, agents: &str) -> Self {
        Self::of(world(api, agents).await).await
    }

    /// Starts it with a store that has ended runs of `acct-7`, and one run with many events.
    ///
    /// # Panics
    /// If it does not start, or if the pages are not built.
    pub async fn with_planted(planted: &Planted, agents: &str) -> Self {
        let mut world = world("", agents).await;
        let seed = ["run", "--agent", "test:sh", "--run-id", "seed", "--account", "acct-7", "q"];
        let seeded = world.sluice().run(&seed).await;
        assert_eq!(seeded.code, Some(0), "{seeded:?}");
        assert!(world.stop_proxy().await);
        store::replace(&world, |table, row| planted.beside(table, row)).await;
        assert_eq!(
            world.sluice().run(&["store", "adopt"]).await.code,
            Some(0),
            "restored, it served no host"
        );
        world.start_proxy().await;
        Self::of(world).await
    }

    async fn of(mut world: World) -> Self {
        assert!(world.stop_proxy().await);
        let sluice = world.sluice().env("SLUICE_LOG", "info").log_to(&world.path().join("up.log"));
        let up = Up::start(sluice).await;
        let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://"));
        let address: SocketAddr = address.unwrap_or_else(|| panic!("{}", up.said)).parse().unwrap();
        let there = Served { world, up, api: Agent::over_tcp(address).searched() };
        let page = there.api.get("/sandbox").await;
        assert_eq!(
            page.status,
            200,
            "this `sluice` has no pages: run `make web`, then build it again: {}",
            page.text()
        );
        let mut tokens = Map::new();
        for (name, account, role) in PEOPLE {
            let token = there.token(&[name, "--account", account, "--role", role]).await;
            tokens.insert(name.to_owned(), token.into());
        }
        let dir = tempfile::Builder::new().prefix("sw-tour-").tempdir_in("/tmp").unwrap();
        Self { there, tokens, dir }
    }

    /// Returns a link that signs `principal` in.
    ///
    /// # Panics
    /// If the command prints no link.
    pub async fn link(&self, principal: &str) -> String {
        let listen = format!("api.listen={}", self.there.url().strip_prefix("http://").unwrap());
        let arguments = ["dashboard", "--set", &listen, "--principal", principal];
        let printed = self.there.world.sluice().run(&arguments).await;
        assert_eq!(printed.code, Some(0), "{printed:?}");
        let link = printed.stdout.trim().to_owned();
        canary::hand_out(link.split_once("#code=").unwrap().1);
        link
    }

    /// Returns the beginning of a command line of `sluice` in this world.
    ///
    /// # Panics
    /// If the program is missing.
    #[must_use]
    pub fn command(&self) -> [String; 3] {
        let config = self.there.world.config().display().to_string();
        [binary("sluice").display().to_string(), "--config".to_owned(), config]
    }

    /// Runs a suite in its own Chromium, with further input. Its cases are exactly `cases`, and none broke off.
    ///
    /// # Panics
    /// If the suite fails, or has other cases.
    pub async fn suite(&self, name: &str, input: Value, cases: &[&str]) -> Cases {
        Cases::checked(name, output_of(self.program(name, input)).await, cases)
    }

    /// Returns the program of a suite.
    fn program(&self, name: &str, mut input: Value) -> Command {
        input["origin"] = self.there.url().into();
        input["tokens"] = self.tokens.clone().into();
        program(name, &input, self.dir.path())
    }

    /// Returns the log of `sluice up`.
    ///
    /// # Panics
    /// If the log is missing.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.there.world.path().join("up.log")).unwrap()
    }

    /// Stops it. Nothing may be left.
    pub async fn end(self) {
        self.there.end().await;
    }
}

impl Cases {
    /// Runs a suite in its own Chromium, against the dashboard of another machine. Its cases are exactly `cases`, and none
    /// broke off.
    ///
    /// # Panics
    /// If the suite fails, or has other cases.
    pub async fn observed(name: &str, input: &Value, cases: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-tour-").tempdir_in("/tmp").unwrap();
        Self::checked(name, output_of(program(name, input, dir.path())).await, cases)
    }

    /// Returns what a suite printed, which are exactly these cases, and none broke off.
    fn checked(name: &str, seen: Vec<Value>, cases: &[&str]) -> Self {
        let names: Vec<_> = seen.iter().map(|case| case["case"].as_str().unwrap()).collect();
        assert_eq!(names, cases, "the cases of {name}");
        let broken: Vec<_> = seen.iter().filter(|case| case.get("brokeOff").is_some()).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        Self(seen)
    }

    /// Returns what the case `name` observed.
    ///
    /// # Panics
    /// If the suite has no such case.
    #[must_use]
    pub fn of(&self, name: &str) -> &Value {
        self.0.iter().find(|case| case["case"] == name).unwrap_or_else(|| panic!("no case {name}"))
    }
}

/// Returns the program of a suite. What Chromium writes is removed with `dir`.
fn program(name: &str, input: &Value, dir: &Path) -> Command {
    let repository = repository();
    let mut command = Command::new(repository.join("scripts/browser.sh"));
    command.args(["node", &format!("tests/sdk/dashboard/{name}.mjs")]).env("INPUT", input.to_string());
    command.env("TMPDIR", dir).env("XDG_CONFIG_HOME", dir);
    command.current_dir(repository).kill_on_drop(true);
    command
}

/// Returns a world with a configuration that serves the API, at any port unless `api` names one.
async fn world(api: &str, agents: &str) -> World {
    let listen = if api.contains("listen = ") { "" } else { "listen = '127.0.0.1:0'" };
    World::with(&format!("[api]\n{listen}\n{api}\n{agents}")).await
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
