//! Starts a Docker daemon of the test's own. The test may kill, suspend and start it again, because no other test uses
//! it.
//!
//! It has no network. Its containers' shims are not its children and outlive it, as they do in production. A guard
//! shell waits for the end of the test process, and then ends the daemon and its containers.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{
    docker::{SOCKET, docker},
    eventually::eventually,
};

/// Script that ends everything that a daemon in `$1` has left. It checks each container's id before it kills for it.
const GUARD: &str = r#"
    cat > /dev/null
    case "$1" in /tmp/sd-?*) ;; *) exit 1 ;; esac
    end() { grep -xE '[1-9][0-9]+' | sort -u | xargs -r kill -9; }
    cat "$1/pid" | end
    for id in $(ls "$1/data/containers" | grep -xE '[0-9a-f]{64}'); do
        find /sys/fs/cgroup -path "*/$id/cgroup.procs" -exec cat {} + | end
        find /sys/fs/cgroup -depth -type d -path "*/$id" -exec rmdir {} +
    done
    pgrep -f -- "containerd-shim.* -address $1/exec/containerd/" | end
    cut -d ' ' -f 2 /proc/mounts | grep "^$1/" | sort -r | xargs -r -n 1 umount --lazy
    rm -rf "$1"
"#;

/// Behaviour of containers while their daemon is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containers {
    /// Containers go on (`--live-restore`).
    GoOn,
    /// Containers end.
    End,
}

/// A daemon. Its containers end with it when it is dropped.
#[derive(Debug)]
pub struct Dockerd {
    daemon: Option<Child>,
    dir: PathBuf,
    guard: Child,
}

impl Dockerd {
    /// Starts a daemon that has the sandbox's image.
    ///
    /// # Panics
    /// If it does not start; it needs root.
    pub async fn start(containers: Containers) -> Self {
        let dockerd = Self::empty(containers).await;
        let copy = format!(
            "docker -H unix://{SOCKET} save sluicegate/sandbox-runtime:latest | docker -H {} load",
            dockerd.host()
        );
        let copied = tokio::process::Command::new("sh").args(["-c", &copy]).output().await.unwrap();
        assert!(copied.status.success(), "{copied:?}");
        dockerd
    }

    /// Starts a daemon without any image.
    ///
    /// # Panics
    /// If it does not start; it needs root.
    pub async fn empty(containers: Containers) -> Self {
        // The guard removes the directory. Its name is short, because containerd creates sockets below it.
        let dir = tempfile::Builder::new().prefix("sd-").tempdir_in("/tmp").unwrap().keep();
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A test that hangs is killed with its process group; the guard must survive that.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut dockerd = Self { daemon: None, dir, guard };
        dockerd.again(containers).await;
        dockerd
    }

    /// Starts it again.
    ///
    /// # Panics
    /// If it runs, or does not start.
    pub async fn again(&mut self, containers: Containers) {
        assert!(self.daemon.is_none(), "it runs");
        let log = File::options().create(true).append(true).open(self.dir.join("log")).unwrap();
        // It has its own network namespace: without a bridge it would remove that of another daemon.
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "dockerd"]);
        for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(option).arg(self.dir.join(name));
        }
        command.args(["--host", &self.host(), "--bridge=none", "--iptables=false", "--ip-forward=false"]);
        if containers == Containers::GoOn {
            command.arg("--live-restore");
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        self.daemon = Some(command.spawn().expect("dockerd is needed: run `make setup`"));
        let host = self.host();
        let answers = || async {
            let output = tokio::process::Command::new("docker").args(["-H", &host, "version"]).output().await;
            output.unwrap().status.success()
        };
        eventually("the daemon answers", answers, |answers| *answers).await;
    }

    /// Ends it with `signal`, `KILL` as a failing machine or `TERM` as a service manager. Returns when it is gone.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut daemon = self.daemon.take().unwrap();
        let gone = || std::future::ready(daemon.try_wait().unwrap().is_some());
        eventually("the daemon ends", gone, |gone| *gone).await;
        // Its containerd dies a moment later, and leaves a file that prevents the next start.
        let file = self.dir.join("exec/containerd/containerd.pid");
        let pid = fs::read_to_string(&file).ok().and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
        let gone = || std::future::ready(pid.is_none_or(|pid| test_kill_process(pid).is_err()));
        eventually("containerd ends", gone, |gone| *gone).await;
        for name in ["exec/containerd/containerd.pid", "pid"] {
            fs::remove_file(self.dir.join(name)).ok();
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal(&self, signal: Signal) {
        let pid = self.daemon.as_ref().expect("it runs").id();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    }

    /// Returns the path of its API socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("docker.sock")
    }

    /// Runs `docker` with `arguments` on it, and returns what it printed.
    ///
    /// # Panics
    /// If it fails.
    pub async fn docker(&self, arguments: &[&str]) -> String {
        docker(&[&["-H", self.host().as_str()], arguments].concat()).await
    }

    /// Returns the names of all its containers, running or not.
    pub async fn containers(&self) -> Vec<String> {
        let names = self.docker(&["ps", "--all", "--format", "{{.Names}}"]).await;
        names.lines().map(str::to_owned).collect()
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
        if let Some(daemon) = &mut self.daemon {
            daemon.wait().ok();
        }
    }
}
