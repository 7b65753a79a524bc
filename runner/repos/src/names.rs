//! names gives containers and volumes of mirrors their names.

use platform_core::{
    id::{InstallationId, RepoName},
    name::git_sync::VOLUME_INFIX,
};

/// Returns the name of the container that mirrors a repository.
#[must_use]
pub fn container(installation: &InstallationId, name: &str) -> String {
    format!("sluice-{installation}-git-sync-{name}")
}

/// Returns the name of the volume that agents mount.
#[must_use]
pub fn tree_volume(installation: &InstallationId, name: &RepoName) -> String {
    format!("sluice-{installation}{VOLUME_INFIX}{name}")
}

/// Returns the name of the volume of `git-sync`'s own files.
pub(crate) fn state_volume(installation: &InstallationId, name: &RepoName) -> String {
    format!("sluice-{installation}-git-{name}")
}
