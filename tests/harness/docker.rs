//! Inspects Docker from outside, with its own client.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::Stdio,
};

use platform_core::name::label;
use platform_runtime::task;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    process::{Child, Command},
};

use crate::tier;

/// Socket of the machine's own daemon.
pub const SOCKET: &str = "/var/run/docker.sock";

/// Runs `docker` with `arguments` and returns what it printed.
///
/// # Panics
/// If it fails: a test without Docker is never skipped. In a test of `tests/processes`.
pub async fn docker(arguments: &[&str]) -> String {
    assert!(
        tier::may_use_docker(),
        "a test of tests/processes starts no container: move it to tests/containers"
    );
    let output = Command::new("docker").args(arguments).output().await;
    let output = output.expect("the docker client is needed: run `make setup`");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "docker {arguments:?} failed, is the daemon running (`make setup`)? {stderr}"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the reference of the data plane's image that belongs to these sources. `make test-image` builds it.
///
/// # Panics
/// If the script that names it fails.
pub async fn proxy_image() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/proxy-image/build.sh");
    let output = Command::new(script).arg("--print").env("PROFILE", "dev").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the address of this machine that containers on Docker's own network reach. Local processes reach it too.
///
/// # Panics
/// If such a container has no default route.
pub async fn host() -> IpAddr {
    let image = "sluicegate/sandbox-runtime:latest";
    let routes = docker(&["run", "--rm", "--entrypoint", "cat", image, "/proc/net/route"]).await;
    let fields = routes.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let default = fields.into_iter().find(|fields| fields[1] == "00000000").expect("it has a way out");
    Ipv4Addr::from(u32::from_str_radix(default[2], 16).unwrap().swap_bytes()).into()
}

/// Returns the names of all containers of an installation, running or not.
pub async fn containers_of(installation: &str) -> Vec<String> {
    let filter = format!("label={}={installation}", label::INSTALLATION);
    let names = docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).await;
    names.lines().map(str::to_owned).collect()
}

/// Recorder of every container start that Docker reports: Docker itself soon forgets them.
#[derive(Debug)]
pub struct Starts {
    file: PathBuf,
    _follower: Child,
}

impl Starts {
    /// Starts to record the container starts of an installation in `file`.
    ///
    /// # Panics
    /// If Docker does not answer.
    pub async fn follow(installation: &str, file: &Path) -> Self {
        let now = docker(&["info", "--format", "{{.SystemTime}}"]).await;
        let filter = format!("label={}={installation}", label::INSTALLATION);
        let format = format!("{{{{index .Actor.Attributes {:?}}}}}", label::RUN_ID);
        let follower = Command::new("docker")
            .args([
                "events",
                "--since",
                &now,
                "--filter",
                &filter,
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

    /// Returns the number of container starts so far, by run.
    ///
    /// # Panics
    /// If the file cannot be read.
    #[must_use]
    pub fn by_run(&self) -> BTreeMap<String, usize> {
        let mut starts = BTreeMap::new();
        for run in fs::read_to_string(&self.file).unwrap().lines() {
            *starts.entry(run.to_owned()).or_default() += 1;
        }
        starts
    }

    /// Returns the number of container starts of one run.
    #[must_use]
    pub fn of(&self, run: &str) -> usize {
        self.by_run().get(run).copied().unwrap_or_default()
    }
}

/// Returns the names of all volumes of an installation.
pub async fn volumes_of(installation: &str) -> Vec<String> {
    let filter = format!("label={}={installation}", label::INSTALLATION);
    let names = docker(&["volume", "ls", "--quiet", "--filter", &filter]).await;
    names.lines().map(str::to_owned).collect()
}

/// Removes all containers of an installation as far as possible, after a test that has failed.
pub fn remove_containers_of(installation: &str) {
    let by = |filter: String| format!("docker ps --all --quiet --filter {filter}");
    let (label, name) =
        (by(format!("label={}={installation}", label::INSTALLATION)), by(format!("name={installation}")));
    let volumes = format!("docker volume ls --quiet --filter label={}={installation}", label::INSTALLATION);
    let script = format!(
        "({label}; {name}) | sort -u | xargs --no-run-if-empty docker rm --force --volumes; \
         {volumes} | xargs --no-run-if-empty docker volume rm"
    );
    std::process::Command::new("sh").args(["-c", &script]).output().ok();
}

/// Relay to Docker that refuses to remove containers.
#[derive(Debug)]
pub struct RemovalRejectingDocker(PathBuf);

impl RemovalRejectingDocker {
    /// Serves its API on `socket`.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn on(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        task::spawn("Docker without removal", async move {
            while let Ok((client, _)) = listener.accept().await {
                task::spawn("client of Docker without removal", serve(client));
            }
        });
        Self(socket.to_owned())
    }

    /// Returns the path of its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.0
    }
}

async fn serve(mut client: UnixStream) -> std::io::Result<()> {
    const REFUSAL: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n\
                             content-length: 23\r\n\r\n{\"message\":\"not today\"}";
    let mut docker = UnixStream::connect("/var/run/docker.sock").await?;
    let (mut request, mut answer) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            length = client.read(&mut request) => match length? {
                0 => return Ok(()),
                length if request.starts_with(b"DELETE ") && length > 7 => client.write_all(REFUSAL).await?,
                length => docker.write_all(&request[..length]).await?,
            },
            length = docker.read(&mut answer) => match length? {
                0 => return Ok(()),
                length => client.write_all(&answer[..length]).await?,
            },
        }
    }
}
