//! Looking at Docker from outside, with its own client.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use platform_core::name::label;
use tokio::process::{Child, Command};

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

/// Somebody who writes down every start of a container, by Docker's own account: that itself forgets them soon.
#[derive(Debug)]
pub struct Starts {
    file: PathBuf,
    _follower: Child,
}

impl Starts {
    /// Follows those of an installation, and writes them to `file`.
    ///
    /// # Panics
    /// If Docker does not tell.
    pub async fn follow(installation: &str, file: &Path) -> Self {
        let now = docker(&["info", "--format", "{{.SystemTime}}"]).await;
        let of = format!("label={}={installation}", label::INSTALLATION);
        let format = format!("{{{{index .Actor.Attributes {:?}}}}}", label::RUN_ID);
        let follower = Command::new("docker")
            .args([
                "events",
                "--since",
                &now,
                "--filter",
                &of,
                "--filter",
                "event=start",
                "--format",
                &format,
            ])
            .stdin(Stdio::null())
            .stdout(File::create(file).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { file: file.to_owned(), _follower: follower }
    }

    /// How often containers were started until now, by run.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn by_run(&self) -> BTreeMap<String, usize> {
        let mut starts = BTreeMap::new();
        for run in fs::read_to_string(&self.file).unwrap().lines() {
            *starts.entry(run.to_owned()).or_default() += 1;
        }
        starts
    }

    /// How often a run's were.
    #[must_use]
    pub fn of(&self, run: &str) -> usize {
        self.by_run().get(run).copied().unwrap_or_default()
    }
}

/// Names of all volumes of an installation.
pub async fn volumes_of(installation: &str) -> Vec<String> {
    let filter = format!("label={}={installation}", label::INSTALLATION);
    let names = docker(&["volume", "ls", "--quiet", "--filter", &filter]).await;
    names.lines().map(str::to_owned).collect()
}

/// Removes all containers of an installation, as well as that goes: for a test that has failed already.
pub(crate) fn remove_containers_of(installation: &str) {
    let list = format!("docker ps --all --quiet --filter label={}={installation}", label::INSTALLATION);
    let script = format!("{list} | xargs --no-run-if-empty docker rm --force --volumes");
    std::process::Command::new("sh").args(["-c", &script]).output().ok();
}
