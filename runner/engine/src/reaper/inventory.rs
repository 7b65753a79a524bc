//! Lists the resources that exist: containers, grants and workspaces. Changes nothing.

use std::path::Path;

use platform_core::{
    control::{RunState, RunView},
    id::{RunId, SocketDirName},
};
use platform_runtime::report;
use runner_docker::{Docker, Listed};
use runner_files::{ListedStage, Stage};
use runner_store::{Resource, ResourceKind, WarmContainer};
use serde::Serialize;

use super::{
    Reaper,
    workspace_dir::{self, WorkspaceDir},
};

/// A run's grant, as the proxy reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) run_id: RunId,
    pub(super) attempt: u32,
    pub(super) state: RunState,
    /// Latest epoch that the proxy has received.
    pub(super) epoch: u64,
    /// Directory of its socket, as long as that exists.
    pub(super) socket_dir: Option<SocketDirName>,
}

impl From<RunView> for Grant {
    fn from(view: RunView) -> Self {
        Self {
            run_id: view.grant.run_id,
            attempt: view.grant.attempt,
            state: view.state,
            epoch: view.epoch,
            socket_dir: view.socket.map(|socket| socket.name),
        }
    }
}

/// A source of evidence that could not be read: nothing is decided about its resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableSource {
    /// Name of the source.
    pub part: &'static str,
    /// Error of the read.
    pub error: String,
}

impl UnreadableSource {
    pub(super) fn of(part: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { part, error: report::chain(error) }
    }
}

/// Resources found in each source; `None` for a source that could not be read.
#[derive(Debug)]
pub(super) struct Inventory {
    /// Containers with the label of this installation.
    pub(super) containers: Option<Vec<Listed>>,
    pub(super) grants: Option<Vec<Grant>>,
    pub(super) dirs: Option<Vec<WorkspaceDir>>,
    pub(super) stages: Option<Vec<ListedStage>>,
}

impl Inventory {
    pub(super) async fn list(reaper: &Reaper, unreadable: &mut Vec<UnreadableSource>) -> Self {
        let containers = list_containers(&reaper.sandbox.docker_socket).await;
        let grants = reaper.data_plane.runs().await;
        let dirs = match &containers {
            Ok(containers) => {
                workspace_dir::list(&reaper.sandbox.workspace_dir).map(|dirs| with_users(dirs, containers))
            }
            // Without Docker the users of a workspace are unknown.
            Err(_) => Ok(Vec::new()),
        };
        let docker_answered = containers.is_ok();
        let is_own = |found: &Listed| found.installation() == Some(reaper.sandbox.installation.as_str());
        let containers = containers.map(|all| all.into_iter().filter(is_own).collect());
        let containers =
            containers.map_err(|error| unreadable.push(UnreadableSource::of("docker", &error))).ok();
        let grants = grants.map_err(|error| unreadable.push(UnreadableSource::of("proxy", &error))).ok();
        let dirs = dirs.map_err(|error| unreadable.push(UnreadableSource::of("workspaces", &error))).ok();
        let stages = Stage::list(&runner_files::stages_dir(&reaper.sandbox.workspace_dir));
        let stages = stages.map_err(|error| unreadable.push(UnreadableSource::of("files", &error))).ok();
        Self {
            containers,
            stages,
            grants: grants.map(|views| views.into_iter().map(Grant::from).collect()),
            dirs: dirs.filter(|_| docker_answered),
        }
    }

    /// Returns whether the container or the workspace of a warm container was found.
    pub(super) fn has_part_of(&self, WarmContainer { container, workspace, .. }: &WarmContainer) -> bool {
        let mut containers = self.containers.iter().flatten();
        let mut dirs = self.dirs.iter().flatten();
        containers.any(|found| found.name == *container) || dirs.any(|dir| dir.id == *workspace)
    }

    /// Returns whether the resource is missing in a source that could be read.
    pub(super) fn is_missing(&self, row: &Resource) -> bool {
        match row.kind {
            ResourceKind::Container => {
                let containers = self.containers.as_ref();
                containers.is_some_and(|all| all.iter().all(|found| found.name != row.name))
            }
            // A listener exists as long as its grant.
            ResourceKind::Grant | ResourceKind::Listener => {
                let grants = self.grants.as_ref();
                grants.is_some_and(|all| all.iter().all(|grant| grant.run_id.as_str() != row.run_id))
            }
            ResourceKind::Workspace => {
                let dirs = self.dirs.as_ref();
                dirs.is_some_and(|all| all.iter().all(|dir| dir.id.as_str() != row.name))
            }
            ResourceKind::Files => {
                let stages = self.stages.as_ref();
                stages.is_some_and(|all| all.iter().all(|dir| dir.run_id.as_str() != row.name))
            }
            // Nothing creates volumes yet.
            ResourceKind::Volume => false,
            // The rest of a turn at a gateway can make no call: the grant has its own row.
            ResourceKind::Session | ResourceKind::Turn => true,
        }
    }
}

/// Lists the containers of all installations.
pub(super) async fn list_containers(socket: &Path) -> Result<Vec<Listed>, runner_docker::Error> {
    Docker::connect(socket).await?.containers().await
}

/// Returns `dirs` with the containers that mount them, or a part of them.
pub(super) fn with_users(mut dirs: Vec<WorkspaceDir>, containers: &[Listed]) -> Vec<WorkspaceDir> {
    for dir in &mut dirs {
        let users = containers.iter().filter(|found| found.mounts_part_of(&dir.id));
        dir.users = users.map(|found| found.name.clone()).collect();
    }
    dirs
}
