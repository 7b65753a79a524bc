//! Containers of gateways: made once, brought back by Docker, ended by whoever ended them. They belong to no run.

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

use super::{
    Docker, Error, is_gone, is_not_found, refused,
    request::{Access, bind, hardened},
    walls,
};
use crate::sandbox::Limits;

/// Beyond the time that a gateway is given to end.
const SLACK: Duration = Duration::from_secs(60);

/// A gateway's container.
#[derive(Debug)]
pub(crate) struct GatewaySpec {
    /// Name of the container.
    pub(crate) name: String,
    /// Id of its image.
    pub(crate) image: String,
    pub(crate) labels: BTreeMap<&'static str, String>,
    /// What its first process starts.
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<&'static str, String>,
    /// Host directories, by where they are in the container: what it only reads.
    pub(crate) reads: [(PathBuf, &'static str); 2],
    /// And what it writes to.
    pub(crate) writes: [(PathBuf, &'static str); 2],
    pub(crate) limits: Limits,
    /// How long it may take to end.
    pub(crate) drain: Duration,
}

/// A gateway's container that is there.
#[derive(Debug)]
pub(crate) struct GatewayFound {
    pub(crate) is_running: bool,
    pub(crate) labels: HashMap<String, String>,
    /// The networks it is in; it should be in none.
    pub(crate) networks: Vec<String>,
    now: ContainerInspectResponse,
}

impl GatewayFound {
    /// What of it is not as `spec` has it, in Docker's words.
    pub(crate) fn differences(&self, spec: &GatewaySpec) -> Vec<String> {
        walls::differences(&body(spec), &self.now)
    }
}

impl Docker {
    /// The container called `name`, if there is one.
    pub(crate) async fn gateway(&self, name: &str) -> Result<Option<GatewayFound>, Error> {
        match self.0.inspect_container(name, None::<InspectContainerOptions>).await {
            Ok(now) => Ok(Some(GatewayFound {
                is_running: now.state.as_ref().and_then(|state| state.running).unwrap_or(false),
                labels: now.config.as_ref().and_then(|config| config.labels.clone()).unwrap_or_default(),
                networks: walls::networks(&now),
                now,
            })),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(refused("inspect", name)(source)),
        }
    }

    /// Makes a container and starts it. There must be none of its name.
    pub(crate) async fn start_gateway(&self, spec: &GatewaySpec) -> Result<(), Error> {
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let made = self.0.create_container(Some(options), body(spec)).await;
        made.map_err(refused("create", &spec.name))?;
        self.resume_gateway(&spec.name).await
    }

    /// Starts the container called `name` again, as it is.
    pub(crate) async fn resume_gateway(&self, name: &str) -> Result<(), Error> {
        let started = self.0.start_container(name, None::<StartContainerOptions>).await;
        started.map_err(refused("start", name))
    }

    /// Tells the container called `name` to end, waits so long for that, and removes it. There may be none.
    pub(crate) async fn end_gateway(&self, name: &str, drain: Duration) -> Result<(), Error> {
        let seconds = i32::try_from(drain.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        let patient = self.0.clone().with_timeout(drain + SLACK);
        match patient.stop_container(name, Some(options)).await {
            Err(source) if !is_gone(&source) => Err(refused("stop", name)(source)),
            _ => self.remove(name).await,
        }
    }

    /// The last lines that the container called `name` has printed.
    pub(crate) async fn tail(&self, name: &str, lines: u32) -> Result<String, Error> {
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
        // What was killed left a lease in its state. It is taken over at once only by who has the same host name.
        hostname: Some("gateway".to_owned()),
        cmd: Some(spec.command.clone()),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(spec.labels.iter().map(owned).collect()),
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        // OpenClaw reads `.env` where it starts. Here nobody can put one.
        working_dir: Some("/".to_owned()),
        stop_timeout: Some(i64::try_from(spec.drain.as_secs()).unwrap_or(i64::MAX)),
        host_config: Some(HostConfig {
            mounts: Some(reads.chain(writes).collect()),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
                maximum_retry_count: None,
            }),
            ..hardened(spec.limits)
        }),
        ..ContainerCreateBody::default()
    }
}
