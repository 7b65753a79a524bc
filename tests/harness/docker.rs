//! Looking at Docker from outside, with its own client.

use platform_core::name::label;
use tokio::process::Command;

/// The socket of the machine's own daemon.
pub const SOCKET: &str = "/var/run/docker.sock";

/// Runs `docker` with `arguments` and returns what it printed.
///
/// # Panics
/// If it fails, with what is missing. Never skips.
pub async fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().await;
    let output = output.expect("the docker client is needed: run `make setup`");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "docker {arguments:?} failed, is the daemon running (`make setup`)? {stderr}"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Names of all containers of an installation, running or not.
pub async fn containers_of(installation: &str) -> Vec<String> {
    let filter = format!("label={}={installation}", label::INSTALLATION);
    let names = docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).await;
    names.lines().map(str::to_owned).collect()
}

/// How often Docker has lately started a container of an installation's run, by its own account.
///
/// # Panics
/// If it does not tell.
pub async fn starts(installation: &str, run: &str) -> usize {
    let (of, run) =
        (format!("label={}={installation}", label::INSTALLATION), format!("label={}={run}", label::RUN_ID));
    let now = docker(&["info", "--format", "{{.SystemTime}}"]).await;
    let range = ["events", "--since", "10m", "--until", &now];
    let filters = ["--filter", &of, "--filter", &run, "--filter", "event=start"];
    docker(&[&range[..], &filters].concat()).await.lines().count()
}

/// Removes all containers of an installation, as well as that goes: for a test that has failed already.
pub(crate) fn remove_containers_of(installation: &str) {
    let list = format!("docker ps --all --quiet --filter label={}={installation}", label::INSTALLATION);
    let script = format!("{list} | xargs --no-run-if-empty docker rm --force --volumes");
    std::process::Command::new("sh").args(["-c", &script]).output().ok();
}
