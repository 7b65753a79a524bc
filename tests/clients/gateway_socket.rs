//! Tests OpenClaw's own clients at the WebSocket of the API, with a real managed gateway behind it: its client for programs and
//! its terminal interface. Neither is patched.

use std::{net::SocketAddr, path::Path, process::Stdio, time::Duration};

use harness::{Up, World, canary, eventually::eventually_within, terminal::converse};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

const GATEWAY: &str = "[api]\nlisten = '127.0.0.1:0'\n[gateways.coding]\naccount = 'acct-7'\ndrain_timeout = '2s'\ndisk = '256MiB'\n\
     [gateways.other]\naccount = 'acct-8'\nagents = ['secret']\n\
     [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['coding']\nmodel = 'fake-steps'\nrun_timeout = '120s'\n";
/// Longest wait for a gateway, and for a turn in it.
const PATIENCE: Duration = Duration::from_secs(90);
/// Message after which the scripted model runs a command, about which a person is asked.
const MESSAGE: &str = "Do this:\ncall: exec {\"command\":\"echo approved-run\"}\nsay: All is done.";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A gateway that runs, with an agent that asks people, and a `sluice up` that serves it to clients.
struct Desk {
    world: World,
    up: Up,
    address: SocketAddr,
    token: String,
}

impl Desk {
    async fn start() -> Self {
        let mut world = World::with(GATEWAY).await;
        let run = async |arguments: &[&str]| {
            let outcome = world.sluice().run(arguments).await;
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            outcome.stdout
        };
        run(&["gateway", "up", "coding", "--wait"]).await;
        let token = run(&["principals", "add", "ann", "--account", "acct-7", "--role", "member"]).await;
        canary::hand_out(token.trim());
        assert!(world.stop_proxy().await);
        let up = Up::start(world.sluice()).await;
        let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://")).unwrap();
        let address = address.parse().unwrap();
        let desk = Self { world, up, address, token: token.trim().to_owned() };
        desk.make_agent().await;
        desk
    }

    async fn make_agent(&self) {
        for arguments in [
            &["gateway", "agents", "add", "coding", "Research Bot"][..],
            &["gateway", "agents", "set", "coding", "research-bot", "--commands", "ask"],
        ] {
            let outcome = self.world.sluice().run(arguments).await;
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
        let look = async || {
            let listed = self.world.sluice().run(&["gateway", "agents", "ls", "coding", "--json"]).await;
            let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
            let mut agents = listed["agents"].as_array().unwrap().iter();
            agents.find(|agent| agent["id"] == "research-bot").cloned().unwrap_or_default()
        };
        eventually_within(PATIENCE, "the agent is applied", look, |agent| agent["state"] == "applied").await;
    }

    fn url(&self) -> String {
        format!("ws://{}/api/v1/gateways/coding/ws", self.address)
    }

    /// Returns a command of OpenClaw, with its own home.
    fn openclaw(&self, arguments: &[&str]) -> Command {
        let home = self.world.path().join("openclaw-client");
        std::fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(repository().join("scripts/openclaw.sh"));
        command.args(arguments).current_dir(&home).env("HOME", &home).env("GATEWAY_HOME", &home);
        command.env("SLUICE_TOKEN", &self.token).env("OPENCLAW_NO_RESPAWN", "1").env("TERM", "xterm");
        let own_home = std::env::home_dir().unwrap();
        command.env("XDG_CACHE_HOME", own_home.join(".cache")).env("OPENCLAW_STATE_DIR", home.join("state"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn end(self) {
        assert_eq!(self.up.stop(Signal::TERM).await.0, Some(0));
        let mut world = self.world;
        world.start_proxy().await;
        let down = world.sluice().run(&["gateway", "down", "coding", "--purge"]).await;
        assert_eq!(down.code, Some(0), "{down:?}");
        world.assert_nothing_left().await;
    }
}

/// OpenClaw's own client for programs: it lists its account's agents, is asked, leaves in mid-answer and comes back.
#[tokio::test]
async fn a_program_chats_and_comes_back() {
    let desk = Desk::start().await;
    let script = repository().join("tests/openclaw/socket_client.mjs");
    let mut client = desk.openclaw(&["node", script.to_str().unwrap(), &desk.url(), "research-bot", MESSAGE]);
    let ended = tokio::time::timeout(PATIENCE, client.output()).await.expect("it ends").unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{told}{}", String::from_utf8_lossy(&ended.stderr));
    let facts: Vec<Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(facts[0], json!({ "agents": ["main", "research-bot"] }), "those of its account alone");
    assert_eq!(facts[1]["sessionKey"], "agent:research-bot:main", "{told}");
    assert!(facts[1]["asked"].as_str().unwrap().contains("echo approved-run"), "{told}");
    assert_eq!(facts[2], json!({ "running": true, "messages": 1, "pending": [true] }), "{told}");
    assert_eq!(facts[3], json!({ "answer": "All is done.", "finals": 1 }), "{told}");
    assert_eq!(facts[4], json!({ "messages": ["user", "assistant"] }), "{told}");
    assert_eq!(facts[5]["faults"], json!([]), "OpenClaw's own schema: {told}");
    for judged in ["HelloOk", "AgentsListResult", "ModelsListResult", "ChatEvent", "AgentEvent"] {
        assert!(facts[5]["judged"].as_array().unwrap().contains(&json!(judged)), "{judged}: {told}");
    }
    let runs = desk.world.sluice().run(&["runs", "ls", "--json"]).await;
    let runs: Value = serde_json::from_str(&runs.stdout).unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "one run, which is billed once: {runs}");
    desk.end().await;
}

/// OpenClaw's terminal interface: a person chats, sees a request, allows it, and reads the answer.
#[tokio::test]
async fn a_person_chats_in_a_terminal() {
    let desk = Desk::start().await;
    let url = desk.url();
    let line = format!(
        "stty rows 50 cols 140; exec {} run tui --url '{url}' --token \"$SLUICE_TOKEN\" --session agent:research-bot:main --message \"$MESSAGE\"",
        repository().join("scripts/openclaw.sh").display()
    );
    let openclaw = desk.openclaw(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("MESSAGE", MESSAGE);
    command.current_dir(openclaw.as_std().get_current_dir().unwrap());
    command.envs(openclaw.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shown = converse(
        command,
        &[("Allow once", "\u{1b}[A\u{1b}[A"), ("Approve this change", "\r"), ("All is done.", "/exit\r")],
    )
    .await;
    assert!(shown.contains("Command: echo approved-run"), "{shown}");
    desk.end().await;
}
