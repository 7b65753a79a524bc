//! `approvals-chaos FILE ROUNDS [SEED]` kills `sluice up` and real gateways while eight sessions of four accounts ask people. It
//! writes its findings as JSON, and fails if one of them is a fault. Faults are commands that ran without an approval, or
//! twice, or never, and those that another account was shown.

#![allow(clippy::unwrap_used, reason = "a play that cannot go on has failed, with the place")]

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use bench::measure::machine::Machine;
use harness::{
    Agent, Up, World, bridge::free_port, canary, docker::docker, eventually::eventually_within, pace::pace,
    random::Random,
};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;

const USAGE: &str = "usage: approvals-chaos FILE ROUNDS [SEED]";
const ACCOUNTS: usize = 4;
/// Gateway that accounts share. Its agents execute no command.
const SHARED: &str = "shared";
/// Sessions of each account.
const SESSIONS: usize = 2;
/// Longest time until all runs of a round have ended, and until a gateway has an agent.
const PATIENCE: Duration = Duration::from_secs(400);
/// Interval between looks of a person at what waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(400);

/// Installation with a gateway for each account.
struct Stage {
    world: World,
    up: Option<Up>,
    address: SocketAddr,
    /// Token of a member of each account.
    members: Vec<String>,
    random: Random,
}

/// Run that wants to execute one command.
struct Ask {
    account: usize,
    gateway: String,
    run: String,
    /// Name of the directory that the command makes.
    mark: String,
}

#[derive(Default)]
struct Findings {
    outcomes: BTreeMap<String, u64>,
    decisions: BTreeMap<String, u64>,
    kills: BTreeMap<&'static str, u64>,
    faults: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (file, rounds, seed) = match arguments.as_slice() {
        [file, rounds] => (file, rounds, 1),
        [file, rounds, seed] => (file, rounds, seed.parse().expect(USAGE)),
        _ => panic!("{USAGE}"),
    };
    let rounds: usize = rounds.parse().expect(USAGE);
    let began = Instant::now();
    let mut stage = Stage::set(seed).await;
    let mut findings = Findings::default();
    let mut asks = Vec::new();
    for number in 0..rounds {
        asks.extend(stage.round(number, &mut findings).await);
    }
    stage.finds_what_ran_though_it_was_denied(&asks).await;
    stage.end().await;
    let Findings { outcomes, decisions, kills, faults } = findings;
    let record = json!({
        "command": format!("cargo run -p tests --example approvals-chaos FILE {rounds} {seed}"),
        "machine": Machine::here(),
        "seconds": began.elapsed().as_secs(),
        "rounds": rounds, "sessions": ACCOUNTS * (SESSIONS + 1),
        "outcomes": outcomes, "decisions": decisions, "kills": kills, "faults": faults,
        "control": "a command that was denied and has run is a fault",
    });
    fs::write(file, format!("{record:#}\n")).unwrap();
    assert_eq!(faults, Vec::<String>::new());
}

impl Stage {
    async fn set(seed: u64) -> Self {
        let address = free_port();
        let mut toml = format!("[api]\nlisten = '{address}'\n[tools]\napproval_timeout = '300s'\n");
        for account in 0..ACCOUNTS {
            toml += &format!(
                "[gateways.g{account}]\naccount = 'acct-{account}'\ndrain_timeout = '2s'\ndisk = '256MiB'\n\
                 [agents.'sandbox:openclaw-g{account}']\nmode = 'gateway'\ngateways = ['g{account}']\n\
                 model = 'fake-steps'\nrun_timeout = '360s'\n"
            );
        }
        toml += &format!(
            "[gateways.{SHARED}]\ndrain_timeout = '2s'\ndisk = '256MiB'\n[agents.'sandbox:openclaw-{SHARED}']\nmode = 'gateway'\n\
             gateways = ['{SHARED}']\nmodel = 'fake-steps'\nrun_timeout = '360s'\n"
        );
        let mut world = World::with(&toml).await;
        for gateway in gateways() {
            succeeds(&world, &["gateway", "up", &gateway, "--wait"]).await;
        }
        assert!(world.stop_proxy().await);
        let up = Some(Up::start(world.sluice()).await);
        let mut members = Vec::new();
        for account in 0..ACCOUNTS {
            let gateway = format!("g{account}");
            succeeds(&world, &["gateway", "agents", "add", &gateway, "Asker", "--wait"]).await;
            succeeds(&world, &["gateway", "agents", "set", &gateway, "asker", "--commands", "ask", "--wait"])
                .await;
            let added =
                ["principals", "add", &format!("ann{account}"), "--account", &format!("acct-{account}")];
            let token = succeeds(&world, &[&added[..], &["--role", "member"]].concat()).await;
            canary::hand_out(token.trim());
            members.push(token.trim().to_owned());
        }
        Self { world, up, address, members, random: Random::of(seed) }
    }

    /// Returns the API as the member of `account` uses it.
    fn member(&self, account: usize) -> Agent {
        let api = Agent::over_tcp(self.address);
        api.with_header("authorization", &format!("Bearer {}", self.members[account]))
    }

    /// Orders runs of all sessions at once, kills what they need, and judges what became of each command.
    async fn round(&mut self, number: usize, findings: &mut Findings) -> Vec<Ask> {
        let mut asks = Vec::new();
        for session in 0..ACCOUNTS * (SESSIONS + 1) {
            let account = session % ACCOUNTS;
            let is_own = session < ACCOUNTS * SESSIONS;
            let ask = Ask {
                account,
                gateway: if is_own { format!("g{account}") } else { SHARED.to_owned() },
                run: format!("r{number}-{session}"),
                mark: format!("mark-{number}-{session}"),
            };
            self.order(&ask, session).await;
            asks.push(ask);
        }
        let members: Vec<_> = (0..ACCOUNTS).map(|account| self.member(account)).collect();
        let people = async {
            loop {
                for (account, api) in members.iter().enumerate() {
                    decide(api, account, findings).await;
                }
                pace(LOOK_INTERVAL).await;
            }
        };
        let mut kills = BTreeMap::new();
        tokio::select! {
            () = people => {}
            () = self.kill_and_wait(&asks, &mut kills) => {}
        }
        for (what, count) in kills {
            *findings.kills.entry(what).or_default() += count;
        }
        for ask in &asks {
            self.judge(ask, findings).await;
        }
        asks
    }

    /// Checks the control: a command that was denied, and that this makes look as if it had run, is a fault.
    async fn finds_what_ran_though_it_was_denied(&self, asks: &[Ask]) {
        for ask in asks.iter().filter(|ask| !self.has_made(ask)) {
            fs::create_dir(self.state_of(ask).join(&ask.mark)).unwrap();
            let mut found = Findings::default();
            self.judge(ask, &mut found).await;
            if found.decisions.contains_key("denied") {
                assert_eq!(found.faults.len(), 1, "{}", ask.run);
                return;
            }
        }
        panic!("no command was denied: play more rounds");
    }

    async fn order(&self, ask: &Ask, session: usize) {
        let call = json!({ "command": format!("mkdir /workspace/{}", ask.mark) });
        let mut order = json!({
            "agentId": format!("sandbox:openclaw-{}", ask.gateway), "stateKey": format!("thread-{session}"),
            "input": format!("Do this:\ncall: exec {call}\nsay: All done."),
        });
        if ask.gateway != SHARED {
            order["gatewayAgent"] = "asker".into();
        }
        let path = format!("/api/v1/runs/{}", ask.run);
        let answer =
            self.member(ask.account).request(Method::PUT, &path, order.to_string().into()).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// Kills `sluice up` or a gateway at random times, until all runs have ended.
    async fn kill_and_wait(&mut self, asks: &[Ask], kills: &mut BTreeMap<&'static str, u64>) {
        for _kill in 0..1 + self.random.below(3) {
            pace(Duration::from_millis(2000 + self.random.below(18_000) as u64)).await;
            if self.random.below(2) == 0 {
                let mut up = self.up.take().unwrap();
                kill_process(Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap(), Signal::KILL)
                    .unwrap();
                up.death().await;
                self.up = Some(Up::start(self.world.sluice()).await);
                *kills.entry("sluice up").or_default() += 1;
            } else {
                let gateway = gateways().nth(self.random.below(ACCOUNTS + 1)).unwrap();
                docker(&["kill", &format!("sluice-{}-gateway-{gateway}", self.world.installation())]).await;
                succeeds(&self.world, &["gateway", "up", &gateway, "--wait"]).await;
                *kills.entry("gateway").or_default() += 1;
            }
        }
        let ended = async || {
            for ask in asks {
                let run = self.run(ask).await;
                if run["endedAt"].is_null() {
                    return false;
                }
            }
            true
        };
        eventually_within(PATIENCE, "all runs have ended", ended, |ended| *ended).await;
    }

    async fn run(&self, ask: &Ask) -> Value {
        self.member(ask.account).get(&format!("/api/v1/runs/{}", ask.run)).await.json()
    }

    async fn judge(&self, ask: &Ask, findings: &mut Findings) {
        let run = self.run(ask).await;
        let state = run["state"].as_str().unwrap_or_default();
        let outcome = match run["error"]["code"].as_str() {
            Some(code) => format!("{state}: {code}"),
            None => state.to_owned(),
        };
        *findings.outcomes.entry(outcome.clone()).or_default() += 1;
        let calls = self.member(ask.account).get(&format!("/api/v1/runs/{}/tools", ask.run)).await.json();
        let states: Vec<_> = calls["calls"].as_array().into_iter().flatten().collect();
        let states: Vec<_> = states.iter().map(|call| call["state"].as_str().unwrap_or_default()).collect();
        let made = self.has_made(ask);
        let told = self.told(ask);
        // OpenClaw asks no person while no client is connected that could answer: it denies.
        let denied_itself = told.contains("Headless runs cannot wait");
        let fault = match (states.as_slice(), made) {
            (_, true) if ask.gateway == SHARED => Some("it ran in a gateway that accounts share"),
            ([], false) if ask.gateway == SHARED => None,
            ([], true) => Some("it ran without a request"),
            (["denied"], true) => Some("it ran though it was denied"),
            (["done"], false) if state == "succeeded" => Some("it was approved and never ran"),
            ([], false) if state == "succeeded" && !denied_itself => Some("it ended without a request"),
            _ => None,
        };
        let fault = fault.or(told.contains("File exists").then_some("it ran twice"));
        if let Some(fault) = fault {
            findings.faults.push(format!("{}: {fault}: {outcome}, {states:?}, told {told}", ask.run));
        }
        let by_gateway = denied_itself.then_some("denied by the gateway");
        for decision in states.into_iter().chain(by_gateway) {
            *findings.decisions.entry(decision.to_owned()).or_default() += 1;
        }
    }

    /// Returns whether the command has made its directory.
    fn has_made(&self, ask: &Ask) -> bool {
        self.state_of(ask).join(&ask.mark).is_dir()
    }

    /// Returns the directory that the gateway's container has as its workspace.
    fn state_of(&self, ask: &Ask) -> PathBuf {
        let disk = self.world.path().join(format!("gateways/{}/disk", ask.gateway));
        let mut workspaces =
            fs::read_dir(disk).unwrap().map(|entry| entry.unwrap().path().join("tree/state"));
        workspaces.find(|state| state.is_dir()).unwrap()
    }

    /// Returns what the model was told of the command.
    fn told(&self, ask: &Ask) -> String {
        let calls = self.world.upstream.ledger().all();
        let results = calls.iter().filter_map(|call| {
            let body = call.json().ok()?;
            let messages = body["messages"].as_array()?;
            let asks = |message: &Value| {
                message["role"] == "user"
                    && message["content"].to_string().contains(&format!("{}\\", ask.mark))
            };
            let asked = messages.iter().rposition(asks)?;
            let result = messages[asked..].iter().rfind(|message| message["role"] == "tool")?;
            Some(result["content"].to_string())
        });
        results.last().unwrap_or_default()
    }

    async fn end(mut self) {
        self.up.take().unwrap().stop(Signal::TERM).await;
        self.world.start_proxy().await;
        for gateway in gateways() {
            succeeds(&self.world, &["gateway", "down", &gateway, "--purge"]).await;
        }
        self.world.assert_nothing_left().await;
    }
}

/// Decides about all that waits for an account: approves the requests of even sessions, and denies the others. Two people
/// decide about some of them at once.
async fn decide(api: &Agent, account: usize, findings: &mut Findings) {
    let listed =
        timeout(Duration::from_secs(5), api.request(Method::GET, "/api/v1/approvals", "".into())).await;
    // The API is down for a moment.
    let Ok(Ok(listed)) = listed else { return };
    for call in listed.json()["approvals"].as_array().into_iter().flatten() {
        let run = call["runId"].as_str().unwrap_or_default();
        let session: usize =
            run.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default();
        if session % ACCOUNTS != account || call["account"] != format!("acct-{account}") {
            findings.faults.push(format!("acct-{account} was shown {call}"));
        }
        let verdict = if session.is_multiple_of(2) { "approve" } else { "deny" };
        let path =
            format!("/api/v1/runs/{run}/tools/{}/{verdict}", call["callId"].as_str().unwrap_or_default());
        let decide = || timeout(Duration::from_secs(5), api.request(Method::POST, &path, "".into()));
        let (_first, _second) = tokio::join!(decide(), decide());
    }
}

fn gateways() -> impl Iterator<Item = String> {
    (0..ACCOUNTS).map(|account| format!("g{account}")).chain([SHARED.to_owned()])
}

async fn succeeds(world: &World, arguments: &[&str]) -> String {
    let outcome = world.sluice().run(arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}
