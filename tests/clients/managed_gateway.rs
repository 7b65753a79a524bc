//! Tests a real managed gateway: its connections, its isolation, its restarts, and its removal.

use std::time::Duration;

use bench::upstream::Entry;
use harness::{
    Outcome, Up, World, docker::docker, eventually::eventually_within, mirrored_remote::MirroredRemote,
    mounts, shared::share,
};
use platform_core::{record::Identity, refusal::Refusal};
use rustix::{
    mount::{UnmountFlags, unmount},
    process::Signal,
};
use serde_json::Value;

const GATEWAYS: &str = "[gateways.g]\ndrain_timeout = '5s'\nmax_concurrent_sessions = 2\ndisk = '256MiB'\n[gateways.open]\ntools = ['exec']\n\
     [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['g']\nmodel = 'fake-echo'\nrun_timeout = '90s'\n";

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// Returns the codes of the findings about the only gateway that was checked.
fn codes(outcome: &Outcome) -> Vec<String> {
    let findings = json(outcome)["gateways"][0]["findings"].as_array().unwrap().clone();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

/// Returns the output of `script`, run by a shell in a container, whether it fails or not.
async fn inside(container: &str, script: &str) -> String {
    docker(&["exec", container, "sh", "-c", &format!("{{ {script}; }} 2>&1 || true")]).await
}

/// Script that calls a model from inside, as an attacker with a command in the gateway would.
const CALL: &str = r#"node -e '
fetch("http://127.0.0.1:8080/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "mine" }] }) })
.then(async (answer) => console.log(answer.status, (await answer.json()).error?.code))'"#;

/// `gateway down` keeps its state; `--purge` removes that, too.
#[tokio::test]
async fn a_managed_gateway_has_one_way_in_and_out() {
    let mut world = World::with(GATEWAYS).await;
    let container = format!("sluice-{}-gateway-g", world.installation());

    refuses_what_accounts_may_not_share(&world).await;
    is_started_once(&world).await;
    let listed = world.sluice().run(&["gateway", "ls", "--json"]).await;
    assert_eq!(json(&listed)["gateways"][0]["state"], "up", "{listed:?}");
    is_what_it_was_made(&world, &container).await;
    is_isolated(&container).await;
    assert_eq!(inside(&container, CALL).await, "400 unattributed");
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!(record.refusal, Some(Refusal::Unattributed));
    let is_chat = |call: &&Entry| call.path.ends_with("/chat/completions");
    assert_eq!(world.upstream.ledger().all().iter().filter(is_chat).count(), 0, "nothing of it went on");
    are_sessions_of_two_accounts(&world, Identity::Trace).await;
    fills_its_own_disk_alone(&world, &container).await;
    comes_back_after_the_machine(&mut world, &container).await;

    // `runs gc` does not treat it as the leftover of a run.
    let gc = world.sluice().run(&["runs", "gc", "--unknown"]).await;
    assert_eq!(gc.code, Some(0), "{gc:?}");
    assert!(gc.stdout.contains("it is gateway g"), "{gc:?}");

    world.reconfigure(
        "drain_timeout = '5s'\nmax_concurrent_sessions = 2",
        "drain_timeout = '5s'\nmax_concurrent_sessions = 3",
    );
    let changed = world.sluice().run(&["gateway", "up", "g", "--json"]).await;
    assert_eq!(json(&changed)["is"], "restarted", "{changed:?}");
    let changes = ["config.agents.defaults.maxConcurrent", "config.agents.defaults.subagents.maxConcurrent"];
    assert_eq!(json(&changed)["changed"], Value::from(changes.to_vec()));

    mounts_a_repository(&world, &container).await;
    let down = world.sluice().run(&["gateway", "down", "g"]).await;
    assert_eq!(down.code, Some(0), "{down:?}");
    let removed = world.sluice().run(&["repo", "rm", "web"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    world.assert_nothing_left().await;
    assert!(world.path().join("gateways/g/disk").read_dir().unwrap().next().is_some(), "its state stays");
    let purged = world.sluice().run(&["gateway", "down", "g", "--purge"]).await;
    assert_eq!(purged.code, Some(0), "{purged:?}");
    world.assert_nothing_left().await;
    assert!(!world.path().join("gateways/g").exists());
}

/// Checks runs of two accounts there: each gets its own words, and is billed for its own calls, attributed by
/// `identity`.
async fn are_sessions_of_two_accounts(
    world: &World,
    identity: Identity,
) -> [(&'static str, &'static str); 2] {
    let run = async |run: &'static str, account: &'static str| {
        let arguments =
            ["run", "--json", "--agent", "sandbox:openclaw-gateway", "--run-id", run, "--account", account];
        let question = format!("Please say that it is {run}");
        let outcome = world.sluice().run(&[&arguments[..], &[&question]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains(&format!("it is {run}")), "{outcome:?}");
    };
    tokio::join!(run("r1", "acct-1"), run("r2", "acct-2"));
    let (journal, runs) = (world.journal().await, [("r1", "acct-1"), ("r2", "acct-2")]);
    for (run, account) in runs {
        let own: Vec<_> = journal.iter().filter(|line| line.record.run_id.as_str() == run).collect();
        assert!(!own.is_empty(), "{run}");
        for line in own {
            assert_eq!((line.record.account.as_str(), line.record.identity), (account, identity));
        }
    }
    runs
}

/// Checks that of two commands at once, one starts the gateway and the other one finds it started.
async fn is_started_once(world: &World) {
    let up = || async { world.sluice().run(&["gateway", "up", "g", "--wait", "--json"]).await };
    let (one, two) = tokio::join!(up(), up());
    let mut done = [&one, &two].map(|up| {
        assert_eq!(up.code, Some(0), "{up:?}");
        json(up)["is"].as_str().unwrap().to_owned()
    });
    done.sort();
    assert_eq!(done, ["started", "unchanged"], "{one:?} {two:?}");
}

/// Checks that a change of its container behind Sluicegate's back is found and undone.
async fn is_what_it_was_made(world: &World, container: &str) {
    let check = || async { world.sluice().run(&["gateway", "check", "g", "--json"]).await };
    let checked = check().await;
    assert_eq!((checked.code, codes(&checked)), (Some(0), vec![]), "{checked:?}");
    // Docker refuses to connect a container in the network `none`, but allows a disconnect from it.
    docker(&["network", "disconnect", "none", container]).await;
    docker(&["network", "connect", "bridge", container]).await;
    docker(&["update", "--pids-limit", "-1", container]).await;
    let checked = check().await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert_eq!(codes(&checked), ["network_not_none", "container_changed"], "{checked:?}");
    assert!(checked.stdout.contains("since it was created: PidsLimit"), "{checked:?}");
    let repaired = world.sluice().run(&["gateway", "up", "g", "--wait", "--json"]).await;
    assert_eq!(json(&repaired)["changed"], Value::from(vec!["PidsLimit", "network bridge"]), "{repaired:?}");
    let checked = check().await;
    assert_eq!((checked.code, codes(&checked)), (Some(0), vec![]), "{checked:?}");
}

/// Checks that it mounts the volume of its agent's entry, which it only reads, and is left alone while that is missing.
async fn mounts_a_repository(world: &World, container: &str) {
    let volume = format!("sluice-{}-repo-web", world.installation());
    let entry = "gateways = ['g']\n";
    let volumes = format!("{entry}volumes = [{{ volume = '{volume}', container_path = '/repo' }}]\n");
    world.reconfigure(entry, &volumes);
    let up = || async { world.sluice().run(&["gateway", "up", "g", "--json"]).await };
    let missing = up().await;
    assert!(missing.code == Some(69) && missing.stderr.contains("`sluice repo add web URL`"), "{missing:?}");
    assert_eq!(inside(container, "echo it runs").await, "it runs");

    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    let added = world.sluice().run(&["repo", "add", "web", &remote.url]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    let changed = up().await;
    assert_eq!(json(&changed)["changed"], Value::from(vec!["container.volumes"]), "{changed:?}");
    assert_eq!(inside(container, "cat /repo/current/number").await, "0");
    remote.push("1");
    let refreshed = world.sluice().run(&["repo", "refresh", "web"]).await;
    assert_eq!(refreshed.code, Some(0), "{refreshed:?}");
    assert_eq!(inside(container, "cat /repo/current/number").await, "1", "without a restart");
    assert!(inside(container, "touch /repo/current/number").await.contains("Read-only file system"));
    assert_eq!(json(&up().await)["is"], "unchanged");
    let in_use = world.sluice().run(&["repo", "rm", "web"]).await;
    assert_eq!(in_use.code, Some(75), "{in_use:?}");
}

/// Checks that a command in it can fill only its own file system, also where its socket is.
async fn fills_its_own_disk_alone(world: &World, container: &str) {
    let check = || async { codes(&world.sluice().run(&["gateway", "check", "g", "--json"]).await) };
    for dir in ["/workspace", "/bridge"] {
        let said = inside(container, &format!("dd if=/dev/zero of={dir}/all bs=1M")).await;
        assert!(said.contains("No space left on device"), "{dir}: {said}");
        assert!(check().await.contains(&"disk_full".to_owned()), "{dir}");
        inside(container, &format!("rm {dir}/all")).await;
        // The control: with free space the check finds nothing.
        assert_eq!(check().await, [""; 0], "{dir}");
    }
}

/// Checks that `sluice up` mounts its file system and starts its container again, as after a start of the machine.
async fn comes_back_after_the_machine(world: &mut World, container: &str) {
    inside(container, "echo mine > /workspace/kept").await;
    docker(&["stop", container]).await;
    for point in mounts::below(&world.path().join("gateways")) {
        unmount(point, UnmountFlags::empty()).unwrap();
    }
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    let state = || async {
        json(&world.sluice().run(&["gateway", "ls", "--json"]).await)["gateways"][0]["state"].clone()
    };
    eventually_within(Duration::from_secs(90), "it is back", state, |state| state == "up").await;
    assert_eq!(inside(container, "cat /workspace/kept").await, "mine", "and what it had");
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
    world.start_proxy().await;
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

async fn is_isolated(container: &str) {
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
    // These directories hold its state, which survives a restart.
    assert_eq!(inside(container, "ls /workspace").await, "home\nstate");
}

/// The plugin attributes the calls: it adds a run's token to its session's calls.
#[tokio::test]
async fn managed_gateway_calls_are_billed_by_account() {
    let mut world = World::with(GATEWAYS).await;
    share(&mut world, "gateways").await;
    world.reconfigure("[gateways.g]\n", "[gateways.g]\nattribution = 'plugin'\n");
    let up = world.sluice().run(&["gateway", "up", "g", "--wait"]).await;
    assert_eq!(up.code, Some(0), "{up:?}");
    let checked = world.sluice().run(&["gateway", "check", "g", "--json"]).await;
    assert_eq!((checked.code, codes(&checked)), (Some(0), vec![]), "{checked:?}");
    let own = are_sessions_of_two_accounts(&world, Identity::Token).await;
    let billed = world.upstream.ledger().all();
    for (run, account) in own {
        let calls = billed.iter().filter(|call| call.header("x-cogni-run-id") == [run]);
        let payers: Vec<_> = calls.map(|call| call.header("x-litellm-end-user-id")).collect();
        assert!(!payers.is_empty() && payers.iter().all(|payer| *payer == [account]), "{run}: {payers:?}");
    }
    assert_eq!(world.sluice().run(&["gateway", "down", "g", "--purge"]).await.code, Some(0));
    world.assert_nothing_left().await;
}
