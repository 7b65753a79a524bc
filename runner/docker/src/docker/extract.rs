//! Runs a program on a workspace that it can only read, and takes its stdout as bytes.
//!
//! The workspace is hostile, and so is whatever the program prints. Docker logs nothing of it: the bytes are taken
//! while the container runs, or the extraction fails and is repeated as a whole.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, SeekFrom},
    path::PathBuf,
    time::Duration,
};

use bollard::{
    Docker as Client,
    container::LogOutput,
    errors::Error as ClientError,
    models::{ContainerCreateBody, HostConfig, HostConfigLogConfig},
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
        StartContainerOptions, WaitContainerOptionsBuilder,
    },
};
use futures_util::{Stream, StreamExt};
use platform_core::{
    limit::ByteSize,
    name::{SANDBOX_UID, label, path},
};
use platform_runtime::report;
use tokio::{
    fs::File as AsyncFile,
    io::{AsyncSeekExt, AsyncWriteExt},
    time::{sleep, timeout},
};

use super::{
    Docker, Error, RETRY_DELAY,
    container::inspect_end,
    is_conflict, is_not_found, refused,
    request::{Access, bind, hardened},
};
use crate::{Capture, Limits, Program};

/// Longest silence in the output of an ended container, if Docker does not report the end of that output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of stderr that are kept.
const MAX_DETAIL: ByteSize = ByteSize::kib(4);
/// Most attempts to create a container while one of its name is being removed.
const MAX_CREATIONS: usize = 10;
/// Labels by which a container is known as a leftover of an earlier extraction.
const OWNER_LABELS: [&str; 2] = [label::INSTALLATION, label::RUN_ID];

/// End of the name of a container that takes something out of a workspace, behind the name of the run's own container.
pub const EXTRACTION_SUFFIX: &str = ".bundle";

/// Request for the output of a program on a workspace.
#[derive(Debug, Clone)]
pub struct ExtractSpec {
    /// Name of the container, which nothing but extractions of the same run uses.
    pub name: String,
    /// Id of its image, which must be on the host: nothing is pulled.
    pub image: String,
    /// Labels that find the container again.
    pub labels: BTreeMap<&'static str, String>,
    /// Program that prints the bytes, instead of the image's entrypoint.
    pub program: Program,
    /// Host directory that is mounted as `/workspace`, and cannot be written to.
    pub workspace: PathBuf,
    /// Limits of its memory, processes, processor time, and of the bytes on stdout.
    pub limits: Limits,
    /// Longest time that the program may take, the start of its container included.
    pub timeout: Duration,
}

/// End of an extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractEnd {
    /// The program ended with this exit code, and all of its output was taken.
    Exited(i64),
    /// A process was killed for lack of memory.
    OutOfMemory,
    /// The program printed more than it may, and was killed.
    TooLarge,
    /// The program took too long, and was killed.
    TimedOut,
}

/// Result of an extraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// End of the program.
    pub end: ExtractEnd,
    /// Number of bytes that were taken.
    pub bytes: u64,
    /// Beginning and end of stderr: text from a hostile side. Bytes that are not UTF-8 are replaced.
    pub detail: String,
}

impl Docker {
    /// Runs the program of `spec`, and replaces the content of `output` by its stdout. The bytes are complete only if
    /// the program [exited](ExtractEnd::Exited).
    ///
    /// May be called again after an error: a container that an earlier call left is removed first. A dropped future
    /// leaves its container to the next call, or to [`Self::remove`].
    ///
    /// # Errors
    /// A transient one if Docker became unavailable in the middle: the output cannot be read again.
    pub async fn extract(&self, spec: &ExtractSpec, output: File) -> Result<Extracted, Error> {
        let id = self.create_extraction(spec).await?;
        let extracted = run(&self.0, &id, spec, output).await;
        // By its id: a later call may have created another one of this name.
        if let Err(error) = self.remove(&id).await {
            let error = report::chain(&error);
            tracing::warn!(container = spec.name, error, "container not removed; left for gc");
        }
        extracted
    }

    async fn create_extraction(&self, spec: &ExtractSpec) -> Result<String, Error> {
        let mut attempts = 1..=MAX_CREATIONS;
        loop {
            let attempt = attempts.next();
            let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
            match self.0.create_container(Some(options), body(spec)).await {
                Ok(created) => return Ok(created.id),
                Err(error) if is_conflict(&error) && attempt.is_some() => {
                    self.remove_leftover(spec, error).await?;
                }
                Err(error) if is_not_found(&error) => {
                    return Err(Error::ImageGone { id: spec.image.clone() });
                }
                Err(source) => return Err(refused("create", &spec.name)(source)),
            }
        }
    }

    /// Removes the container of an earlier extraction. A foreign one stays: then the `conflict` is the error.
    async fn remove_leftover(&self, spec: &ExtractSpec, conflict: ClientError) -> Result<(), Error> {
        let found = match self.0.inspect_container(&spec.name, None::<InspectContainerOptions>).await {
            Ok(found) => found,
            Err(error) if is_not_found(&error) => return Ok(()),
            Err(source) => return Err(refused("inspect", &spec.name)(source)),
        };
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        let is_same = |key: &str| spec.labels.get(key).is_some_and(|own| labels.get(key) == Some(own));
        match found.id {
            Some(id) if OWNER_LABELS.into_iter().all(is_same) => {
                self.remove(&id).await?;
                // Another process may be removing it, too.
                sleep(RETRY_DELAY).await;
                Ok(())
            }
            _ => Err(refused("create", &spec.name)(conflict)),
        }
    }
}

/// Starts the container, and takes its output until it ends or must be killed.
async fn run(docker: &Client, id: &str, spec: &ExtractSpec, output: File) -> Result<Extracted, Error> {
    let failed = |source| Error::Output { container: spec.name.clone(), source };
    let mut taken = TakenOutput::new(output, spec.limits.output).await.map_err(failed)?;
    let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
    let attached = docker.attach_container(id, Some(options)).await;
    let pieces = attached.map_err(refused("attach to", &spec.name))?.output;
    let taking = async {
        match timeout(spec.timeout, taken.until_exit(pieces, exit_code(docker, id))).await {
            Err(_elapsed) => Ok(ExtractEnd::TimedOut),
            Ok(Ok(end)) => Ok(end),
            Ok(Err(Failed::Docker(source))) => Err(refused("read the output of", &spec.name)(source)),
            Ok(Err(Failed::File(source))) => Err(failed(source)),
        }
    };
    let starting = async {
        let started = docker.start_container(id, None::<StartContainerOptions>).await;
        started.map_err(refused("start", &spec.name))
    };
    // The wait for the end begins before the start. Else Docker could restart in between, and the end would not show
    // that the output was taken to its own.
    let end = tokio::try_join!(taking, starting)?.0;
    let end = match end {
        ExtractEnd::Exited(1..) if is_oom_killed(docker, id, spec).await? => ExtractEnd::OutOfMemory,
        other => other,
    };
    taken.file.flush().await.map_err(failed)?;
    Ok(Extracted { end, bytes: taken.bytes, detail: taken.detail.finish().text() })
}

/// Failure while output is taken.
#[derive(Debug)]
enum Failed {
    Docker(ClientError),
    File(io::Error),
}

/// Output that was taken so far.
#[derive(Debug)]
struct TakenOutput {
    file: AsyncFile,
    bytes: u64,
    max_bytes: ByteSize,
    detail: Capture,
}

impl TakenOutput {
    /// Empties `file`.
    async fn new(file: File, max_bytes: ByteSize) -> io::Result<Self> {
        let mut file = AsyncFile::from_std(file);
        file.set_len(0).await?;
        file.seek(SeekFrom::Start(0)).await?;
        Ok(Self { file, bytes: 0, max_bytes, detail: Capture::new(MAX_DETAIL) })
    }

    /// Takes `pieces` to their end, which is that of the container.
    async fn until_exit(
        &mut self,
        pieces: impl Stream<Item = Result<LogOutput, ClientError>>,
        exit_code: impl Future<Output = Result<i64, ClientError>>,
    ) -> Result<ExtractEnd, Failed> {
        tokio::pin!(pieces, exit_code);
        let mut code = None;
        loop {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                ended = &mut exit_code, if code.is_none() => {
                    code = Some(ended.map_err(Failed::Docker)?);
                    continue;
                }
                () = sleep(OUTPUT_TIMEOUT), if code.is_some() => return Err(cut_off()),
            };
            match piece {
                None => break,
                Some(Ok(LogOutput::StdOut { message })) => {
                    if self.bytes + message.len() as u64 > self.max_bytes.0 {
                        return Ok(ExtractEnd::TooLarge);
                    }
                    self.file.write_all(&message).await.map_err(Failed::File)?;
                    self.bytes += message.len() as u64;
                }
                Some(Ok(LogOutput::StdErr { message })) => self.detail.push(&message),
                // The client makes this of a piece that broke off.
                Some(Ok(LogOutput::Console { .. } | LogOutput::StdIn { .. })) => return Err(cut_off()),
                Some(Err(error)) => return Err(Failed::Docker(error)),
            }
            // Endless output is always ready: without this, the timeout would never be polled.
            tokio::task::yield_now().await;
        }
        let code = match code {
            Some(code) => code,
            None => exit_code.await.map_err(Failed::Docker)?,
        };
        Ok(ExtractEnd::Exited(code))
    }
}

/// Returns the failure of an output that did not come to its end.
const fn cut_off() -> Failed {
    Failed::Docker(ClientError::RequestTimeoutError)
}

/// Waits for the end of a container that is about to start. An answer shows that Docker ran all the time since.
async fn exit_code(docker: &Client, id: &str) -> Result<i64, ClientError> {
    let options = WaitContainerOptionsBuilder::new().condition("next-exit").build();
    match docker.wait_container(id, Some(options)).next().await {
        Some(Ok(ended)) => Ok(ended.status_code),
        // Docker reports any exit code but 0 as an error.
        Some(Err(ClientError::DockerContainerWaitError { code, .. })) => Ok(code),
        Some(Err(error)) => Err(error),
        None => Err(ClientError::RequestTimeoutError),
    }
}

async fn is_oom_killed(docker: &Client, id: &str, spec: &ExtractSpec) -> Result<bool, Error> {
    let state = inspect_end(docker, id).await.map_err(refused("inspect", &spec.name))?;
    Ok(state.oom_killed.unwrap_or(false))
}

fn body(spec: &ExtractSpec) -> ContainerCreateBody {
    let Program { argv, environment, working_directory } = &spec.program;
    let owned = |(key, value): (&&'static str, &String)| ((*key).to_owned(), value.clone());
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: Some(argv.clone()),
        env: Some(environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        working_dir: Some(working_directory.clone()),
        labels: Some(spec.labels.iter().map(owned).collect()),
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        host_config: Some(HostConfig {
            mounts: Some(vec![bind(&spec.workspace, path::WORKSPACE, Access::ReadOnly)]),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..hardened(spec.limits)
        }),
        ..ContainerCreateBody::default()
    }
}
