//! Where sandboxes run.

use std::path::PathBuf;

use platform_core::id::InstallationId;

use crate::config::Section;

/// `[sandbox]`
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Docker's API socket.
    pub docker_socket: PathBuf,
    /// Workspaces of runs.
    pub workspace_dir: PathBuf,
    /// Tells this installation's containers from another's on the same Docker.
    pub installation: InstallationId,
}

impl Sandbox {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            docker_socket: field("docker_socket", "Docker's API socket.").or("/var/run/docker.sock".into()),
            workspace_dir: field("workspace_dir", "Directory of the runs' workspaces.")
                .or("/var/lib/sluicegate/workspaces".into()),
            installation: field(
                "installation",
                "Name of this installation; containers of another are never touched.",
            )
            .or(default_installation()),
        }
    }
}

fn default_installation() -> InstallationId {
    InstallationId::parse("default").expect("it follows its own rule")
}
