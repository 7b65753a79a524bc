//! Keeps a proxy running for `sluice up`: its own child, or a proxy that runs already.
//!
//! The child gets a cleared environment. It reads the upstream's key and the secrets of run tokens from files that this
//! process does not read.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use platform_core::{
    code::{Code, Coded},
    control::Health,
    name,
};
use platform_runtime::{
    config::Environment,
    poll::{poll, poll_until},
    report,
    retry::Backoff,
};
use runner_control_client::{self as data_plane, DataPlane};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// Longest wait for the health of a proxy before it is stopped.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time beyond `longest_stop` after which a proxy is killed.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// Longest wait for a started proxy to answer, and the interval between its health checks meanwhile.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const START_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Longest wait for the proxy of another process that started first, and the interval between its health checks.
const RIVAL_TIMEOUT: Duration = Duration::from_secs(1);
const RIVAL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// First delay before an ended proxy is started again. Short, because sandboxes wait for it; doubles with each failure.
const RESTART_DELAY: Duration = Duration::from_millis(50);
/// Longest delay between two starts.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// Interval between health checks of an adopted proxy.
const HEALTH_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time that a proxy must run for its end not to count as a failed start.
const MIN_UPTIME: Duration = Duration::from_secs(60);

/// Reason why no proxy runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The environment holds the upstream's key, which the control plane must not have.
    #[error(
        "{} is set in the environment of `sluice up`, but the control plane must not hold the upstream's key: write it to a file that only the proxy's user can read, name that file in upstream.key_file, and unset the variable",
        name::env::LITELLM_MASTER_KEY
    )]
    HoldsKey,
    /// The environment holds the secret of run tokens, where the proxy does not see it.
    #[error(
        "{} is set in the environment of `sluice up` and would not reach the proxy, whose shared listener takes tokens: write it to a file as `id:secret`, closed to other users, and name that file in proxy.token_secrets_file",
        name::env::PROXY_SHARED_SECRET
    )]
    HoldsTokenSecret,
    /// The program could not be started.
    #[error("cannot start {}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The proxy ended at its start.
    #[error("the proxy ended with {}; its own messages are above", in_words(*.0))]
    Ended(ExitStatus),
    /// The proxy did not answer.
    #[error("the proxy did not come up within {} s; its own messages are above", START_TIMEOUT.as_secs())]
    NotReady,
    /// The system could not wait for the child process.
    #[error("cannot wait for the proxy")]
    Wait(#[source] io::Error),
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code::DataPlaneUnavailable
    }
}

/// Returns the end of a process in words: `code 1`, or the signal that ended it.
fn in_words(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("code {code}"))
}

/// Command line and environment of a proxy, and the time that its stop may take.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The whole environment of the child.
    pub(crate) environment: Vec<(String, String)>,
    /// Longest time that the proxy needs to stop.
    pub(crate) longest_stop: Duration,
}

/// Proxy that serves the control socket.
#[derive(Debug)]
pub(crate) enum Proxy {
    /// Child of this process.
    Own(Child),
    /// Proxy of another process. It runs on when this process stops.
    Adopted,
}

impl Proxy {
    /// Waits until the proxy has ended, and returns the cause in words. Cancel safe.
    async fn wait_for_end(&mut self, data_plane: &DataPlane) -> Result<String, Error> {
        match self {
            Self::Own(child) => Ok(child.wait().await.map_err(Error::Wait)?.to_string()),
            Self::Adopted => {
                poll(HEALTH_POLL_INTERVAL, async || data_plane.health().await.err()).await;
                Ok("it no longer answers".to_owned())
            }
        }
    }
}

/// Returns the variables of this process's environment that a proxy may see: settings, never a secret.
pub(crate) fn child_environment(environment: &Environment) -> Result<Vec<(String, String)>, Error> {
    if environment.get(name::env::LITELLM_MASTER_KEY).is_some() {
        return Err(Error::HoldsKey);
    }
    let may_pass =
        |name: &str| name.starts_with(name::env::OVERRIDE_PREFIX) || name == name::env::LITELLM_BASE_URL;
    Ok(environment
        .iter()
        .filter(|(name, _)| may_pass(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// Returns the path of `sluice-proxy` beside this program. If it is missing, returns its name for a search of `$PATH`.
pub(crate) fn proxy_program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("sluice-proxy"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| Path::new("sluice-proxy").to_owned())
}

/// Returns the process id of another `sluice up` that has started the running proxy, if there is one.
pub(crate) async fn other_supervisor(data_plane: &DataPlane) -> Option<u32> {
    let health = timeout(HEALTH_TIMEOUT, data_plane.health()).await.ok()?.ok()?;
    supervisor_of(health.pid)
}

/// Returns the parent of the process `proxy`, if that is a `sluice` other than this process.
fn supervisor_of(proxy: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{proxy}/status")).ok()?;
    let parent: u32 = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    let program = fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    (program.trim_end() == "sluice" && parent != std::process::id()).then_some(parent)
}

/// Adopts a running proxy, or starts one and waits until it answers.
pub(crate) async fn start(plan: &Plan, data_plane: &DataPlane) -> Result<(Proxy, Health), Error> {
    if let Ok(health) = data_plane.health().await {
        return Ok((Proxy::Adopted, health));
    }
    let mut child = spawn(plan)?;
    let started =
        poll_until(Instant::now() + START_TIMEOUT, START_POLL_INTERVAL, async || match child.try_wait() {
            Ok(None) => Some(Ok(Ok(data_plane.health().await.ok()?))),
            Ok(Some(status)) => Some(Ok(Err(status))),
            Err(source) => Some(Err(Error::Wait(source))),
        });
    match started.await.transpose()? {
        Some(Ok(health)) => Ok((Proxy::Own(child), health)),
        Some(Err(status)) => {
            let health = rival_health(data_plane).await.ok_or(Error::Ended(status))?;
            Ok((Proxy::Adopted, health))
        }
        None => {
            stop(child, plan.longest_stop).await?;
            Err(Error::NotReady)
        }
    }
}

/// Waits for the proxy of another process that started faster than ours, and returns its health. Before that proxy has
/// its socket, a query finds no proxy.
async fn rival_health(data_plane: &DataPlane) -> Option<Health> {
    let answered = poll(RIVAL_POLL_INTERVAL, async || match data_plane.health().await {
        Err(data_plane::Error::NotRunning { .. }) => None,
        answer => Some(answer.ok()),
    });
    timeout(RIVAL_TIMEOUT, answered).await.ok().flatten()
}

/// Starts `proxy` again whenever it ends, until `cancel` is triggered. Then stops the proxy, if it is our child.
pub(crate) async fn watch_over(
    mut proxy: Proxy,
    plan: &Plan,
    data_plane: &DataPlane,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let mut backoff = Backoff::new(RESTART_DELAY, MAX_RESTART_DELAY);
    loop {
        let began = Instant::now();
        tokio::select! {
            () = cancel.cancelled() => break,
            cause = proxy.wait_for_end(data_plane) => tracing::warn!(how = cause?, "proxy ended; starting it again"),
        }
        if began.elapsed() > MIN_UPTIME {
            backoff.reset();
        }
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            () = backoff.wait() => {}
        }
        match start(plan, data_plane).await {
            Ok((started, health)) => {
                tracing::info!(pid = health.pid, "proxy started again");
                proxy = started;
            }
            Err(error) => {
                tracing::error!(error = report::chain(&error), "proxy not started; trying again");
            }
        }
    }
    match proxy {
        Proxy::Own(child) => {
            // A reload may have changed this time since the start of the proxy.
            let health = timeout(HEALTH_TIMEOUT, data_plane.health()).await.ok().and_then(Result::ok);
            let longest_stop = health.map(|health| Duration::from_millis(health.longest_stop_ms));
            stop(child, longest_stop.unwrap_or(plan.longest_stop)).await
        }
        Proxy::Adopted => Ok(()),
    }
}

fn spawn(plan: &Plan) -> Result<Child, Error> {
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.arguments)
        .env_clear()
        .envs(plan.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        // In its own process group: Ctrl-C reaches only this process, which stops the proxy after the runs.
        .process_group(0)
        .kill_on_drop(true);
    command.spawn().map_err(|source| Error::Spawn { program: plan.program.clone(), source })
}

/// Signals the child to stop. Kills it if it still runs after `longest_stop` and `STOP_GRACE`.
async fn stop(mut child: Child, longest_stop: Duration) -> Result<(), Error> {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(error = report::chain(&error), "proxy not signalled: it has ended already");
    }
    match timeout(longest_stop + STOP_GRACE, child.wait()).await {
        Ok(ended) => ended.map(drop).map_err(Error::Wait),
        Err(_elapsed) => {
            tracing::warn!("proxy did not stop in time; killing it");
            child.kill().await.map_err(Error::Wait)
        }
    }
}
