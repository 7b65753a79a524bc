//! Tests the operation of the proxy: whether its configuration is right, whether it is ready, and whether it lives.

use std::{os::unix::net::UnixDatagram, process::Stdio};

use harness::{Agent, World, binary, eventually, eventually::PATIENCE, private_file};
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

/// Runs `sluice-proxy --check` on the world's configuration; returns its exit code and output.
async fn check(world: &World, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(binary("sluice-proxy"));
    command.arg("--check").arg("--config").arg(world.config()).env_clear().envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), said)
}

#[tokio::test]
async fn a_check_reads_everything_and_opens_nothing() {
    // The proxy of the world runs: a check beside it would fail if it opened anything.
    let world = World::start().await;
    assert_eq!(check(&world, &[]).await, (Some(0), "the configuration is valid\n".to_owned()));
    private_file(&world.path().join("key"), "");
    world.reconfigure("threads = 2", "threads = 'two'\ntoken_secrets_file = '/nowhere/tokens'");
    let (code, said) = check(&world, &[("SLUICE_PROXY_DRIAN", "1s")]).await;
    assert_eq!(code, Some(2), "{said}");
    let line = |line: usize| format!("{}:{line}: ", world.config().display());
    for words in [
        "has 4 errors",
        &format!("{}upstream.key_file: the key is empty", line(3)),
        &format!("{}proxy.threads: ", line(9)),
        &format!("{}proxy.token_secrets_file: cannot read", line(10)),
        "SLUICE_PROXY_DRIAN: overrides no setting",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    // A mistake outside the file is reported with its source.
    world.reconfigure("threads = 'two'\ntoken_secrets_file = '/nowhere/tokens'", "threads = 2");
    world.reconfigure(&format!("key_file = '{}'\n", world.path().join("key").display()), "");
    let (code, said) =
        check(&world, &[("LITELLM_MASTER_KEY", "two words"), ("PROXY_SHARED_SECRET", "short")]).await;
    assert_eq!(code, Some(2), "{said}");
    for words in ["environment variable LITELLM_MASTER_KEY: ", "environment variable PROXY_SHARED_SECRET: "] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert!(!said.contains("two words") && !said.contains("short:"), "{said}");
}

/// Starts the world's proxy again, with a metrics listener; returns a client of it.
async fn with_metrics(world: &mut World, settings: &str) -> Agent {
    assert!(world.stop_proxy().await);
    let port = harness::bridge::free_port();
    world.reconfigure("threads = 2", &format!("threads = 2\nmetrics_listen = '{port}'{settings}"));
    world.start_proxy().await;
    Agent::over_tcp(port)
}

async fn ready(world: &World) -> (u16, Value) {
    let answer = world.control.send(Method::GET, "/v1/ready", String::new()).await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn a_proxy_that_drains_lives_and_is_not_ready() {
    let mut world = World::start().await;
    let metrics = with_metrics(&mut world, "").await;
    assert_eq!(ready(&world).await, (200, json!({ "ready": true, "reasons": [] })));
    assert_eq!(metrics.get("/healthz").await.status, 200);
    assert_eq!(metrics.get("/readyz").await.json(), json!({ "ready": true, "reasons": [] }));

    let run = world.run("r1", "acct-1").await;
    let stream = run.agent.stream("fake-words20-gap50ms").await;
    world.signal_proxy(Signal::TERM);
    let look = || async { metrics.get("/readyz").await };
    let answer = eventually("it is not ready", look, |answer| answer.status == 503).await;
    assert_eq!(answer.json(), json!({ "ready": false, "reasons": ["draining"] }));
    assert_eq!(metrics.get("/healthz").await.status, 200);
    assert!(stream.until_break().await.1.is_ok());
    assert!(world.stop_proxy().await);
}

#[tokio::test]
async fn a_run_that_cannot_be_opened_is_told() {
    let world = World::start().await;
    let dir = world.path().join("llm");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("llm.sock"), "in the way").unwrap();
    let config = std::fs::read_to_string(world.config()).unwrap();
    let run = format!("[runs.st-1]\naccount = 'a'\npeer_uid = 0\nsocket = '{}/llm.sock'\n", dir.display());
    std::fs::write(world.config(), config + &run).unwrap();
    let outcome = world.sluice().run(&["reload"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stdout.contains("not open  run st-1: ") && outcome.stdout.contains("is not a socket"),
        "{outcome:?}"
    );
    let (status, answer) = ready(&world).await;
    assert_eq!(
        (status, &answer["reasons"][0]["reason"], &answer["reasons"][0]["run_id"]),
        (200, &json!("run_not_open"), &json!("st-1")),
        "the others are served"
    );
    let doctor = world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("broken   runs that are not open: run st-1: "), "{doctor:?}");

    std::fs::remove_file(dir.join("llm.sock")).unwrap();
    assert_eq!(world.sluice().run(&["reload"]).await.code, Some(0));
    assert_eq!(ready(&world).await.0, 200);
    assert_eq!(Agent::on(&dir.join("llm.sock")).chat("fake").await.status, 200);
}

#[tokio::test]
async fn a_service_manager_is_told_how_far_it_is() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let path = world.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let but_for_the_watchdog =
        || std::iter::repeat_with(next).find(|message| message != "WATCHDOG=1").unwrap();
    world.start_proxy_with(&[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "100000")]).await;
    assert_eq!(next(), "READY=1");
    assert_eq!(next(), "WATCHDOG=1");
    assert_eq!(next(), "WATCHDOG=1");
    world.signal_proxy(Signal::HUP);
    assert!(but_for_the_watchdog().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(but_for_the_watchdog(), "READY=1");
    assert!(world.stop_proxy().await);
    assert!(but_for_the_watchdog().starts_with("STOPPING=1\n"));
}

#[tokio::test]
async fn the_units_are_accepted_by_systemd() {
    for program in ["sluice", "sluice-proxy"] {
        let unit = format!("{}/../platform/systemd/{program}.service", env!("CARGO_MANIFEST_DIR"));
        let Ok(output) = Command::new("systemd-analyze").args(["verify", &unit]).output().await else {
            // A machine without systemd never starts the units.
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let complaints: Vec<_> =
            said.lines().filter(|line| line.contains(&format!("{program}.service"))).collect();
        let known = [
            // Neither the program nor its page is installed here.
            format!("Command /usr/bin/{program} is not executable"),
            format!("Command 'man {program}("),
            // Docker may be no service of this machine.
            "Failed to add dependency on docker.service".to_owned(),
            "Unit docker.service not found".to_owned(),
        ];
        let expected = |line: &&str| known.iter().any(|known| line.contains(known));
        assert!(complaints.iter().all(expected), "{said}");
    }
}
