//! `sluice doctor` where something depends on what is broken, and how a person sees it.

use bench::upstream::ScriptedUpstream;
use harness::{KeyRejectingUpstream, Up, World};
use rustix::process::Signal;

/// The report says how to fix it.
#[tokio::test]
async fn doctor_reports_a_rejected_key() {
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let outcome = world.sluice().run(&["doctor", "--json"]).await;
    let report = outcome.result();
    assert_eq!((outcome.code, &report["ready"]), (Some(69), &false.into()), "{outcome:?}");
    let checks = report["checks"].as_array().unwrap();
    let upstream = checks.iter().find(|check| check["name"] == "upstream").unwrap();
    assert_eq!(upstream["verdict"], "broken");
    assert!(upstream["found"].as_str().unwrap().contains("401"), "{upstream}");
    assert!(upstream["fix"].as_str().unwrap().contains("upstream.key_file"), "{upstream}");
}

/// LiteLLM without a database answers 400 to each key but its master key, as it was measured.
#[tokio::test]
async fn doctor_tells_of_a_missing_database() {
    let rejecting = KeyRejectingUpstream::without_database().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let outcome = world.sluice().run(&["doctor", "--json"]).await;
    let report = outcome.result();
    let checks = report["checks"].as_array().unwrap();
    let upstream = checks.iter().find(|check| check["name"] == "upstream").unwrap();
    assert_eq!((outcome.code, &upstream["verdict"]), (Some(69), &"broken".into()), "{outcome:?}");
    assert!(upstream["found"].as_str().unwrap().contains("a LiteLLM without a database"), "{upstream}");
    assert!(upstream["fix"].as_str().unwrap().contains("master key"), "{upstream}");
}

/// A virtual key of LiteLLM lists its own models alone.
#[tokio::test]
async fn doctor_names_models_outside_the_key() {
    let agent = |models: &str| {
        format!(
            "[agents.'team:models']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['true']\nmodel = 'fake'\nmodels = {models}\n"
        )
    };
    let agents = async |models: &str| {
        let outcome = World::with(&agent(models)).await.sluice().run(&["doctor", "--json"]).await;
        let report = outcome.result();
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == "agents").unwrap().clone()
    };
    let outside = agents("['fake', 'gpt-outside']").await;
    assert_eq!(outside["verdict"], "broken", "{outside}");
    let said = "team:models: the gateway's key may not use gpt-outside of its `models`";
    assert!(outside["found"].as_str().unwrap().contains(said), "{outside}");
    let inside = agents("['fake', 'fake-words50']").await;
    assert_eq!(inside["verdict"], "ok", "control: {inside}");
}

/// The proxy refuses calls by itself by then. It is not blamed, and the checks behind it are made.
#[tokio::test]
async fn doctor_tells_the_upstream_from_the_proxy() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, "http://127.0.0.1:9", "").await;
    let run = world.run("r1", "acct-1").await;
    for _ in 0..5 {
        assert_eq!(run.agent.chat("fake").await.status, 503);
    }
    assert!(!world.control.send(http::Method::GET, "/v1/ready", String::new()).await.status.is_success());
    let outcome = world.sluice().run(&["doctor"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    for begin in ["ok       proxy: version ", "broken   upstream: ", "ok       socket in a container: "] {
        assert!(outcome.stdout.lines().any(|line| line.starts_with(begin)), "{begin} is not in {outcome:?}");
    }
    assert!(outcome.stdout.contains("; calls are refused since "), "{outcome:?}");
    assert!(!outcome.stdout.contains('{'), "it shows no JSON: {outcome:?}");
}

/// A check that depends on something broken is not guessed at.
#[tokio::test]
async fn doctor_reports_dependents_as_unknown() {
    const NO_DOCKER: [&str; 9] = [
        "broken   docker: ",
        "         fix: ",
        "unknown  agents: needs docker",
        "ok       store: ",
        "ok       workspaces: ",
        "ok       proxy: ",
        "ok       upstream: ",
        "unknown  socket in a container: needs docker",
        "ok       worker: none: ",
    ];
    const NO_PROXY: [&str; 9] = [
        "ok       docker: ",
        "ok       agents: ",
        "ok       store: ",
        "ok       workspaces: ",
        "broken   proxy: ",
        "         fix: ",
        "unknown  upstream: needs proxy",
        "unknown  socket in a container: needs proxy",
        "ok       worker: none: ",
    ];
    let world = World::start().await;
    for (setting, begins) in
        [("sandbox.docker_socket=/nowhere/docker.sock", NO_DOCKER), ("proxy.run_dir=/nowhere", NO_PROXY)]
    {
        let outcome = world.sluice().run(&["doctor", "--set", setting]).await;
        // Whether OpenClaw's image is here, is another test's question.
        let lines: Vec<_> =
            outcome.stdout.lines().filter(|line| !line.contains("sandbox:openclaw")).collect();
        assert_eq!((outcome.code, lines.len()), (Some(69), begins.len()), "{outcome:?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line:?} does not begin with {begin:?}");
        }
    }
}

/// Without `sluice up` an ordered run waits, and both commands say so.
#[tokio::test]
async fn a_missing_worker_is_told() {
    let world = World::start().await;
    let order = |run| ["run", "--detach", "--run-id", run, "q"];
    let waits = "nothing executes runs here now: it waits until `sluice up` runs";
    let alone = world.sluice().run(&order("r1")).await;
    assert_eq!((alone.code, alone.stdout.trim()), (Some(0), "r1"), "{alone:?}");
    assert!(alone.stderr.contains(waits), "{alone:?}");
    let up = Up::start(world.sluice()).await;
    let ordered = world.sluice().run(&order("r2")).await;
    assert_eq!((ordered.code, ordered.stderr.as_str()), (Some(0), ""), "{ordered:?}");
    let doctor = world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("ok       worker: executes runs of the API"), "{doctor:?}");
    up.stop(Signal::TERM).await;
}
