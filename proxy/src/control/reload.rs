//! Reading the configuration again while calls go on: all of it or nothing. What can change holds for calls to come; what
//! would need another process is refused by name.

use std::{collections::BTreeSet, sync::Arc};

use platform_core::{control::Reloaded, id::RunId};
use platform_runtime::{
    config::{Mistakes, Values},
    settings::{Owner, Part, Proxy},
};
use tokio::task::JoinError;

use super::Control;
use crate::config::Config;

/// What can change while the proxy runs, by the key or what it begins with.
const CHANGES: [&str; 14] = [
    "accounts.",
    "prices.",
    "runs.",
    "upstream.key_file",
    "upstream.default_model",
    "proxy.drain",
    "proxy.header_read",
    "proxy.keep_alive",
    "proxy.control_uids",
    "proxy.extra_fields",
    "proxy.run_bodies",
    "proxy.all_bodies",
    "proxy.token_secrets_file",
    "proxy.token_skew",
];

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// What there is now is no configuration.
    #[error("nothing was changed")]
    Mistakes(#[from] Mistakes),
    /// Reading it failed in a way that is a defect.
    #[error("nothing was changed: reading the configuration failed")]
    Panicked(#[source] JoinError),
    /// It changes what cannot change.
    #[error("nothing was changed: {} needs a restart", .0.join(", "))]
    NeedsRestart(Vec<String>),
    /// It names runs that the control plane has opened.
    #[error("nothing was changed: {} is open already, and not by the configuration", names(.0))]
    Taken(Vec<RunId>),
}

fn names(runs: &[RunId]) -> String {
    runs.iter().map(|run| format!("runs.{run}")).collect::<Vec<_>>().join(", ")
}

/// Reads the configuration again and has it hold. One after the other, whoever asks.
pub(crate) async fn reload(control: &Control) -> Result<Reloaded, Error> {
    let _one_at_a_time = control.reloading.lock().await;
    let outcome = replace(control).await;
    match &outcome {
        Ok(Reloaded { changed, not_open }) => tracing::info!(?changed, ?not_open, "reloaded"),
        Err(error) => tracing::error!(error = error as &dyn std::error::Error, "not reloaded"),
    }
    outcome
}

async fn replace(control: &Control) -> Result<Reloaded, Error> {
    let before = control.config.load_full();
    let origins = Arc::clone(&control.origins);
    // A file system that hangs keeps this reload waiting, and nothing else.
    let read = tokio::task::spawn_blocking(move || origins.read()).await.map_err(Error::Panicked)?;
    let after = Arc::new(read?);
    let mut changed = differing(&before.values, &after.values);
    let fixed: Vec<_> = changed.iter().filter(|key| !begins(key, &CHANGES)).cloned().collect();
    if !fixed.is_empty() {
        return Err(Error::NeedsRestart(fixed));
    }
    let wanted = &after.settings.runs;
    let taken = control.runs.taken(wanted);
    if !taken.is_empty() {
        return Err(Error::Taken(taken));
    }
    changed.extend(by_content(&before, &after));
    let Proxy { drain, all_bodies, .. } = after.settings.proxy;
    control.snapshot.store(Arc::new(after.snapshot(Some(&control.snapshot.load()))));
    control.bodies.allow(all_bodies);
    control.runs.reconcile(after.terms());
    control.runs.accounts().configure(after.settings.accounts.clone());
    control.config.store(Arc::clone(&after));
    let not_open = control.runs.stand(&before.settings.runs, wanted, drain.duration()).await;
    Ok(Reloaded { changed, not_open })
}

/// Tries again to open what could not be opened.
pub(crate) async fn retry(control: &Control) {
    if control.runs.not_open().is_empty() {
        return;
    }
    let _one_at_a_time = control.reloading.lock().await;
    let config = control.config.load_full();
    control.runs.retry(&config.settings.runs).await;
}

/// Returns the settings of the proxy that are not the same. A section without an owner counts as the proxy's.
fn differing(before: &Values, after: &Values) -> Vec<String> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let is_ours = |key: &str| Part::of(key).is_none_or(|part| part.owner() == Owner::Proxy);
    let differs = |key: &&&String| before.get(**key) != after.get(**key) && is_ours(key);
    keys.iter().filter(differs).map(|key| (*key).clone()).collect()
}

fn begins(key: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| key.starts_with(begin))
}

/// What is not the same in the files that settings name.
fn by_content(before: &Config, after: &Config) -> Vec<String> {
    let ids = |config: &Config| config.secrets.ids().cloned().collect::<Vec<_>>();
    let key = (before.authorization != after.authorization).then_some("upstream.key_file (its content)");
    let secrets = (ids(before) != ids(after)).then_some("proxy.token_secrets_file (its content)");
    key.into_iter().chain(secrets).map(str::to_owned).collect()
}
