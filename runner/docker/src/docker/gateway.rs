//! Handles containers of gateways: created once, restarted by Docker, ended by `sluice gateway`. They belong to no run.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    time::Duration,
};

use bollard::{
    models::{
        ContainerCreateBody, ContainerInspectResponse, HostConfig, RestartPolicy, RestartPolicyNameEnum,
    },
    query_parameters::{
        CreateContainerOptionsBuilder, InspectContainerOptions, LogsOptionsBuilder, StartContainerOptions,
        StopContainerOptionsBuilder,
    },
};
use futures_util::TryStreamExt;
use platform_core::name::SANDBOX_UID;
use platform_runtime::settings::Volume;

use super::{
    Docker, Error, is_gone, is_not_found, isolation, refused,
    request::{Access, bind, hardened, volume},
};
use crate::Limits;

/// Time beyond a gateway's drain that Docker may take to stop it.
const STOP_GRACE: Duration = Duration::from_secs(60);

/// Request for a gateway's container.
#[derive(Debug)]
pub struct GatewaySpec {
    /// Name of the container.
    pub name: String,
    /// Id of its image.
    pub image: String,
    /// Labels that find the container again, and name the setup that it was created from.
    pub labels: BTreeMap<&'static str, String>,
    /// Command that its first process starts.
    pub command: Vec<String>,
    /// Environment variables, set in addition to the image's.
    pub environment: BTreeMap<&'static str, String>,
    /// Host directories that it only reads, each with its path in the container.
    pub reads: [(PathBuf, &'static str); 2],
    /// Host directories that it writes to, each with its path in the container.
    pub writes: [(PathBuf, &'static str); 2],
    /// Volumes of its agents, which must exist: none is created.
    pub volumes: Vec<Volume>,
    /// Limits of its memory, processes, processor time and kept output.
    pub limits: Limits,
    /// Longest time that it has for ending its sessions.
    pub drain: Duration,
}

/// A gateway's container that exists.
#[derive(Debug)]
pub struct GatewayContainer {
    /// True if Docker reports that it runs.
    pub is_running: bool,
    /// Labels that it was created with.
    pub labels: HashMap<String, String>,
    /// Networks it is attached to; there should be none.
    pub networks: Vec<String>,
    now: ContainerInspectResponse,
}

impl GatewayContainer {
    /// Returns Docker's names of the settings in which it differs from `spec`.
    pub fn differences(&self, spec: &GatewaySpec) -> Vec<String> {
        isolation::differences(&body(spec), &self.now)
    }
}

impl Docker {
    /// Returns the container called `name`, if there is one.
    pub async fn gateway(&self, name: &str) -> Result<Option<GatewayContainer>, Error> {
        match self.0.inspect_container(name, None::<InspectContainerOptions>).await {
            Ok(now) => Ok(Some(GatewayContainer {
                is_running: now.state.as_ref().and_then(|state| state.running).unwrap_or(false),
                labels: now.config.as_ref().and_then(|config| config.labels.clone()).unwrap_or_default(),
                networks: isolation::networks(&now),
                now,
            })),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(refused("inspect", name)(source)),
        }
    }

    /// Creates a container and starts it. No container of its name may exist, and its volumes must.
    pub async fn start_gateway(&self, spec: &GatewaySpec) -> Result<(), Error> {
        self.volumes(&spec.volumes).await?;
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let created = self.0.create_container(Some(options), body(spec)).await;
        created.map_err(refused("create", &spec.name))?;
        self.resume_gateway(&spec.name).await
    }

    /// Starts the container called `name` again, unchanged.
    pub async fn resume_gateway(&self, name: &str) -> Result<(), Error> {
        let started = self.0.start_container(name, None::<StartContainerOptions>).await;
        started.map_err(refused("start", name))
    }

    /// Stops the container called `name`, waiting at most `drain` for its end, and removes it. A missing one
    /// is removed already.
    pub async fn end_gateway(&self, name: &str, drain: Duration) -> Result<(), Error> {
        let seconds = i32::try_from(drain.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        let client = self.0.clone().with_timeout(drain + STOP_GRACE);
        match client.stop_container(name, Some(options)).await {
            Err(source) if !is_gone(&source) => Err(refused("stop", name)(source)),
            _ => self.remove(name).await,
        }
    }

    /// Returns the last lines that the container called `name` has printed.
    pub async fn tail(&self, name: &str, lines: u32) -> Result<String, Error> {
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).tail(&lines.to_string()).build();
        let pieces: Vec<_> = self
            .0
            .logs(name, Some(options))
            .try_collect()
            .await
            .map_err(refused("read the output of", name))?;
        Ok(pieces
            .into_iter()
            .map(|piece| String::from_utf8_lossy(&piece.into_bytes()).into_owned())
            .collect())
    }
}

fn body(spec: &GatewaySpec) -> ContainerCreateBody {
    let owned = |(key, value): (&&'static str, &String)| ((*key).to_owned(), value.clone());
    let reads = spec.reads.iter().map(|(source, target)| bind(source, target, Access::ReadOnly));
    let writes = spec.writes.iter().map(|(source, target)| bind(source, target, Access::ReadWrite));
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        // A killed gateway left a lease in its state. Only a gateway with the same host name takes it over at once.
        hostname: Some("gateway".to_owned()),
        cmd: Some(spec.command.clone()),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(spec.labels.iter().map(owned).collect()),
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        // OpenClaw reads `.env` in its working directory. At `/` no file can be created.
        working_dir: Some("/".to_owned()),
        stop_timeout: Some(i64::try_from(spec.drain.as_secs()).unwrap_or(i64::MAX)),
        host_config: Some(HostConfig {
            mounts: Some(reads.chain(writes).chain(spec.volumes.iter().map(volume)).collect()),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
                maximum_retry_count: None,
            }),
            ..hardened(spec.limits)
        }),
        ..ContainerCreateBody::default()
    }
}
