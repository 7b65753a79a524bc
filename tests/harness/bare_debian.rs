//! The machine of a person who has nothing of Sluicegate: a Debian with its own Docker, in a container.
//!
//! Docker runs inside, so paths and mounts are those of a machine, and all of them end with the container. The network is
//! this host's, so that servers of the test and a browser here reach what runs there.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use platform_runtime::config::Environment;
use tokio::{io::AsyncWriteExt, time::timeout};

use crate::{
    docker::docker,
    eventually::{eventually, eventually_within},
};

/// A Debian without Sluicegate.
pub const IMAGE: &str = "sluicegate/sandbox-runtime:latest";
/// Longest that one script may take. It loads an image, and each run starts a container, beside other tests.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(180);
/// Programs of Docker. The image has none.
const ENGINE: [&str; 5] = ["dockerd", "containerd", "containerd-shim-runc-v2", "runc", "docker"];
/// Script that starts Docker. It has its own network namespace: without a bridge it would
/// remove that of the host's Docker.
const START: &str = "awk '$2 ~ \"^/sys\" { print $2 }' /proc/mounts | xargs -n 1 mount -o remount,bind,rw
exec unshare --net -- dockerd --bridge=none --iptables=false --ip-forward=false";
/// Options with which Docker runs inside. Not `--privileged`: that takes `CAP_SYS_RESOURCE`, which a host may lack itself.
const RIGHTS: [&str; 16] = [
    "--cap-add=ALL",
    "--cap-drop=SYS_RESOURCE",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
    "--security-opt=systempaths=unconfined",
    "--device-cgroup-rule=c *:* rwm",
    "--device-cgroup-rule=b *:* rwm",
    "--volume=/dev:/dev",
    "--volume=/var/lib/docker",
    "--network=host",
    "--user=0",
    "--init",
    "--rm",
    "--detach",
    "--entrypoint=sh",
    "--workdir=/artifacts",
];

/// Script that removes the container in `$1` once the test has ended, however it ended.
const GUARD: &str = r#"cat >/dev/null; docker rm --force --volumes "$1""#;

/// The machine. It is removed when it is dropped, with all that runs there.
#[derive(Debug)]
pub struct BareDebian {
    name: String,
    guard: Child,
}

impl BareDebian {
    /// Starts one that has the files of `artifacts`, read-only, as its working directory.
    ///
    /// # Panics
    /// If Docker does not start in it; it needs root.
    pub async fn with(artifacts: &Path) -> Self {
        let name = format!("sw-debian-{:032x}", platform_runtime::random::bits());
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A test that hangs is killed with its process group; the guard must survive that.
            .process_group(0)
            .spawn()
            .unwrap();
        let debian = Self { name, guard };
        let files = format!("--volume={}:/artifacts:ro", artifacts.display());
        let volumes: Vec<String> = engine().await.into_iter().chain([files]).collect();
        let volumes: Vec<&str> = volumes.iter().map(String::as_str).collect();
        let named = ["run", "--name", &debian.name];
        docker(&[&named, &RIGHTS[..], &volumes, &[IMAGE, "-c", START]].concat()).await;
        let answers = || async { debian.exec("docker version", "").await.0 };
        eventually("Docker answers in it", answers, |answers| *answers).await;
        debian
    }

    /// Runs a script as root, and returns all that it shows.
    ///
    /// # Panics
    /// If a command of it fails, or if it takes too long.
    pub async fn run(&self, script: &str) -> String {
        self.run_with("", script).await
    }

    /// The same with `environment`, as lines of a shell, which are not shown in a list of processes.
    ///
    /// # Panics
    /// If a command of it fails, or if it takes too long.
    pub async fn run_with(&self, environment: &str, script: &str) -> String {
        let (succeeded, said) = self.exec(script, environment).await;
        assert!(succeeded, "{script}\n--- it said\n{said}");
        said
    }

    /// Runs a script as root that has to fail, and returns all that it shows.
    ///
    /// # Panics
    /// If it succeeds, or if it takes too long.
    pub async fn fails_with(&self, environment: &str, script: &str) -> String {
        let (succeeded, said) = self.exec(script, environment).await;
        assert!(!succeeded, "{script}\n--- it said\n{said}");
        said
    }

    /// Runs a script that only looks, until it succeeds.
    ///
    /// # Panics
    /// If it never does, with what it said last.
    pub async fn run_until_it_succeeds(&self, script: &str) {
        let look = || self.exec(script, "");
        eventually_within(SCRIPT_TIMEOUT, script, look, |(succeeded, _)| *succeeded).await;
    }

    /// Starts a command on a second terminal, and waits until it says `words`. Its output goes to a file outside of all that
    /// is installed.
    ///
    /// # Panics
    /// If it does not say them.
    pub async fn starts_with(&self, environment: &str, command: &str, words: &str) {
        let detached = format!("setsid {command} </dev/null >/tmp/second-terminal 2>&1 &");
        self.run_with(environment, &detached).await;
        let said = || async { self.run("cat /tmp/second-terminal").await };
        eventually_within(SCRIPT_TIMEOUT, words, said, |said| said.contains(words)).await;
    }

    /// Returns whether a script succeeds, and what it says. Its first lines come by standard input.
    async fn exec(&self, script: &str, environment: &str) -> (bool, String) {
        let mut command = tokio::process::Command::new("docker");
        command.args(["exec", "--interactive", &self.name, "bash", "-euo", "pipefail", "-c"]);
        command.arg(format!("exec 2>&1\n. /dev/stdin\nexec </dev/null\n{script}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the docker client is needed: run `make setup`");
        let mut input = child.stdin.take().unwrap();
        input.write_all(environment.as_bytes()).await.ok();
        drop(input);
        let output = timeout(SCRIPT_TIMEOUT, child.wait_with_output()).await;
        let output = output.unwrap_or_else(|_| panic!("it hangs: {script}")).unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for BareDebian {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
    }
}

/// Returns the mounts of this host's Docker, and of the library that the image lacks.
async fn engine() -> Vec<String> {
    let path = Environment::capture().get("PATH").unwrap_or_default().to_owned() + ":/usr/sbin:/sbin";
    let find = |name: &str| {
        let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.exists());
        found.unwrap_or_else(|| panic!("{name} is needed: run `make setup`")).display().to_string()
    };
    let programs = ENGINE.map(|name| (find(name), format!("/usr/bin/{name}")));
    let needed = tokio::process::Command::new("ldd").arg(&programs[0].0).output().await.unwrap();
    let needed = String::from_utf8(needed.stdout).unwrap();
    let library = needed
        .lines()
        .find_map(|line| line.split_once(" => ").filter(|(name, _)| name.contains("devmapper")));
    let library = library.map(|(_, path)| path.split(' ').next().unwrap().to_owned());
    let mounted = programs.into_iter().chain(library.map(|path| (path.clone(), path)));
    mounted
        .map(|(from, to)| format!("--volume={}:{to}:ro", fs::canonicalize(from).unwrap().display()))
        .collect()
}
