//! Follows advice that names a setting: the setting is changed as `sluice doctor` and `sluice agents check` say, and what
//! was broken works.

use harness::{Outcome, World, advice::quoted, docker::docker};
use platform_runtime::random;
use serde_json::Value;

/// Checks of `sluice doctor` with a setting that breaks each, and a value for it that works. `ROOT` is the world's directory.
const SETTINGS: [(&str, &str, &str, &str); 5] = [
    ("docker", "sandbox.docker_socket", "/nowhere/docker.sock", "ROOT/docker.sock"),
    ("proxy", "proxy.run_dir", "/nowhere", "ROOT/run"),
    ("store", "store.url", "sqlite:///proc/sluice.db", "sqlite://ROOT/store/other.db"),
    ("workspaces", "sandbox.workspace_dir", "/proc/workspaces", "ROOT/elsewhere"),
    ("workspaces", "sandbox.disk_reserve", "100000GiB", "1MiB"),
];

/// Returns what `sluice doctor` says of a check.
async fn judged(world: &World, check: &str, options: &[&str]) -> Value {
    let outcome = world.sluice().run(&[&["doctor", "--json"], options].concat()).await;
    let checks = outcome.result()["checks"].as_array().cloned().unwrap_or_default();
    checks
        .into_iter()
        .find(|found| found["name"] == check)
        .unwrap_or_else(|| panic!("{options:?}: {outcome:?}"))
}

#[tokio::test]
async fn a_setting_that_doctor_names_mends() {
    let world = World::start().await;
    for (check, setting, broken, works) in SETTINGS {
        let set =
            |value: &str| format!("{setting}={}", value.replace("ROOT", world.path().to_str().unwrap()));
        let found = judged(&world, check, &["--set", &set(broken)]).await;
        assert_eq!(found["verdict"], "broken", "control: {setting}: {found}");
        assert!(found["fix"].as_str().unwrap().contains(setting), "{setting} is not in {found}");
        let mended = judged(&world, check, &["--set", &set(works)]).await;
        assert_eq!(mended["verdict"], "ok", "{setting}: {mended}");
    }
}

/// The proxy reads the address at its start.
#[tokio::test]
async fn an_advised_address_reaches_the_upstream() {
    const NOBODY: &str = "http://127.0.0.1:9";
    let upstream = bench::upstream::ScriptedUpstream::start().await.unwrap();
    let right = upstream.base_url();
    let mut world = World::in_front_of(upstream, NOBODY, "").await;
    let found = judged(&world, "upstream", &[]).await;
    assert_eq!(found["verdict"], "broken", "control: {found}");
    let fix = found["fix"].as_str().unwrap();
    assert!(fix.contains("set upstream.base_url and restart the proxy"), "{fix}");
    world.reconfigure(NOBODY, &right);
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let mended = judged(&world, "upstream", &[]).await;
    assert_eq!(mended["verdict"], "ok", "{mended}");
}

/// Returns a registry's entry with one more line.
fn entry(line: &str) -> String {
    format!(
        "[agents.'a:b']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\n{line}\n"
    )
}

async fn run(world: &World) -> Outcome {
    world.sluice().run(&["run", "--agent", "a:b", "q"]).await
}

/// Returns what `sluice agents check` says of the agent, after a run of it has failed.
async fn fault(world: &World) -> String {
    let failed = run(world).await;
    assert_ne!(failed.code, Some(0), "control: {failed:?}");
    let checked = world.sluice().run(&["agents", "check"]).await;
    let fault = checked.stdout.lines().find(|line| line.starts_with("cannot run  a:b: "));
    fault.unwrap_or_else(|| panic!("{checked:?}")).to_owned()
}

#[tokio::test]
async fn an_advised_model_answers() {
    let model = "model = 'no-such-model'";
    let world = World::with(&entry(model)).await;
    let fault = fault(&world).await;
    let (_, offered) = fault.split_once("or set `model` to one of ").unwrap();
    let name = offered.split([',', ' ']).next().unwrap();
    world.reconfigure(model, &format!("model = '{name}'"));
    let answered = run(&world).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
}

#[tokio::test]
async fn an_advised_volume_lets_an_agent_run() {
    let volume = format!("sw-advised-{:032x}", random::bits());
    let world =
        World::with(&entry(&format!("volumes = [{{ volume = '{volume}', container_path = '/data' }}]")))
            .await;
    let fault = fault(&world).await;
    let commands = quoted(&fault, "docker");
    assert_eq!(commands, [format!("docker volume create {volume}")], "{fault}");
    docker(&commands[0].split(' ').skip(1).collect::<Vec<_>>()).await;
    let answered = run(&world).await;
    docker(&["volume", "rm", &volume]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
}

/// `docker build` or `docker tag` brings an image as well as the advised pull. No registry is here.
#[tokio::test]
async fn an_advised_image_lets_an_agent_run() {
    let image = format!("sw-advised-{:032x}:1", random::bits());
    let world = World::with(&entry("").replace("sluicegate/sandbox-runtime:latest", &image)).await;
    let fault = fault(&world).await;
    assert_eq!(quoted(&fault, "docker"), [format!("docker pull {image}")], "{fault}");
    docker(&["tag", "sluicegate/sandbox-runtime:latest", &image]).await;
    let answered = run(&world).await;
    docker(&["rmi", &image]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
}
