//! Handles containers that mirror a repository into a volume. They belong to no run, and Docker starts them again.
//!
//! Such a container is on Docker's own network, because it fetches. In all else it is confined as a sandbox is.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::PathBuf,
    pin::Pin,
};

use bollard::{
    container::LogOutput,
    errors::Error as ClientError,
    models::{
        ContainerCreateBody, ContainerInspectResponse, HostConfig, Mount, MountType, RestartPolicy,
        RestartPolicyNameEnum, VolumeCreateRequest,
    },
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
        KillContainerOptionsBuilder, RemoveVolumeOptions,
    },
};
use futures_util::{Stream, StreamExt as _};
use platform_core::name::{SANDBOX_UID, git_sync};

use super::{
    Docker, Error, is_conflict, is_not_found, isolation, refused,
    request::{Access, bind, hardened},
};
use crate::Limits;

/// Network on which the container reaches the repository's server.
const NETWORK: &str = "bridge";
/// Options of the directory in memory in which git finds the token: a script in it is executed.
const ASKPASS_OPTIONS: &str = "rw,exec,nosuid,nodev,mode=0700,size=1m";
/// Longest line that is kept of a container's output.
const MAX_LINE: usize = 64 << 10;

/// Request for a container that mirrors a repository.
#[derive(Debug, Clone)]
pub struct MirrorSpec {
    /// Name of the container.
    pub name: String,
    /// Id of its image.
    pub image: String,
    /// Labels that find the container again.
    pub labels: BTreeMap<&'static str, String>,
    /// Environment variables. None is a secret.
    pub environment: BTreeMap<&'static str, String>,
    /// Volume that readers mount.
    pub tree_volume: String,
    /// Volume of the program's own files.
    pub state_volume: String,
    /// Host directory with the token, which the container only reads.
    pub credential_dir: Option<PathBuf>,
    /// Limits of its memory, processes, processor time and kept output.
    pub limits: Limits,
}

/// A mirror's container that exists.
#[derive(Debug)]
pub struct MirrorContainer {
    /// True if Docker reports that it runs.
    pub is_running: bool,
    /// Labels that it was created with.
    pub labels: HashMap<String, String>,
    now: ContainerInspectResponse,
}

impl MirrorContainer {
    /// Returns Docker's names of the settings in which it differs from `spec`.
    pub fn differences(&self, spec: &MirrorSpec) -> Vec<String> {
        let wanted = body(spec);
        let actual = self.now.config.as_ref().and_then(|config| config.env.as_ref());
        // Docker adds the image's own variables.
        let lacks = |variable: &String| !actual.is_some_and(|env| env.contains(variable));
        let environment = wanted.env.iter().flatten().any(lacks).then(|| "Env".to_owned());
        isolation::differences(&wanted, &self.now).into_iter().chain(environment).collect()
    }
}

/// Output of a container from now on, line by line.
pub struct MirrorOutput {
    pieces: Pin<Box<dyn Stream<Item = Result<LogOutput, ClientError>> + Send>>,
    container: String,
    pending: Vec<u8>,
}

impl fmt::Debug for MirrorOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MirrorOutput").field("container", &self.container).finish_non_exhaustive()
    }
}

impl MirrorOutput {
    /// Returns the next line of the standard output, without its end. `None` if the container has ended.
    ///
    /// # Errors
    /// If Docker becomes unavailable.
    pub async fn line(&mut self) -> Result<Option<String>, Error> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.pending.len() > MAX_LINE {
                self.pending.clear();
            }
            match self.pieces.next().await {
                None => return Ok(None),
                Some(Ok(LogOutput::StdOut { message })) => self.pending.extend_from_slice(&message),
                Some(Ok(_)) => {}
                Some(Err(source)) => return Err(refused("follow", &self.container)(source)),
            }
        }
    }
}

impl Docker {
    /// Creates a volume, or finds the one that an earlier attempt created.
    pub async fn create_volume(
        &self,
        volume: &str,
        labels: &BTreeMap<&'static str, String>,
    ) -> Result<(), Error> {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let request = VolumeCreateRequest {
            name: Some(volume.to_owned()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        self.0.create_volume(request).await.map(drop).map_err(refused("create the volume of", volume))
    }

    /// Removes a volume. A missing one is not an error.
    ///
    /// # Errors
    /// [`Error::VolumeInUse`], and if Docker refuses.
    pub async fn remove_volume(&self, volume: &str) -> Result<(), Error> {
        match self.0.remove_volume(volume, None::<RemoveVolumeOptions>).await {
            Err(error) if is_conflict(&error) => Err(Error::VolumeInUse { volume: volume.to_owned() }),
            Err(error) if !is_not_found(&error) => Err(refused("remove the volume of", volume)(error)),
            _ => Ok(()),
        }
    }

    /// Returns the container called `name`, if there is one.
    pub async fn mirror(&self, name: &str) -> Result<Option<MirrorContainer>, Error> {
        match self.0.inspect_container(name, None::<InspectContainerOptions>).await {
            Ok(now) => Ok(Some(MirrorContainer {
                is_running: now.state.as_ref().and_then(|state| state.running).unwrap_or(false),
                labels: now.config.as_ref().and_then(|config| config.labels.clone()).unwrap_or_default(),
                now,
            })),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(refused("inspect", name)(source)),
        }
    }

    /// Creates a container and starts it; returns its output from the beginning. No container of its name may exist.
    /// Its volumes must exist.
    pub async fn start_mirror(&self, spec: &MirrorSpec) -> Result<MirrorOutput, Error> {
        for volume in [&spec.tree_volume, &spec.state_volume] {
            self.volume(volume).await?;
        }
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let created = self.0.create_container(Some(options), body(spec)).await;
        created.map_err(refused("create", &spec.name))?;
        let output = self.mirror_output(&spec.name).await?;
        self.resume_gateway(&spec.name).await?;
        Ok(output)
    }

    /// Returns the output of the container called `name` from now on. Docker subscribes before it answers, so no later
    /// line is missed.
    pub async fn mirror_output(&self, name: &str) -> Result<MirrorOutput, Error> {
        let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).build();
        let attached = self.0.attach_container(name, Some(options)).await;
        let pieces = attached.map_err(refused("attach to", name))?.output;
        Ok(MirrorOutput { pieces, container: name.to_owned(), pending: Vec::new() })
    }

    /// Sends SIGHUP to the container called `name`.
    pub async fn hang_up(&self, name: &str) -> Result<(), Error> {
        let options = KillContainerOptionsBuilder::new().signal("SIGHUP").build();
        self.0.kill_container(name, Some(options)).await.map_err(refused("signal", name))
    }
}

fn body(spec: &MirrorSpec) -> ContainerCreateBody {
    let owned = |(key, value): (&&'static str, &String)| ((*key).to_owned(), value.clone());
    let credential =
        spec.credential_dir.as_ref().map(|dir| bind(dir, git_sync::CREDENTIAL_DIR, Access::ReadOnly));
    let volumes =
        [volume(&spec.tree_volume, git_sync::ROOT_DIR), volume(&spec.state_volume, git_sync::STATE_DIR)];
    let mut host_config = hardened(spec.limits);
    let askpass = format!("{ASKPASS_OPTIONS},uid={SANDBOX_UID},gid={SANDBOX_UID}");
    host_config.tmpfs.get_or_insert_default().insert(git_sync::ASKPASS_DIR.to_owned(), askpass);
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(spec.labels.iter().map(owned).collect()),
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        working_dir: Some("/".to_owned()),
        host_config: Some(HostConfig {
            network_mode: Some(NETWORK.to_owned()),
            mounts: Some(volumes.into_iter().chain(credential).collect()),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
                maximum_retry_count: None,
            }),
            ..host_config
        }),
        ..ContainerCreateBody::default()
    }
}

/// Returns the mount of a volume. A new one takes its owner from the image's directory.
fn volume(name: &str, target: &str) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(false),
        ..Mount::default()
    }
}
