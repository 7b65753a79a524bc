//! monitor keeps the containers of all mirrored repositories running, as long as `sluice up` runs.

use std::{collections::BTreeMap, time::Duration};

use platform_core::id::RepoName;
use platform_runtime::{report, settings::Settings};

use crate::{
    error::Error,
    registry::RepoRegistry,
    repos::{Ensured, Repos},
};

/// Interval between checks. Docker itself starts a container again that ends.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Monitors all mirrored repositories, for as long as it is polled. An error is logged when it is a new one.
pub async fn monitor(settings: &Settings) {
    let mut known = BTreeMap::<Option<RepoName>, String>::new();
    loop {
        let failures = check_all(settings).await;
        for (name, error) in &failures {
            if known.get(name) != Some(error) {
                let repository = name.as_ref().map(RepoName::as_str);
                tracing::warn!(repository, error, "repository not mirrored");
            }
        }
        known = failures;
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Returns the failures of all checks, by the repository; those of none concern all.
async fn check_all(settings: &Settings) -> BTreeMap<Option<RepoName>, String> {
    match check_each(settings).await {
        Ok(failures) => failures.into_iter().map(|(name, error)| (Some(name), error)).collect(),
        Err(error) => [(None, report::chain(&error))].into(),
    }
}

async fn check_each(settings: &Settings) -> Result<BTreeMap<RepoName, String>, Error> {
    let entries = RepoRegistry::of(&settings.sandbox).list()?;
    let mut failures = BTreeMap::new();
    if entries.is_empty() {
        return Ok(failures);
    }
    let repos = Repos::open(settings).await?;
    for name in entries.into_keys() {
        match repos.ensure(&name).await {
            Ok(Ensured::Started(_)) => tracing::info!(repository = %name, "mirror started"),
            Ok(Ensured::Running) => {}
            Err(error) => drop(failures.insert(name, report::chain(&error))),
        }
    }
    Ok(failures)
}
