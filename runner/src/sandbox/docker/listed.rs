//! Containers as Docker tells of them, whoever made them; and removing one of them, that very one.

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
    id::InstallationId,
    name::{label, path},
};

use super::{Docker, Error, is_gone, is_not_found, refused};

/// A container that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// What it is, for good: names may be given anew.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) name: String,
    /// Everything that is written on it.
    pub(crate) labels: HashMap<String, String>,
    /// When it was made.
    pub(crate) created: SystemTime,
    /// What it has mounted: where on the host it lies, and where it is in the container.
    pub(crate) mounts: Vec<(PathBuf, String)>,
}

/// What became of a container that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is gone now.
    Done,
    /// Somebody else had removed it.
    GoneBefore,
    /// It is no longer what it was, and stays.
    Changed,
}

impl Listed {
    /// The installation it says it belongs to.
    pub(crate) fn installation(&self) -> Option<&str> {
        self.label(label::INSTALLATION)
    }

    /// The run it says it belongs to.
    pub(crate) fn run(&self) -> Option<&str> {
        self.label(label::RUN_ID)
    }

    /// The gateway it says it is.
    pub(crate) fn gateway(&self) -> Option<&str> {
        self.label(label::GATEWAY)
    }

    /// Whether it says that it was made to wait for a run.
    pub(crate) fn is_spare(&self) -> bool {
        self.label(label::MOULD).is_some()
    }

    /// The epoch of its run it says it was made in; 0 for one from before epochs were written on containers.
    pub(crate) fn epoch(&self) -> u64 {
        self.label(label::EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or_default()
    }

    /// Name of the directory it has its run's socket from.
    pub(crate) fn socket_dir(&self) -> Option<&str> {
        let (source, _) = self.mounts.iter().find(|(_, target)| target == path::SOCKET_DIR)?;
        source.file_name()?.to_str()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

impl From<ContainerSummary> for Listed {
    fn from(summary: ContainerSummary) -> Self {
        let name = summary.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
        let since = u64::try_from(summary.created.unwrap_or_default()).unwrap_or_default();
        let mounts = summary.mounts.unwrap_or_default().into_iter();
        Self {
            id: summary.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            labels: summary.labels.unwrap_or_default(),
            created: SystemTime::UNIX_EPOCH + Duration::from_secs(since),
            mounts: mounts
                .map(|mount| (mount.source.unwrap_or_default().into(), mount.destination.unwrap_or_default()))
                .collect(),
        }
    }
}

impl Docker {
    /// All containers on this Docker, also those that are none of ours: they may use what is.
    pub(crate) async fn containers(&self) -> Result<Vec<Listed>, Error> {
        let options = ListContainersOptionsBuilder::new().all(true).build();
        let listed = self.0.list_containers(Some(options)).await.map_err(refused("list", "every"))?;
        Ok(listed.into_iter().map(Listed::from).collect())
    }

    /// Names of the containers of `installation` that run and were made to wait for a run, whatever became of them.
    pub(crate) async fn running_spares(&self, installation: &InstallationId) -> Result<Vec<String>, Error> {
        let labels = vec![format!("{}={installation}", label::INSTALLATION), label::MOULD.to_owned()];
        let filters =
            HashMap::from([("label".to_owned(), labels), ("status".to_owned(), vec!["running".to_owned()])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = self.0.list_containers(Some(options)).await.map_err(refused("list", "every waiting"))?;
        Ok(listed.into_iter().map(|summary| Listed::from(summary).name).collect())
    }

    /// Removes `found`, running or not, if it still is what it was when it was found.
    pub(crate) async fn remove_listed(&self, found: &Listed) -> Result<Removal, Error> {
        let now = match self.0.inspect_container(&found.id, None::<InspectContainerOptions>).await {
            Ok(now) => now,
            Err(error) if is_not_found(&error) => return Ok(Removal::GoneBefore),
            Err(source) => return Err(refused("inspect", &found.name)(source)),
        };
        let name = now.name.unwrap_or_default();
        let labels = now.config.and_then(|config| config.labels).unwrap_or_default();
        let same = now.id.as_deref() == Some(found.id.as_str());
        if !same || name.trim_start_matches('/') != found.name || labels != found.labels {
            return Ok(Removal::Changed);
        }
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.0.remove_container(&found.id, Some(options)).await {
            Err(source) if !is_gone(&source) => Err(refused("remove", &found.name)(source)),
            _ => Ok(Removal::Done),
        }
    }
}
