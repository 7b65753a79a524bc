//! Tests the data plane in an empty image: `services/proxy-image`, which `make test-image` builds.

use std::{fs, os::unix::fs::chown, path::Path};

use harness::{
    Agent, World,
    docker::{docker, proxy_image},
    eventually, private_file,
};
use tokio::process::Command;

/// Uid of the image's user.
const USER: u32 = 65532;

/// Makes a directory that belongs to the image's user.
fn theirs(path: &Path) -> String {
    fs::create_dir_all(path).unwrap();
    chown(path, Some(USER), Some(USER)).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn the_image_is_one_file_and_serves_a_run() {
    let image = proxy_image().await;
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let dir = |name: &str| world.path().join(name);
    let (etc, state, sockets) = (theirs(&dir("etc")), theirs(&dir("image-state")), theirs(&dir("llm-sock")));
    private_file(&dir("etc/key"), harness::CANARY_KEY);
    chown(dir("etc/key"), Some(USER), Some(USER)).unwrap();
    let config = format!(
        "[upstream]\nbase_url = '{}'\nkey_file = '/etc/sluicegate/key'\n[proxy]\nthreads = 1\n\
         [runs.run-1]\naccount = 'acct-1'\nsocket = '/llm-sock/llm.sock'\npeer_uid = 0\n",
        world.upstream.base_url()
    );
    fs::write(dir("etc/sluice.toml"), config).unwrap();
    let mounts = [
        format!("{etc}:/etc/sluicegate:ro"),
        format!("{state}:/var/lib/sluicegate/proxy"),
        format!("{sockets}:/llm-sock"),
    ];
    let label = format!("sluicegate.installation={}", world.installation());
    let tmpfs = format!("/run/sluicegate:uid={USER},mode=0755");
    let mut arguments =
        vec!["run", "--detach", "--network", "host", "--read-only", "--cap-drop", "ALL", "--label", &label];
    arguments.extend(["--security-opt", "no-new-privileges", "--tmpfs", &tmpfs]);
    arguments.extend(mounts.iter().flat_map(|mount| ["--volume", mount.as_str()]));
    arguments.push(&image);
    let container = docker(&arguments).await;

    let agent = Agent::on(&dir("llm-sock/llm.sock"));
    let connect = || async { agent.connect().await.map(drop) };
    if eventually("it serves", connect, Result::is_ok).await.is_ok() {
        let answer = agent.chat("fake").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(world.upstream.ledger().last().unwrap().header("x-cogni-run-id"), ["run-1"]);
    docker(&["stop", "--time", "30", &container]).await;
    assert_eq!(docker(&["inspect", "--format", "{{.State.ExitCode}}", &container]).await, "0");
    docker(&["rm", &container]).await;
    assert!(!dir("llm-sock/llm.sock").exists(), "it took its socket with it");
    assert_eq!(contents(&image).await, ["sluice-proxy"]);
    assert_eq!(docker(&["inspect", "--format", "{{.Config.User}}", &image]).await, "65532:65532");
    let checked = docker(&["run", "--rm", "--volume", &mounts[0], &image, "--check"]).await;
    assert_eq!(checked, "the configuration is valid");
}

/// Returns the files of all layers.
async fn contents(image: &str) -> Vec<String> {
    let script = "dir=$(mktemp -d) && trap 'rm -rf \"$dir\"' EXIT && docker save \"$1\" | tar -x -C \"$dir\" && \
                  find \"$dir\" -name layer.tar -exec tar -tf {} \\;";
    let output = Command::new("sh").args(["-c", script, "sh", image]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}
