//! spec describes a mirror's container as data.

use std::collections::BTreeMap;

use platform_core::{
    id::{InstallationId, RepoName},
    limit::{self, ByteSize},
    name::{git_sync, label},
};
use runner_docker::{Limits, MirrorSpec};

use crate::{
    entry::RepoEntry,
    error::Error,
    names::{container, state_volume, tree_volume},
    token_file::{self, TokenPlace},
};

/// Limits of a container. Git works with two threads.
const LIMITS: Limits =
    Limits { memory: ByteSize::mib(1024), pids: 128, milli_cpu: 1000, output: limit::sandbox::OUTPUT };

/// Returns the labels of a repository's container and volumes.
pub(crate) fn labels(installation: &InstallationId, name: &RepoName) -> BTreeMap<&'static str, String> {
    [(label::INSTALLATION, installation.to_string()), (label::REPOSITORY, name.to_string())].into()
}

/// Returns the settings of a repository's container; `image` is the id of its image.
pub(crate) fn spec(
    installation: &InstallationId,
    name: &RepoName,
    entry: &RepoEntry,
    image: String,
) -> Result<MirrorSpec, Error> {
    let mut environment = BTreeMap::from([
        (git_sync::REPO, entry.url.to_string()),
        (git_sync::REF, entry.branch.to_string()),
        (git_sync::DEPTH, entry.depth.to_string()),
        (git_sync::PERIOD, format!("{}ms", entry.period.0)),
    ]);
    let credential = entry.token_file.as_deref().map(token_file::locate).transpose()?;
    let credential_dir = credential.map(|TokenPlace { dir, name }| {
        environment.insert(git_sync::PASSWORD_FILE, format!("{}/{name}", git_sync::CREDENTIAL_DIR));
        dir
    });
    Ok(MirrorSpec {
        name: container(installation, name.as_str()),
        image,
        labels: labels(installation, name),
        environment,
        tree_volume: tree_volume(installation, name),
        state_volume: state_volume(installation, name),
        credential_dir,
        limits: LIMITS,
    })
}
