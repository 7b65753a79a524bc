//! repos makes, inspects and removes the containers and volumes of mirrored repositories.

use std::path::Path;

use platform_core::{
    id::{InstallationId, RepoName},
    json::{self, Bounds},
    sync_report::SyncReport,
};
use platform_runtime::settings::Settings;
use runner_docker::{Docker, MirrorOutput, MirrorSpec};

use crate::{
    entry::RepoEntry,
    error::Error,
    names::{container, state_volume, tree_volume},
    registry::RepoRegistry,
    spec::{labels, spec},
};

/// Lines of a container's output that are searched for the last report.
const TAIL_LINES: u32 = 5;

/// Mirrored repositories of an installation.
#[derive(Debug)]
pub struct Repos {
    registry: RepoRegistry,
    installation: InstallationId,
    docker: Docker,
}

/// State of a mirrored repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoStatus {
    /// Entry that an operator has added.
    pub entry: RepoEntry,
    /// Volume that agents mount.
    pub volume: String,
    /// State of its container.
    pub state: RepoState,
    /// Last report; absent before the first sync of its container.
    pub last: Option<SyncReport>,
}

/// State of a mirror's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoState {
    /// The container runs.
    Up,
    /// The container does not run, or does not exist.
    Down,
}

impl RepoState {
    /// Returns the state as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// Result of checking a mirror's container.
#[derive(Debug)]
pub(crate) enum Ensured {
    /// The container runs as it should.
    Running,
    /// The container was made, or made again.
    Started(MirrorOutput),
}

impl Repos {
    /// Connects to Docker.
    ///
    /// # Errors
    /// If Docker does not answer.
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        let sandbox = &settings.sandbox;
        Ok(Self {
            registry: RepoRegistry::of(sandbox),
            installation: sandbox.installation.clone(),
            docker: Docker::connect(Path::new(&sandbox.docker_socket)).await?,
        })
    }

    /// Returns the registry of these repositories.
    #[must_use]
    pub const fn registry(&self) -> &RepoRegistry {
        &self.registry
    }

    /// Removes a repository with its container and volumes. A failed call may be repeated.
    ///
    /// # Errors
    /// [`Error::Unknown`], and if a volume is in use: then it stays.
    pub async fn remove(&self, name: &RepoName) -> Result<(), Error> {
        self.registry.get(name)?;
        let _lock = self.registry.lock().await?;
        self.docker.remove(&self.container(name)).await?;
        for volume in [tree_volume(&self.installation, name), state_volume(&self.installation, name)] {
            if let Err(error) = self.docker.remove_volume(&volume).await {
                // Readers that still have it mounted go on seeing new commits.
                self.start(name).await?;
                return Err(error.into());
            }
        }
        self.registry.remove(name)
    }

    /// Returns the state of a repository.
    ///
    /// # Errors
    /// [`Error::Unknown`], and if Docker does not answer.
    pub async fn status(&self, name: &RepoName) -> Result<RepoStatus, Error> {
        let entry = self.registry.get(name)?;
        let container = self.container(name);
        let (state, last) = match self.docker.mirror(&container).await? {
            Some(found) => {
                let tail = self.docker.tail(&container, TAIL_LINES).await?;
                let state = if found.is_running { RepoState::Up } else { RepoState::Down };
                (state, tail.lines().rev().find_map(parse_report))
            }
            None => (RepoState::Down, None),
        };
        Ok(RepoStatus { entry, volume: tree_volume(&self.installation, name), state, last })
    }

    /// Makes sure that a repository's container runs with its present settings.
    pub(crate) async fn ensure(&self, name: &RepoName) -> Result<Ensured, Error> {
        if self.is_running(name).await? {
            return Ok(Ensured::Running);
        }
        let _lock = self.registry.lock().await?;
        // Another process may have started or removed it until now.
        if self.is_running(name).await? {
            return Ok(Ensured::Running);
        }
        self.start(name).await.map(Ensured::Started)
    }

    /// Makes a repository's container anew. The caller holds the lock.
    async fn start(&self, name: &RepoName) -> Result<MirrorOutput, Error> {
        let spec = self.spec(name, &self.registry.get(name)?).await?;
        self.docker.remove(&spec.name).await?;
        let labels = labels(&self.installation, name);
        for volume in [&spec.tree_volume, &spec.state_volume] {
            self.docker.create_volume(volume, &labels).await?;
        }
        Ok(self.docker.start_mirror(&spec).await?)
    }

    /// Returns whether a repository's container runs with its present settings.
    async fn is_running(&self, name: &RepoName) -> Result<bool, Error> {
        let spec = self.spec(name, &self.registry.get(name)?).await?;
        let Some(found) = self.docker.mirror(&spec.name).await? else { return Ok(false) };
        let differences = found.differences(&spec);
        if !differences.is_empty() {
            tracing::info!(repository = %name, ?differences, "mirror is made again");
        }
        Ok(found.is_running && differences.is_empty())
    }

    pub(crate) const fn docker(&self) -> &Docker {
        &self.docker
    }

    pub(crate) fn container(&self, name: &RepoName) -> String {
        container(&self.installation, name.as_str())
    }

    /// Returns the settings of a repository's container.
    pub(crate) async fn spec(&self, name: &RepoName, entry: &RepoEntry) -> Result<MirrorSpec, Error> {
        let image = self.docker.image(&entry.image).await?;
        spec(&self.installation, name, entry, image)
    }
}

/// Returns the report in a line of a mirror's output.
pub(crate) fn parse_report(line: &str) -> Option<SyncReport> {
    json::from_str(line, Bounds::of(usize::MAX)).ok()
}
