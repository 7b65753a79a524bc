//! Reads the settings of sandboxes on this host: Docker, workspaces and directories.

use std::path::PathBuf;

use platform_core::{
    id::InstallationId,
    limit::{self, ByteSize},
};

use crate::config::{Section, settings, written_as_word};

/// Least size of a workspace. Its file system itself uses some 5 MiB.
pub(super) const MIN_FILE_SYSTEM: ByteSize = ByteSize::mib(16);
/// Fewest files that any workspace may hold.
const MIN_FILES: u64 = 64;
/// Least space that a file uses in a workspace.
const BLOCK_SIZE: u64 = 4096;

settings! {
    /// `[sandbox]`
    #[derive(Debug, Clone)]
    pub struct Sandbox read from section {
        /// Docker's API socket.
        pub docker_socket: PathBuf => or("/var/run/docker.sock".into()),
        /// Directory of the runs' workspaces.
        pub workspace_dir: PathBuf = section
            .field("workspace_dir", "Directory of the runs' workspaces: one of its own, which only `sluice` can enter.")
            .or("/var/lib/sluicegate/workspaces".into()),
        /// Directory of the control plane's state on this host: `host-id`, by which a store knows the host it serves.
        /// Each host has its own; a copy of it would be taken for the same host.
        pub state_dir: PathBuf => or("/var/lib/sluicegate/runner".into()),
        /// Directory of the gateways that `sluice gateway up` runs: configurations, tokens, sockets. Only `sluice` can
        /// enter it, and it is short: a socket's path has at most 107 bytes.
        pub gateway_dir: PathBuf => or("/var/lib/sluicegate/gateways".into()),
        /// Form of workspaces.
        pub workspaces: WorkspaceForm = section
            .field(
                "workspaces",
                "Form of a workspace: `image`, a file system of its own in a sparse file, which cannot grow beyond its size and is removed at once; `directory`, which is watched, and its run ended when it is too large; `auto`, an image where this host allows it.",
            )
            .or(WorkspaceForm::Auto),
        /// Size of a run's workspace.
        pub workspace_size: ByteSize => at_least(&MIN_FILE_SYSTEM).or(limit::sandbox::WORKSPACE),
        /// Files and directories in a workspace; one for each 8 KiB of its size if absent.
        pub max_workspace_files: Option<u64> => optional(),
        /// No run begins that could leave less than this on the disk of workspaces.
        pub disk_reserve: ByteSize => may_be_zero().or(limit::sandbox::DISK_RESERVE),
        /// Space of all workspaces together that are kept after their runs; beyond it the oldest are removed.
        pub kept_workspaces_size: ByteSize => or(limit::sandbox::KEPT_WORKSPACES),
        /// Name of this installation; containers of another are never touched.
        pub installation: InstallationId => or(default_installation()),
    }
}

/// Form of a workspace on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceForm {
    /// An image where the host supports it, else a directory.
    Auto,
    /// Its own file system, in a file.
    Image,
    /// A directory: its size is watched while its run is active.
    Directory,
}

written_as_word!(WorkspaceForm { Auto: "auto", Image: "image", Directory: "directory" });

/// Bounds of a workspace's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceBounds {
    /// Size of its file system, or of all its files.
    pub size: ByteSize,
    /// Most files, links and directories.
    pub files: u64,
}

impl WorkspaceBounds {
    /// Returns bounds of this `size`, with the number of files in the same proportion.
    #[must_use]
    pub fn sized(self, size: ByteSize) -> Self {
        let in_proportion = u128::from(self.files) * u128::from(size.0) / u128::from(self.size.0.max(1));
        let files = u64::try_from(in_proportion).unwrap_or(u64::MAX).max(MIN_FILES);
        Self { size, files }
    }
}

impl Sandbox {
    /// Returns the bounds of workspaces of `size`, or of the size that all have.
    #[must_use]
    pub fn workspace_bounds(&self, size: Option<ByteSize>) -> WorkspaceBounds {
        let in_proportion = self.workspace_size.0 / limit::sandbox::WORKSPACE_PER_FILE.0;
        let files = self.max_workspace_files.unwrap_or(in_proportion);
        let bounds = WorkspaceBounds { size: self.workspace_size, files };
        size.map_or(bounds, |size| bounds.sized(size))
    }

    pub(super) fn section(section: &Section<'_>) -> Self {
        let settings = Self::read(section);
        let most = settings.workspace_size.0 / BLOCK_SIZE;
        if settings.max_workspace_files.is_some_and(|files| !(MIN_FILES..=most).contains(&files)) {
            let size = settings.workspace_size;
            section.reject(
                "max_workspace_files",
                format!(
                    "expected {MIN_FILES} to {most}: a file takes at least 4 KiB of the {size} in a workspace"
                ),
            );
        }
        settings
    }
}

fn default_installation() -> InstallationId {
    InstallationId::parse("default").expect("it follows its own rule")
}
