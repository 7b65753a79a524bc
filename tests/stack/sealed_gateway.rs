//! A real gateway that `sluice gateway up` runs: what leads into it and out of it, and what is left of it.

use bench::upstream::Entry;
use harness::{Outcome, World, docker::docker};
use platform_core::{record::Identity, refusal::Refusal};
use serde_json::Value;

const GATEWAYS: &str = "[gateways.g]\ndrain = '5s'\nsessions = 2\n[gateways.open]\ntools = ['exec']\n\
     [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['g']\nmodel = 'fake-echo'\nruntime = '90s'\n";

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// Codes of what is wrong with the only gateway that was checked.
fn codes(outcome: &Outcome) -> Vec<String> {
    let findings = json(outcome)["gateways"][0]["findings"].as_array().unwrap().clone();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

/// What `script` prints that a shell runs in a container, whether it fails or not.
async fn inside(container: &str, script: &str) -> String {
    docker(&["exec", container, "sh", "-c", &format!("{{ {script}; }} 2>&1 || true")]).await
}

/// Asks a model from inside, as whoever gets a command into the gateway would.
const CALL: &str = r#"node -e '
fetch("http://127.0.0.1:8080/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "mine" }] }) })
.then(async (answer) => console.log(answer.status, (await answer.json()).error?.code))'"#;

#[tokio::test]
async fn a_sealed_gateway_has_one_way_in_and_one_way_out_and_leaves_what_it_is_told_to() {
    let world = World::with(GATEWAYS).await;
    let sluice = |words: &'static [&'static str]| world.sluice().run(words);
    let container = format!("sluice-{}-gateway-g", world.installation());

    refuses_what_accounts_may_not_share(&world).await;
    let up = sluice(&["gateway", "up", "g", "--wait", "--json"]).await;
    assert_eq!((up.code, &json(&up)["is"]), (Some(0), &Value::from("started")), "{up:?}");
    let again = sluice(&["gateway", "up", "g", "--json"]).await;
    assert_eq!((again.code, &json(&again)["is"]), (Some(0), &Value::from("unchanged")), "{again:?}");
    let listed = sluice(&["gateway", "ls", "--json"]).await;
    assert_eq!(json(&listed)["gateways"][0]["state"], "up", "{listed:?}");
    let checked = sluice(&["gateway", "check", "g", "--json"]).await;
    assert_eq!((checked.code, codes(&checked)), (Some(0), vec![]), "{checked:?}");

    is_sealed(&container).await;
    assert_eq!(inside(&container, CALL).await, "400 unattributed");
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!(record.refusal, Some(Refusal::Unattributed));
    let asks = |call: &&Entry| call.path.ends_with("/chat/completions");
    assert_eq!(world.upstream.ledger().all().iter().filter(asks).count(), 0, "nothing of it went on");
    is_where_runs_are_sessions(&world).await;

    // Nobody takes it for what a run has left.
    let gc = sluice(&["runs", "gc", "--unknown"]).await;
    assert_eq!(gc.code, Some(0), "{gc:?}");
    assert!(gc.stdout.contains("it is gateway g"), "{gc:?}");

    world.reconfigure("drain = '5s'\nsessions = 2", "drain = '5s'\nsessions = 3");
    let changed = sluice(&["gateway", "up", "g", "--json"]).await;
    assert_eq!(json(&changed)["is"], "restarted", "{changed:?}");
    let what = ["config.agents.defaults.maxConcurrent", "config.agents.defaults.subagents.maxConcurrent"];
    assert_eq!(json(&changed)["changed"], Value::from(what.to_vec()));

    let down = sluice(&["gateway", "down", "g"]).await;
    assert_eq!(down.code, Some(0), "{down:?}");
    assert_eq!(world.left().await, [format!("volume {container}")]);
    let purged = sluice(&["gateway", "down", "g", "--purge"]).await;
    assert_eq!(purged.code, Some(0), "{purged:?}");
    world.assert_nothing_left().await;
    assert!(!world.path().join("gateways/g").exists());
}

/// Two accounts have runs there: each is told its own words, and billed for its own calls.
async fn is_where_runs_are_sessions(world: &World) {
    let run = async |run: &'static str, account: &'static str| {
        let who =
            ["run", "--json", "--agent", "sandbox:openclaw-gateway", "--run-id", run, "--account", account];
        let question = format!("Please say that it is {run}");
        let outcome = world.sluice().run(&[&who[..], &[&question]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains(&format!("it is {run}")), "{outcome:?}");
    };
    tokio::join!(run("r1", "acct-1"), run("r2", "acct-2"));
    let journal = world.journal().await;
    for (run, account) in [("r1", "acct-1"), ("r2", "acct-2")] {
        let own: Vec<_> = journal.iter().filter(|line| line.record.run_id.as_str() == run).collect();
        assert!(!own.is_empty(), "{run}");
        for line in own {
            assert_eq!((line.record.account.as_str(), line.record.identity), (account, Identity::Trace));
        }
    }
}

async fn refuses_what_accounts_may_not_share(world: &World) {
    let up = world.sluice().run(&["gateway", "up", "open"]).await;
    assert_eq!(up.code, Some(1), "{up:?}");
    assert!(up.stderr.contains("accounts share it, and its agents have exec"), "{up:?}");
    let checked = world.sluice().run(&["gateway", "check", "open", "--json"]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(codes(&checked).contains(&"shared_tools".to_owned()), "{checked:?}");
    let purged = world.sluice().run(&["gateway", "down", "open", "--purge"]).await;
    assert_eq!(purged.code, Some(0), "{purged:?}");
}

async fn is_sealed(container: &str) {
    assert_eq!(inside(container, "ls /sys/class/net").await, "lo");
    // The control: a container that has a network shows it.
    let image = docker(&["inspect", "--format", "{{.Image}}", container]).await;
    let other = docker(&["run", "--rm", "--entrypoint", "ls", &image, "/sys/class/net"]).await;
    assert!(other.contains("eth0"), "{other}");
    for path in ["/config/openclaw.json", "/config/other", "/llm-sock/other", "/other"] {
        let said = inside(container, &format!("echo >> {path}")).await;
        let refused = ["Read-only file system", "Permission denied"];
        assert!(refused.iter().any(|why| said.contains(why)), "{path}: {said}");
    }
    let mounts = inside(container, "grep -E ' (/|/config|/llm-sock) ' /proc/mounts").await;
    assert!(mounts.lines().count() == 3 && mounts.lines().all(|line| line.contains(" ro,")), "{mounts}");
    assert_eq!(
        inside(container, "id -u; grep CapEff /proc/self/status").await,
        "1001\nCapEff:\t0000000000000000"
    );
    // What the state is for: it stays.
    assert_eq!(inside(container, "ls /workspace").await, "home\nstate");
}
