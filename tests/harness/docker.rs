//! Looking at Docker from outside, with its own client.

use std::path::{Path, PathBuf};

use platform_core::name::label;
use platform_runtime::task;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    process::Command,
};

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
    let by = |filter: String| format!("docker ps --all --quiet --filter {filter}");
    let (label, name) =
        (by(format!("label={}={installation}", label::INSTALLATION)), by(format!("name={installation}")));
    let script = format!("({label}; {name}) | sort -u | xargs --no-run-if-empty docker rm --force --volumes");
    std::process::Command::new("sh").args(["-c", &script]).output().ok();
}

/// Docker, but for removing containers: that it refuses.
#[derive(Debug)]
pub struct UnwillingDocker(PathBuf);

impl UnwillingDocker {
    /// Serves its API on `socket`.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn on(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        task::spawn("unwilling docker", async move {
            while let Ok((client, _)) = listener.accept().await {
                task::spawn("unwilling docker's client", serve(client));
            }
        });
        Self(socket.to_owned())
    }

    /// Where it is.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.0
    }
}

async fn serve(mut client: UnixStream) -> std::io::Result<()> {
    const REFUSAL: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n\
                             content-length: 23\r\n\r\n{\"message\":\"not today\"}";
    let mut docker = UnixStream::connect("/var/run/docker.sock").await?;
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            length = client.read(&mut asked) => match length? {
                0 => return Ok(()),
                length if asked.starts_with(b"DELETE ") && length > 7 => client.write_all(REFUSAL).await?,
                length => docker.write_all(&asked[..length]).await?,
            },
            length = docker.read(&mut answered) => match length? {
                0 => return Ok(()),
                length => client.write_all(&answered[..length]).await?,
            },
        }
    }
}
