//! Tests `sluice up`: a proxy runs and holds the key, and receives nothing else from the process that started it.

use std::{collections::BTreeMap, fs, process::Stdio};

use harness::{CANARY_KEY, Up, World, binary, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

/// Starts a world and stops its proxy.
async fn world_without_proxy() -> World {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    world
}

/// Returns what any process of the same user can read about another: environment and arguments.
fn visible(pid: u32) -> (BTreeMap<String, String>, String) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let environment = read("environ");
    let variables = environment.split_terminator('\0').filter_map(|variable| variable.split_once('='));
    (variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), read("cmdline"))
}

/// Asks the model through the world's proxy; returns the credential that the upstream was shown.
async fn credential_shown(world: &World) -> Vec<String> {
    let answer = world.run("r1", "acct-1").await.agent.chat("fake").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    world.upstream.ledger().last().unwrap().header("authorization").into_iter().map(str::to_owned).collect()
}

/// Reads those of `sluice up` and of its proxy.
#[tokio::test]
async fn the_key_is_in_no_environment_or_arguments() {
    let world = world_without_proxy().await;
    let base_url = world.upstream.base_url();
    let settings = [
        ("LITELLM_BASE_URL", base_url.as_str()),
        ("SLUICE_LOG", "debug"),
        ("SLUICE_PROXY_DRAIN_TIMEOUT", "1s"),
    ];
    let secrets =
        [("AWS_SECRET_ACCESS_KEY", "aws-secret"), ("GITHUB_TOKEN", "ghp-secret"), ("HOME", "/root")];
    let sluice =
        settings.iter().chain(&secrets).fold(world.sluice(), |sluice, (name, value)| sluice.env(name, value));
    let up = Up::start(sluice).await;

    let (own, own_arguments) = visible(up.child.id().unwrap());
    let (childs, childs_arguments) = visible(up.proxy_pid);
    let expected = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(childs, BTreeMap::from(expected), "of its parent's variables the proxy gets settings only");
    assert_eq!(own["GITHUB_TOKEN"], "ghp-secret", "the variables it did not get were there");
    for shown in [format!("{own:?}"), own_arguments, childs_arguments] {
        assert!(!shown.contains(CANARY_KEY), "{shown}");
    }
    assert_eq!(credential_shown(&world).await, [format!("Bearer {CANARY_KEY}")], "and yet it has the key");
    up.stop(Signal::TERM).await;
}

/// The message says where the key belongs.
#[tokio::test]
async fn up_refuses_the_key_in_its_environment() {
    let world = world_without_proxy().await;
    let outcome = world.sluice().env("LITELLM_MASTER_KEY", CANARY_KEY).run(&["up"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    for word in ["LITELLM_MASTER_KEY", "upstream.key_file", "unset the variable"] {
        assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains(CANARY_KEY), "{}", outcome.stderr);
    assert!(world.control.health().await.is_err(), "no proxy was started");
}

/// The secret would not reach the proxy.
#[tokio::test]
async fn up_refuses_an_unreachable_token_secret() {
    let world = world_without_proxy().await;
    let sluice = || world.sluice().env("PROXY_SHARED_SECRET", "0123456789abcdef-up");
    world.reconfigure("threads = 2", "threads = 2\nlisten = '127.0.0.1:0'");
    let outcome = sluice().run(&["up"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    for word in ["PROXY_SHARED_SECRET", "proxy.token_secrets_file"] {
        assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("0123456789abcdef"), "{}", outcome.stderr);
    // Where no token is taken it does no harm.
    world.reconfigure("\nlisten = '127.0.0.1:0'", "");
    let up = Up::start(sluice()).await;
    assert!(!visible(up.proxy_pid).0.contains_key("PROXY_SHARED_SECRET"));
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_proxy_by_hand_may_have_the_key_in_its_env() {
    let world = world_without_proxy().await;
    world.reconfigure(&format!("key_file = '{}'\n", world.path().join("key").display()), "");
    let mut command = Command::new(binary("sluice-proxy"));
    command.arg("--config").arg(world.config()).env_clear().env("LITELLM_MASTER_KEY", CANARY_KEY);
    let proxy = command.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    eventually("the proxy answers", || async { world.control.health().await.map_err(drop) }, Result::is_ok)
        .await
        .unwrap();
    assert_eq!(credential_shown(&world).await, [format!("Bearer {CANARY_KEY}")]);
    // It shows that the look at /proc above would have seen a key.
    let (environment, arguments) = visible(proxy.id().unwrap());
    assert_eq!(environment["LITELLM_MASTER_KEY"], CANARY_KEY);
    assert!(!arguments.contains(CANARY_KEY), "{arguments}");
}

#[tokio::test]
async fn up_adopts_a_running_proxy_and_leaves_it() {
    let world = World::start().await;
    let up = Up::start(world.sluice()).await;
    assert!(
        up.said.contains(&format!("already running, adopted, pid {}\n", world.proxy_pid())),
        "{}",
        up.said
    );
    assert_eq!(up.stop(Signal::TERM).await, (Some(0), "stopped".to_owned()));
    assert_eq!(world.control.health().await.unwrap().pid, world.proxy_pid());
}

/// Both execute runs, so the second one is not a mistake by itself.
#[tokio::test]
async fn a_second_up_names_the_pid_of_the_first() {
    let world = world_without_proxy().await;
    let log = |name: &str| world.path().join(name);
    let first = Up::start(world.sluice().log_to(&log("first.log"))).await;
    let second = Up::start(world.sluice().log_to(&log("second.log"))).await;
    let [said_first, said_second] =
        ["first.log", "second.log"].map(|name| fs::read_to_string(log(name)).unwrap());
    let pid = format!("\"pid\":{}", first.child.id().unwrap());
    let named =
        |said: &str| said.lines().any(|line| line.contains("another `sluice up`") && line.contains(&pid));
    assert!(named(&said_second), "{said_second}");
    assert!(!said_first.contains("another `sluice up`"), "{said_first}");
    second.stop(Signal::TERM).await;
    first.stop(Signal::TERM).await;
}

#[tokio::test]
async fn up_stops_its_own_proxy_when_it_is_stopped() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = world_without_proxy().await;
        let up = Up::start(world.sluice()).await;
        assert!(up.said.contains("started, pid "), "{}", up.said);
        assert_eq!(world.control.health().await.unwrap().pid, up.proxy_pid);
        let proxy = up.proxy_pid;
        assert_eq!(up.stop(signal).await, (Some(0), "stopped".to_owned()));
        assert!(!fs::exists(format!("/proc/{proxy}")).unwrap(), "the proxy outlives `sluice up`");
        assert!(world.control.health().await.is_err());
    }
}

#[tokio::test]
async fn up_starts_a_proxy_again_that_was_killed() {
    let world = world_without_proxy().await;
    let mut up = Up::start(world.sluice()).await;
    let killed = up.proxy_pid;
    kill_process(Pid::from_raw(killed.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let pid = || async { world.control.health().await.map_or(killed, |health| health.pid) };
    up.proxy_pid = eventually("another proxy answers", pid, |pid| *pid != killed).await;
    assert_eq!(credential_shown(&world).await, [format!("Bearer {CANARY_KEY}")]);
    let restarted = up.proxy_pid;
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
    assert!(!fs::exists(format!("/proc/{restarted}")).unwrap(), "the second proxy outlives `sluice up`");
}

#[tokio::test]
async fn up_says_why_a_proxy_does_not_start() {
    let world = world_without_proxy().await;
    world.reconfigure(&world.path().join("key").display().to_string(), "/nowhere/key");
    let outcome = world.sluice().run(&["up"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    for words in ["cannot read upstream.key_file /nowhere/key", "the proxy ended with code 2;"] {
        assert!(outcome.stderr.contains(words), "{words} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stdout.contains("ready"), "{}", outcome.stdout);
}
