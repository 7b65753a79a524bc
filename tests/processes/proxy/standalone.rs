//! Tests the proxy without `sluice`: its runs are in its configuration, as they were in the nginx template that it
//! replaces.

use std::{fs, path::PathBuf};

use harness::{Agent, World, eventually, shared::token};
use platform_core::record::{Identity, Outcome};
use serde_json::{Value, json};

/// Returns the configuration that the tutorial shows, on the paths of a world.
fn of_the_tutorial(world: &World) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/tutorials/replace-the-nginx-template.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, after) = page.split_once("<!-- standalone -->\n```toml\n").expect("the page shows it");
    let config = after.split_once("```").unwrap().0;
    let root = world.path().display().to_string();
    config
        .replace("http://litellm:4000", &world.upstream.base_url())
        .replace("/etc/sluicegate/upstream.key", &format!("{root}/key"))
        .replace("/llm-sock", &format!("{root}/llm-sock"))
        .replace("peer_uid = 1001", "peer_uid = 0")
}

/// Starts a world with the configuration `config` and its own directories; returns the socket that the page names.
async fn standing(config: impl Fn(&World) -> String) -> (World, PathBuf) {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let root = world.path().display().to_string();
    let own = format!(
        "[proxy]\nrun_dir = '{root}/run'\nstate_dir = '{root}/state'\nthreads = 2\ndrain_timeout = '2s'\n"
    );
    fs::write(world.config(), config(&world) + &own).unwrap();
    world.start_proxy().await;
    let socket = world.path().join("llm-sock/llm.sock");
    (world, socket)
}

#[tokio::test]
async fn the_tutorials_configuration_serves_a_run() {
    let (mut world, socket) = standing(of_the_tutorial).await;
    let agent = Agent::on(&socket);
    for calls in 1..=2 {
        let answer = agent.clone().with_header("x-litellm-customer-id", "somebody else").chat("fake").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let call = world.upstream.ledger().last().unwrap();
        assert_eq!(call.header("authorization"), [format!("Bearer {}", harness::CANARY_KEY)]);
        assert_eq!(call.header("x-litellm-customer-id"), ["acct-1"]);
        assert_eq!(call.header("x-litellm-end-user-id"), ["acct-1"]);
        let metadata: Value = serde_json::from_str(call.header("x-litellm-spend-logs-metadata")[0]).unwrap();
        assert_eq!(
            [&metadata["run_id"], &metadata["attempt"], &metadata["graph_id"]],
            [&json!("run-1"), &json!(0), &json!("sandbox:agent")]
        );
        let record = world.records(calls).await.pop().unwrap().record;
        assert_eq!(
            (record.identity, record.outcome, record.run_id.as_str()),
            (Identity::Socket, Outcome::Complete, "run-1")
        );
        // And after each restart, also one after a kill.
        world.kill_proxy().await;
        world.start_proxy().await;
    }
}

/// Returns runs of a configuration on the sockets `llm-sock/<name>.sock`, with more settings each.
fn runs(world: &World, runs: &[(&str, &str)]) -> String {
    let root = world.path().display();
    let run = |(name, settings): &(&str, &str)| {
        format!(
            "[runs.{name}]\naccount = 'acct-1'\npeer_uid = 0\nsocket = '{root}/llm-sock/{name}.sock'\n{settings}\n"
        )
    };
    runs.iter().map(run).collect()
}

fn reconfigured(world: &World, before: &[(&str, &str)], after: &[(&str, &str)]) {
    world.reconfigure(&runs(world, before), &runs(world, after));
}

#[tokio::test]
async fn a_reload_moves_runs_with_their_spending() {
    let first = [("s1", "requests = 2"), ("s2", ""), ("s3", "")];
    let (world, _) = standing(|world| {
        format!("[upstream]\nbase_url = '{}'\n{}", world.upstream.base_url(), runs(world, &first))
    })
    .await;
    let agent = |name: &str| Agent::on(&world.path().join(format!("llm-sock/{name}.sock")));
    let ask = async |name: &str| agent(name).chat("fake").await;
    for name in ["s1", "s2", "s3"] {
        assert_eq!(ask(name).await.status, 200, "{name}");
    }
    let stream = agent("s3").stream("fake-words20-gap50ms").await;
    // One is removed, one is added, one has a lower limit, one belongs to another user.
    let second = [("s1", "requests = 1"), ("s3", "user = 'user-1'"), ("s4", "")];
    reconfigured(&world, &first, &second);
    let outcome = world.sluice().run(&["reload", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(ask("s1").await.json()["error"]["code"], "quota_exhausted");
    let gone = || async { agent("s2").connect().await.is_err() };
    eventually("the socket of what is gone goes", gone, |gone| *gone).await;
    assert_eq!(ask("s4").await.status, 200);
    assert_eq!(ask("s3").await.status, 200);
    let metadata =
        world.upstream.ledger().last().unwrap().header("x-litellm-spend-logs-metadata")[0].to_owned();
    assert!(metadata.contains("user-1"), "{metadata}");
    assert!(stream.until_break().await.1.is_ok(), "what was in flight went on");

    // Named again: no run is opened twice to spend twice.
    let third = [("s1", "requests = 1"), ("s2", "requests = 1"), ("s3", "user = 'user-1'"), ("s4", "")];
    reconfigured(&world, &second, &third);
    assert_eq!(world.sluice().run(&["reload"]).await.code, Some(0));
    assert_eq!(ask("s2").await.json()["error"]["code"], "quota_exhausted");
    // Closed by control is closed for good, but no reason not to be ready.
    world.control.close(&"s4".parse().unwrap(), 0).await.unwrap();
    assert_eq!(world.sluice().run(&["reload"]).await.code, Some(0));
    let gone = || async { agent("s4").connect().await.is_err() };
    eventually("its socket is gone", gone, |gone| *gone).await;
    assert!(world.control.health().await.unwrap().runs == 3);
}

/// All mistakes in such runs are reported.
#[tokio::test]
async fn a_static_run_may_use_the_shared_listener() {
    let mut world = World::start().await;
    harness::shared::share(&mut world, "clients").await;
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}\n[runs.s1]\naccount = 'acct-1'\n")).unwrap();
    assert_eq!(world.sluice().run(&["reload"]).await.code, Some(0));
    let address = world.control.register(&harness::grant("r1", "acct-1")).await.unwrap().shared.unwrap();
    let agent = Agent::over_tcp(address).with_header("x-run-token", &token("s1", 0, "new", 3600));
    assert_eq!(agent.chat("fake").await.status, 200);

    let runs = "[runs.Bad]\naccount = 'a'\nsocket = '/x/1.sock'\n[runs.s2]\nsocket = '/x/1.sock'\n\
                [runs.s3]\naccount = 'a'\nsocket = '/x/1.sock'\ncolour = 'red'\n[runs.r1]\naccount = 'a'\n";
    fs::write(world.config(), format!("{config}\n{runs}")).unwrap();
    let outcome = world.sluice().run(&["config", "check"]).await;
    assert_eq!(outcome.code, Some(2));
    for words in [
        "`Bad` is not a run id",
        "runs.s2: it needs an `account`",
        "runs.s3: run s2 has the same socket",
        "runs.s3.colour: unknown key",
    ] {
        assert!(outcome.stderr.contains(words), "{words} is not in {}", outcome.stderr);
    }
    fs::write(world.config(), format!("{config}\n[runs.r1]\naccount = 'a'\nsocket = '/x/1.sock'\n")).unwrap();
    let outcome = world.sluice().run(&["reload"]).await;
    assert!(outcome.stderr.contains("runs.r1 is open already"), "{outcome:?}");
}
