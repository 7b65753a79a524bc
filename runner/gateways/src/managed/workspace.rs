//! Opens the directories of agents, and makes those of sessions. They are on the disk of their gateway.

use std::path::Path;

use gateway_bridge::SessionKey;
use platform_core::{id::GatewayId, name::path};
use platform_runtime::{report, settings::Settings, task};
use runner_files::{AgentDirectory, Unreadable};
use runner_model::gateway_agent::session_directory;
use runner_workspace::make_agent_dir;

use crate::{GatewayConnection, GatewayPaths};

/// Opens a directory of a managed gateway that its container sees at `inside`: [`super::agent_workspace`], or that of a
/// session. Waits for the disk.
///
/// # Errors
/// [`Unreadable`], with the reason: it is missing until an agent first works there.
pub fn open_directory(
    settings: &Settings,
    gateway: &GatewayId,
    inside: &str,
) -> Result<AgentDirectory, Unreadable> {
    let paths = settings.gateways.get(gateway).map(|found| GatewayPaths::of(settings, gateway, found));
    let state = paths.ok_or(Unreadable::Missing)?.state();
    AgentDirectory::open(&state, below_state(inside))
}

/// Returns the directory of `session`, which is made if it is missing: the sessions of an agent overwrite no files of each
/// other. `None` at a gateway elsewhere, which has its own disk, and where it cannot be made.
pub async fn make_session_directory(connection: &GatewayConnection, session: &SessionKey) -> Option<String> {
    if !connection.gateway.is_managed() {
        return None;
    }
    let directory = session_directory(session.as_str());
    let state = connection.paths.state();
    let inside = directory.clone();
    let made = task::blocking(move || make_agent_dir(&state, below_state(&inside))).await;
    if let Err(error) = made {
        let gateway = &connection.id;
        tracing::warn!(%gateway, %session, error = report::chain(&error), "the session works in its agent's directory");
        return None;
    }
    Some(directory)
}

/// Returns where a directory of the container is in the directory of its gateway's state, which is its workspace.
fn below_state(inside: &str) -> &Path {
    Path::new(inside).strip_prefix(path::WORKSPACE).unwrap_or(Path::new(""))
}
