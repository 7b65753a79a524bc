//! Lists containers as Docker reports them, including foreign ones, and removes a listed one if it is unchanged.

use std::{
    collections::HashMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use bollard::{
    models::ContainerSummary,
    query_parameters::{
        InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    },
};
use platform_core::{
    id::{InstallationId, WorkspaceId},
    name::{label, path},
};

use super::{Docker, Error, extract::EXTRACTION_SUFFIX, is_gone, is_not_found, refused};

/// A container that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Id of the container, which never changes: a name may be given to another one.
    pub id: String,
    /// Name of the container.
    pub name: String,
    /// All labels.
    pub labels: HashMap<String, String>,
    /// Time of creation.
    pub created: SystemTime,
    /// Mounts: the path on the host, and the path in the container.
    pub mounts: Vec<(PathBuf, String)>,
}

/// Result of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The container is removed now.
    Done,
    /// Another process had removed it.
    GoneBefore,
    /// The container has changed since, and stays.
    Changed,
}

impl Listed {
    /// Returns the installation named on its label.
    pub fn installation(&self) -> Option<&str> {
        self.label(label::INSTALLATION)
    }

    /// Returns the run named on its label.
    pub fn run(&self) -> Option<&str> {
        self.label(label::RUN_ID)
    }

    /// Returns the gateway named on its label.
    pub fn gateway(&self) -> Option<&str> {
        self.label(label::GATEWAY)
    }

    /// Returns the mirrored repository named on its label.
    pub fn repository(&self) -> Option<&str> {
        self.label(label::REPOSITORY)
    }

    /// Returns the server of tools named on its label.
    pub fn tool_server(&self) -> Option<&str> {
        self.label(label::TOOL_SERVER)
    }

    /// Returns the process named on its label, which created it and ends it.
    pub fn owner(&self) -> Option<&str> {
        self.label(label::OWNER)
    }

    /// Returns whether its labels say that it was created to wait for a run.
    pub fn is_warm(&self) -> bool {
        self.label(label::TEMPLATE).is_some()
    }

    /// Returns whether it takes something out of a workspace, and so has no socket.
    pub fn is_extraction(&self) -> bool {
        self.name.ends_with(EXTRACTION_SUFFIX)
    }

    /// Returns the epoch of its run on its label; 0 if it is older than that label.
    pub fn epoch(&self) -> u64 {
        self.label(label::EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or_default()
    }

    /// Returns the name of the directory that its run's socket is mounted from.
    pub fn socket_dir(&self) -> Option<&str> {
        let (source, _) = self.mounts.iter().find(|(_, target)| target == path::SOCKET_DIR)?;
        source.file_name()?.to_str()
    }

    /// Returns whether it has workspace `id` or a part of it mounted. Only paths of a workspace contain its id.
    pub fn mounts_part_of(&self, id: &WorkspaceId) -> bool {
        self.mounts.iter().any(|(source, _)| source.iter().any(|part| part == id.as_str()))
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

impl From<ContainerSummary> for Listed {
    fn from(summary: ContainerSummary) -> Self {
        let name = summary.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
        let created_seconds = u64::try_from(summary.created.unwrap_or_default()).unwrap_or_default();
        let mounts = summary.mounts.unwrap_or_default().into_iter();
        Self {
            id: summary.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            labels: summary.labels.unwrap_or_default(),
            created: SystemTime::UNIX_EPOCH + Duration::from_secs(created_seconds),
            mounts: mounts
                .map(|mount| (mount.source.unwrap_or_default().into(), mount.destination.unwrap_or_default()))
                .collect(),
        }
    }
}

impl Docker {
    /// Returns all containers on this Docker, foreign ones too: they may use our resources.
    pub async fn containers(&self) -> Result<Vec<Listed>, Error> {
        let options = ListContainersOptionsBuilder::new().all(true).build();
        let listed = self.0.list_containers(Some(options)).await.map_err(refused("list", "every"))?;
        Ok(listed.into_iter().map(Listed::from).collect())
    }

    /// Returns the names of the running containers of `installation` that were created to wait for a run, whether or
    /// not they still wait.
    pub async fn running_warm_containers(&self, installation: &InstallationId) -> Result<Vec<String>, Error> {
        let labels = vec![format!("{}={installation}", label::INSTALLATION), label::TEMPLATE.to_owned()];
        let filters =
            HashMap::from([("label".to_owned(), labels), ("status".to_owned(), vec!["running".to_owned()])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = self.0.list_containers(Some(options)).await.map_err(refused("list", "every waiting"))?;
        Ok(listed.into_iter().map(|summary| Listed::from(summary).name).collect())
    }

    /// Removes `found`, running or not, if it has not changed since it was listed.
    pub async fn remove_listed(&self, found: &Listed) -> Result<Removal, Error> {
        let now = match self.0.inspect_container(&found.id, None::<InspectContainerOptions>).await {
            Ok(now) => now,
            Err(error) if is_not_found(&error) => return Ok(Removal::GoneBefore),
            Err(source) => return Err(refused("inspect", &found.name)(source)),
        };
        let name = now.name.unwrap_or_default();
        let labels = now.config.and_then(|config| config.labels).unwrap_or_default();
        let is_same_id = now.id.as_deref() == Some(found.id.as_str());
        if !is_same_id || name.trim_start_matches('/') != found.name || labels != found.labels {
            return Ok(Removal::Changed);
        }
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.0.remove_container(&found.id, Some(options)).await {
            Err(source) if !is_gone(&source) => Err(refused("remove", &found.name)(source)),
            _ => Ok(Removal::Done),
        }
    }
}
