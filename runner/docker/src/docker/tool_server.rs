//! Handles containers of third-party servers of tools, which speak on their standard input and output. They belong to no
//! run, and Docker removes them when they end.

use std::{collections::BTreeMap, fmt, io, pin::Pin};

use bollard::{
    container::LogOutput,
    models::{ContainerCreateBody, HostConfig, HostConfigLogConfig},
    query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, StartContainerOptions},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use platform_core::name::SANDBOX_UID;
use tokio::io::AsyncWrite;

use super::{Docker, Error, refused, request::hardened};
use crate::Limits;

/// Request for the container of a server.
#[derive(Debug, Clone)]
pub struct ToolServerSpec {
    /// Name of the container.
    pub name: String,
    /// Id of its image.
    pub image: String,
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
    /// Creates a container and starts it. No container of its name may exist. After an error none remains, unless Docker
    /// is unavailable.
    pub async fn start_tool_server(&self, spec: &ToolServerSpec) -> Result<ServerStreams, Error> {
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let created = self.0.create_container(Some(options), body(spec)).await;
        created.map_err(refused("create", &spec.name))?;
        match self.attach_and_start(&spec.name).await {
            Ok(streams) => Ok(streams),
            Err(error) => {
                // The first error says more.
                drop(self.remove(&spec.name).await);
                Err(error)
            }
        }
    }

    async fn attach_and_start(&self, name: &str) -> Result<ServerStreams, Error> {
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
    ContainerCreateBody {
        image: Some(spec.image.clone()),
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
            ..hardened(spec.limits)
        }),
        ..ContainerCreateBody::default()
    }
}
