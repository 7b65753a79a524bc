//! Handles a container that exists: starts it, reads its output, waits for it, stops it.
//!
//! The process that created the container is attached to it from before its start. A process that finds it, after its
//! own restart or Docker's, reads the output that Docker kept. The end of a connection is not an end of output: after
//! the container's own end, Docker's log says how much there was.
//!
//! A Docker that is killed beside running containers loses output in two cases. A container ends while it is away: the end
//! is lost. A line is unfinished at the kill: its beginning is lost. Such an output counts as one that may be short.

use std::{cell::Cell, time::Duration};

use bollard::{
    Docker as Client,
    errors::Error as ClientError,
    models::ContainerState,
    query_parameters::{
        AttachContainerOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder,
        LogsOptionsBuilder, StartContainerOptions, StopContainerOptionsBuilder, WaitContainerOptions,
    },
};
use futures_util::StreamExt;
use platform_core::{limit::ByteSize, name::init::OUT_OF_MEMORY};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Error, RETRY_DELAY, is_gone, is_not_found, is_unavailable,
    log_repair::LogRepair,
    output::{LogLength, Output},
    refused, retry_read,
};
use crate::{ContainerExit, KilledBy, OnOutput, OutputState};

/// Longest silence in the output of an ended container, and longest time between the end of its output and Docker's
/// report of its end. After that, Docker's log is read.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);
/// Exit code of a program that SIGKILL ended.
const KILLED: i64 = 137;
/// Longest time between Docker's report of an end and its report that memory was the cause: the two come from different
/// sources (containerd#12372).
const OOM_REPORT_DELAY: Duration = Duration::from_secs(3);
/// Time in seconds that an agent has to end after the stop signal.
const STOP_GRACE_S: i32 = 2;

/// A container. It exists until [`super::Docker::remove`].
#[derive(Debug)]
pub struct Container {
    docker: Client,
    /// Id of the container: its name may later belong to another container.
    id: String,
    output: Output,
    /// True once a start was attempted.
    start_attempted: Cell<bool>,
}

/// Result of a wait for a container's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Docker reported the end, and ran all the time.
    Ended,
    /// The connection to Docker ended.
    Interrupted,
}

/// Result of a search for a container by name.
#[derive(Debug)]
pub enum FoundContainer {
    /// The container does not exist.
    Nothing,
    /// A container with an agent that never started.
    Fresh,
    /// A container with an agent that runs.
    Running(Container),
    /// A container with an agent that has ended.
    Ended(Container),
}

impl Container {
    /// Attaches to the container with this id, which has printed nothing yet. At most `capture_limit` of each output is
    /// captured.
    pub(super) async fn attach(
        docker: &Client,
        id: String,
        name: &str,
        capture_limit: ByteSize,
    ) -> Result<Self, Error> {
        let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        let attached = docker.attach_container(&id, Some(options)).await;
        let output = Output::new(attached.map_err(refused("attach to", name))?.output, capture_limit);
        Ok(Self { docker: docker.clone(), id, output, start_attempted: Cell::new(false) })
    }

    /// Attaches to a warm container called `name`; `None` if it does not exist or does not run.
    pub(super) async fn find_waiting(
        docker: &Client,
        name: &str,
        capture_limit: ByteSize,
    ) -> Result<Option<Self>, Error> {
        match inspect(docker, name).await {
            Ok((id, state)) if state.running.unwrap_or(false) => {
                match Self::attach(docker, id, name, capture_limit).await {
                    Err(Error::Refused { source, .. }) if is_gone(&source) => Ok(None),
                    attached => attached.map(Some),
                }
            }
            Ok(_) => Ok(None),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(refused("inspect", name)(error)),
        }
    }

    /// Finds the container called `name`. Its output is read from the beginning of Docker's log.
    pub(super) async fn find(
        docker: &Client,
        name: &str,
        capture_limit: ByteSize,
    ) -> Result<FoundContainer, Error> {
        let (id, state) = match inspect(docker, name).await {
            Ok(found) => found,
            Err(error) if is_not_found(&error) => return Ok(FoundContainer::Nothing),
            Err(error) => return Err(refused("inspect", name)(error)),
        };
        if !was_started(&state) {
            return Ok(FoundContainer::Fresh);
        }
        let output = Output::new(logs(docker, &id), capture_limit);
        let container = Self { docker: docker.clone(), id, output, start_attempted: Cell::new(true) };
        Ok(if is_running(&state) {
            FoundContainer::Running(container)
        } else {
            FoundContainer::Ended(container)
        })
    }

    /// Skips this many bytes of stdout and stderr: an earlier worker has passed them on.
    pub const fn skip_output(&mut self, stdout: u64, stderr: u64) {
        self.output.skip(stdout, stderr);
    }

    /// Starts the agent. May be called again if Docker was unavailable: an agent that was started is not started
    /// again, not even if it has ended meanwhile.
    pub async fn start(&self) -> Result<(), Error> {
        if self.start_attempted.replace(true) && was_started(&self.inspect().await?) {
            return Ok(());
        }
        let started = self.docker.start_container(&self.id, None::<StartContainerOptions>).await;
        started.map_err(refused("start", &self.id))
    }

    /// Passes its output on as it comes, until the container has ended. Cancel safe: what was read is kept.
    pub async fn until_exit(&mut self, on_output: OnOutput<'_>) -> Result<(), Error> {
        self.follow(on_output).await?;
        let kept = retry_read(async || length(logs(&self.docker, &self.id)).await).await;
        if !self.output.reaches(kept.map_err(refused("read the log of", &self.id))?) {
            self.output.restart_from(logs(&self.docker, &self.id));
            self.output.read_rest(on_output, OUTPUT_GRACE).await;
        }
        Ok(())
    }

    /// Passes its output on as it comes, as long as connections to Docker have any, until the container has ended.
    async fn follow(&mut self, on_output: OnOutput<'_>) -> Result<(), Error> {
        while self.wait(on_output).await? == Waited::Interrupted {
            if !is_running(&self.inspect().await?) {
                // Docker does not read what is left in the pipes of a container that ended without it.
                self.output.mark_short();
                break;
            }
            sleep(RETRY_DELAY).await;
            self.output.restart_from(logs(&self.docker, &self.id));
        }
        self.output.read_rest(on_output, OUTPUT_GRACE).await;
        Ok(())
    }

    /// Waits for the container's end, and passes its output on meanwhile.
    async fn wait(&mut self, on_output: OnOutput<'_>) -> Result<Waited, Error> {
        let waited = wait_for_exit(&self.docker, &self.id);
        tokio::pin!(waited);
        loop {
            tokio::select! {
                waited = &mut waited => return waited,
                () = self.output.read(on_output) => {}
            }
            match timeout(OUTPUT_GRACE, &mut waited).await {
                Ok(waited) => return waited,
                // The connection alone ended.
                Err(_elapsed) => self.output.restart_from(logs(&self.docker, &self.id)),
            }
        }
    }

    /// Stops the agent, and kills it if it does not end. Returns when it has ended.
    pub async fn stop(&mut self, on_output: OnOutput<'_>) -> Result<(), Error> {
        let docker = self.docker.clone();
        let id = self.id.clone();
        let stopped = async {
            let options = StopContainerOptionsBuilder::new().t(STOP_GRACE_S).build();
            match docker.stop_container(&id, Some(options)).await {
                // The container may have ended by itself at the same moment.
                Err(source) if !is_gone(&source) => kill(&docker, &id).await,
                _ => Ok(()),
            }
        };
        tokio::try_join!(stopped, self.follow(on_output)).map(|((), ())| ())
    }

    /// Returns how the container ended; `killed_by` is the cause if it did not end by itself.
    pub async fn ended(self, killed_by: Option<KilledBy>) -> Result<ContainerExit, Error> {
        let state = match killed_by {
            None => inspect_end(&self.docker, &self.id).await.map_err(refused("inspect", &self.id))?,
            Some(_) => self.inspect().await?,
        };
        let output = if self.output.may_be_short() { OutputState::MayBeShort } else { OutputState::Whole };
        let (stdout, stderr) = self.output.finish();
        Ok(ContainerExit {
            exit_code: state.exit_code,
            oom_seen: state.oom_killed.unwrap_or(false) || stderr.ends_with_line(OUT_OF_MEMORY),
            killed_by,
            output,
            stdout,
            stderr,
        })
    }

    async fn inspect(&self) -> Result<ContainerState, Error> {
        Ok(inspect(&self.docker, &self.id).await.map_err(refused("inspect", &self.id))?.1)
    }
}

/// Returns whether the container's agent was ever started. Docker writes the year 1 for never.
fn was_started(state: &ContainerState) -> bool {
    state.started_at.as_ref().is_some_and(|at| !at.starts_with("0001-"))
}

fn is_running(state: &ContainerState) -> bool {
    state.running.unwrap_or(false) || state.paused.unwrap_or(false)
}

/// Returns id and state of a container, by name or id.
async fn inspect(docker: &Client, container: &str) -> Result<(String, ContainerState), ClientError> {
    let inspect = async || docker.inspect_container(container, None::<InspectContainerOptions>).await;
    let inspected = retry_read(inspect).await?;
    Ok((inspected.id.unwrap_or_default(), inspected.state.unwrap_or_default()))
}

/// Returns the state of a container that ended by itself. Waits for the cause of a kill until Docker knows it.
pub(super) async fn inspect_end(docker: &Client, id: &str) -> Result<ContainerState, ClientError> {
    let deadline = Instant::now() + OOM_REPORT_DELAY;
    loop {
        let (_id, state) = inspect(docker, id).await?;
        let may_change = state.exit_code == Some(KILLED) && state.oom_killed != Some(true);
        if !may_change || Instant::now() >= deadline {
            return Ok(state);
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Streams the output that Docker kept of a container, and then follows it.
fn logs(
    docker: &Client,
    id: &str,
) -> impl futures_util::Stream<Item = Result<bollard::container::LogOutput, ClientError>> + Send + use<> {
    let options = LogsOptionsBuilder::new().follow(true).stdout(true).stderr(true).build();
    let mut log = LogRepair::default();
    docker.logs(id, Some(options)).map(move |output| output.map(|output| log.repair(output)))
}

/// Returns the length of both outputs in `log`, which is that of an ended container.
async fn length(
    log: impl futures_util::Stream<Item = Result<bollard::container::LogOutput, ClientError>>,
) -> Result<LogLength, ClientError> {
    tokio::pin!(log);
    let mut length = LogLength::default();
    while let Some(output) = log.next().await {
        length.add(&output?);
        // A long log is always ready: without this, no other task would be polled.
        tokio::task::yield_now().await;
    }
    Ok(length)
}

/// Waits until the container has ended, or the connection to Docker. A wait that Docker gave up has the cause.
async fn wait_for_exit(docker: &Client, id: &str) -> Result<Waited, Error> {
    match docker.wait_container(id, None::<WaitContainerOptions>).next().await {
        // Docker's client reports any exit code but 0 as an error.
        Some(Err(ClientError::DockerContainerWaitError { error, .. })) if error.is_empty() => {
            Ok(Waited::Ended)
        }
        Some(Ok(ended)) if ended.error.is_none() => Ok(Waited::Ended),
        None | Some(Ok(_) | Err(ClientError::DockerContainerWaitError { .. })) => Ok(Waited::Interrupted),
        Some(Err(error)) if is_unavailable(&error) => Ok(Waited::Interrupted),
        Some(Err(error)) => Err(refused("wait for", id)(error)),
    }
}

async fn kill(docker: &Client, id: &str) -> Result<(), Error> {
    let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
    match docker.kill_container(id, Some(options)).await {
        Err(source) if !is_gone(&source) => Err(refused("kill", id)(source)),
        _ => Ok(()),
    }
}
