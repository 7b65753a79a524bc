//! Tests the WebSocket at which OpenClaw's own clients find a gateway: who connects, turns as stored runs, approvals, bounds.
//! The gateways behind it follow scripts; `tests/clients/gateway_socket.rs` has the stock clients and a real one.

mod agents;
mod approvals;
mod bounds;
mod chats;
mod crowd;
mod endings;
mod hostile;
mod published_clients;
mod restarts;
mod visitors;

use std::{fs::OpenOptions, io::Write, net::SocketAddr, time::Duration};

use harness::{
    Agent, Up, World, canary,
    eventually::eventually_within,
    gateway::{Dialect, GatewayClient, ScriptedGateway, TOKEN},
    private_file,
    shared::share,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Longest wait for a run, or for an event of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two gateways of two accounts and one that accounts share, and a `sluice up` that serves them to clients.
struct Scene {
    world: World,
    up: Up,
    address: SocketAddr,
    own: ScriptedGateway,
    shared: ScriptedGateway,
    _theirs: ScriptedGateway,
}

impl Scene {
    async fn start() -> Self {
        let own = ScriptedGateway::start(Dialect::Four).await;
        let theirs = ScriptedGateway::start(Dialect::Three).await;
        let shared = ScriptedGateway::start(Dialect::Four).await;
        let mut world = World::with("[api]\nlisten = '127.0.0.1:0'\n").await;
        share(&mut world, "gateways").await;
        assert!(world.stop_proxy().await);
        private_file(&world.path().join("gateway.token"), TOKEN);
        let mut settings = "[worker]\nlease_duration = '2s'\n".to_owned();
        for (id, account, url) in [
            ("own", "account = 'acct-1'", own.url()),
            ("theirs", "account = 'acct-2'", theirs.url()),
            ("shared", "", shared.url()),
            ("down", "account = 'acct-1'", "ws://127.0.0.1:9".to_owned()),
        ] {
            settings += &format!(
                "[gateways.{id}]\nurl = '{url}'\ntoken_file = '{}/gateway.token'\n{account}\n\
                 [agents.'claw:{id}']\nmode = 'gateway'\ngateways = ['{id}']\nmodel = 'fake-echo'\n",
                world.path().display()
            );
        }
        let mut file = OpenOptions::new().append(true).open(world.config()).unwrap();
        file.write_all(settings.as_bytes()).unwrap();
        let up = start(&world).await;
        Self { address: address(&up), world, up, own, shared, _theirs: theirs }
    }

    /// Ends `sluice up` with a signal, and starts another.
    async fn restarted(self, signal: Signal) -> Self {
        let Self { world, mut up, own, shared, _theirs, .. } = self;
        if signal == Signal::KILL {
            let pid = Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap();
            kill_process(pid, signal).unwrap();
            assert_eq!(up.death().await, Some(signal.as_raw()));
        } else {
            up.stop(signal).await;
        }
        let up = start(&world).await;
        Self { address: address(&up), world, up, own, shared, _theirs }
    }

    /// Adds a principal; returns its token.
    async fn token(&self, name: &str, account: &str, role: &str) -> String {
        self.token_with(name, &["--account", account, "--role", role]).await
    }

    async fn token_with(&self, name: &str, more: &[&str]) -> String {
        let added = self.world.sluice().run(&[&["principals", "add", name], more].concat()).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        canary::hand_out(added.stdout.trim());
        added.stdout.trim().to_owned()
    }

    fn api(&self, token: &str) -> Agent {
        Agent::over_tcp(self.address).searched().with_header("authorization", &format!("Bearer {token}"))
    }

    fn url(&self, gateway: &str) -> String {
        format!("ws://{}/api/v1/gateways/{gateway}/ws", self.address)
    }

    /// Connects a client to a gateway.
    async fn client(&self, gateway: &str, token: &str) -> GatewayClient {
        GatewayClient::connect(&self.url(gateway), token).await
    }

    async fn end(self) {
        assert_eq!(self.up.stop(Signal::TERM).await.0, Some(0));
        self.world.assert_nothing_left().await;
    }
}

async fn start(world: &World) -> Up {
    Up::start(world.sluice().env("SLUICE_LOG", "info").log_to(&world.path().join("up.log"))).await
}

fn address(up: &Up) -> SocketAddr {
    let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://"));
    address.unwrap_or_else(|| panic!("{}", up.said)).parse().unwrap()
}

/// Returns the code and the message of a refusal.
fn refusal(answer: &Value) -> (String, String) {
    assert_eq!(answer["ok"], false, "{answer}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&answer["error"]["details"]["code"]), text(&answer["error"]["message"]))
}

/// Orders a turn; returns the id of its run.
async fn send(client: &mut GatewayClient, session: &str, message: &str, key: &str) -> String {
    let params =
        json!({ "sessionKey": session, "message": message, "idempotencyKey": key, "deliver": false });
    let id = client.send("chat.send", params, None).await;
    // It is the only answer, and says that the turn has begun.
    let answer = client.until(|frame| frame["id"] == id.as_str()).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["payload"]["runId"].as_str().unwrap().to_owned()
}

/// Waits for the last event of a run's answer.
async fn last_event(client: &mut GatewayClient, run: &str) -> Value {
    let is_last = |frame: &Value| {
        let payload = &frame["payload"];
        let is_over = ["final", "error", "aborted"].iter().any(|state| payload["state"] == *state);
        frame["event"] == "chat" && payload["runId"] == run && is_over
    };
    if let Some(seen) = client.seen.iter().find(|frame| is_last(frame)) {
        return seen["payload"].clone();
    }
    let last = tokio::time::timeout(PATIENCE, client.until(is_last)).await.expect("the run ends");
    last["payload"].clone()
}

/// Returns the text of a chat event.
fn text_of(payload: &Value) -> &str {
    payload["message"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// Waits until the API shows that a run is in a state.
async fn reaches(api: &Agent, run: &str, state: &str) -> Value {
    let path = format!("/api/v1/runs/{run}");
    let look = async || api.get(&path).await.json();
    eventually_within(PATIENCE, "the run is there", look, |shown| shown["state"] == state).await
}
