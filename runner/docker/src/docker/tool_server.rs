//! Handles containers of third-party servers of tools, which speak on their standard input and output. They belong to no
//! run, and Docker removes them when they end.

use std::{collections::BTreeMap, fmt, io, pin::Pin};

use bollard::{
    container::LogOutput,
    models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountTmpfsOptions, MountType},
    query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, StartContainerOptions},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use platform_core::{limit, name::SANDBOX_UID};
use platform_runtime::settings::Image;
use tokio::io::AsyncWrite;

use super::{Docker, Error, refused, request::hardened};
use crate::Limits;

/// Rights of a file system in memory that stands for a volume.
const MEMORY_MODE: i64 = 0o1777;

/// Image of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServerImage {
    /// Id of the image.
    pub id: String,
    /// Paths that the image declares as volumes. Each becomes a file system in memory: Docker would make an anonymous
    /// volume, which is on the host's disk and has no bound.
    pub volumes: Vec<String>,
}

/// Request for the container of a server.
#[derive(Debug, Clone)]
pub struct ToolServerSpec {
    /// Name of the container.
    pub name: String,
    /// Its image.
    pub image: ToolServerImage,
    /// Labels that find the container again.
    pub labels: BTreeMap<&'static str, String>,
    /// Program and arguments. No shell is involved.
    pub command: Vec<String>,
    /// Environment variables besides the image's. None is a secret.
    pub environment: BTreeMap<String, String>,
    /// Docker's network of the container; `none` for none.
    pub network: String,
    /// Limits of its memory, processes and processor time.
    pub limits: Limits,
}

/// Piece of a server's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOutput {
    /// Bytes of standard output.
    Out(Bytes),
    /// Bytes of standard error.
    Err(Bytes),
}

/// Standard streams of a server.
pub struct ServerStreams {
    /// Output as it comes, until the container ends.
    pub output: Pin<Box<dyn Stream<Item = io::Result<ServerOutput>> + Send>>,
    /// Input. Docker closes it when this process ends.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
}

impl fmt::Debug for ServerStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStreams").finish_non_exhaustive()
    }
}

impl Docker {
    /// Returns the image of a server.
    pub async fn tool_server_image(&self, image: &Image) -> Result<ToolServerImage, Error> {
        let found = self.inspect_image(image).await?;
        let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
        let id = found.id.ok_or_else(|| Error::NoImage { image: image.clone() })?;
        Ok(ToolServerImage { id, volumes })
    }

    /// Creates a container. No container of its name may exist. The caller removes it, after an error as well.
    pub async fn create_tool_server(&self, spec: &ToolServerSpec) -> Result<(), Error> {
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let created = self.0.create_container(Some(options), body(spec)).await;
        created.map(drop).map_err(refused("create", &spec.name))
    }

    /// Starts a container that was created, and attaches to it.
    pub async fn start_tool_server(&self, name: &str) -> Result<ServerStreams, Error> {
        let options = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true);
        let attached = self.0.attach_container(name, Some(options.build())).await;
        let attached = attached.map_err(refused("attach to", name))?;
        let started = self.0.start_container(name, None::<StartContainerOptions>).await;
        started.map_err(refused("start", name))?;
        let output = attached.output.map(|piece| match piece {
            Ok(LogOutput::StdErr { message }) => Ok(ServerOutput::Err(message)),
            Ok(LogOutput::StdOut { message }) => Ok(ServerOutput::Out(message)),
            // The client makes this of a piece that broke off.
            Ok(LogOutput::Console { .. } | LogOutput::StdIn { .. }) => {
                Err(io::Error::other("the output broke off"))
            }
            Err(error) => Err(io::Error::other(error)),
        });
        Ok(ServerStreams { output: Box::pin(output), input: attached.input })
    }
}

fn body(spec: &ToolServerSpec) -> ContainerCreateBody {
    let owned = |(key, value): (&&'static str, &String)| ((*key).to_owned(), value.clone());
    let hardened = hardened(spec.limits);
    let is_memory = |path: &&String| hardened.tmpfs.as_ref().is_some_and(|tmpfs| tmpfs.contains_key(*path));
    let volumes = spec.image.volumes.iter().filter(|path| !is_memory(path));
    let mounts = volumes.map(|path| in_memory(path)).collect();
    ContainerCreateBody {
        image: Some(spec.image.id.clone()),
        entrypoint: Some(spec.command.clone()),
        cmd: Some(vec![]),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(spec.labels.iter().map(owned).collect()),
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // The input ends when this process does: a server that follows the protocol ends then.
        stdin_once: Some(true),
        host_config: Some(HostConfig {
            network_mode: Some(spec.network.clone()),
            auto_remove: Some(true),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            mounts: Some(mounts),
            ..hardened
        }),
        ..ContainerCreateBody::default()
    }
}

/// Returns a file system in memory of a bound, which counts towards the container's memory. Docker allows in it neither
/// programs nor devices.
fn in_memory(path: &str) -> Mount {
    let size_bytes = i64::try_from(limit::sandbox::SMALL_TMP.0).ok();
    Mount {
        typ: Some(MountType::TMPFS),
        target: Some(path.to_owned()),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes,
            mode: Some(MEMORY_MODE),
            ..MountTmpfsOptions::default()
        }),
        ..Mount::default()
    }
}
