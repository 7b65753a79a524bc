//! Reads the configuration again while calls go on: all of it or nothing. Changed settings apply to later calls. A
//! change that needs a restart is refused, with the names of its settings.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use platform_core::{control::Reloaded, id::RunId};
use platform_runtime::{
    config::{ConfigErrors, Values},
    report,
    settings::{OwningProgram, Proxy, SectionName},
};
use tokio::task::JoinError;

use super::Control;
use crate::config::Config;

/// Settings that can change while the proxy runs. An entry is a key; one that ends in a dot means all keys below it.
const RELOADABLE: [&str; 19] = [
    "accounts.",
    "prices.",
    "runs.",
    "upstream.key_file",
    "upstream.key_per_run",
    "upstream.admin_key_file",
    "upstream.default_model",
    "upstream.model_info",
    "proxy.drain_timeout",
    "proxy.drain_abort_timeout",
    "proxy.header_read_timeout",
    "proxy.keep_alive_timeout",
    "proxy.client_gone_timeout",
    "proxy.control_uids",
    "proxy.extra_body_fields",
    "proxy.max_body_memory_per_run",
    "proxy.max_body_memory",
    "proxy.token_secrets_file",
    "proxy.token_leeway",
];

/// Reason that a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The configuration has mistakes.
    #[error("nothing was changed")]
    Invalid(#[from] ConfigErrors),
    /// Reading it panicked, which is a defect.
    #[error("nothing was changed: reading the configuration failed")]
    Panicked(#[source] JoinError),
    /// The change needs a restart.
    #[error("nothing was changed: {} needs a restart", .0.join(", "))]
    NeedsRestart(Vec<String>),
    /// The control plane has opened runs of these names.
    #[error("nothing was changed: {} is open already, and not by the configuration", names(.0))]
    Taken(Vec<RunId>),
}

fn names(runs: &[RunId]) -> String {
    runs.iter().map(|run| format!("runs.{run}")).collect::<Vec<_>>().join(", ")
}

/// Reads the configuration again and applies it. Concurrent reloads run one after the other.
pub(crate) async fn reload(control: &Control) -> Result<Reloaded, Error> {
    let _one_at_a_time = control.reloading.lock().await;
    let outcome = apply(control).await;
    match &outcome {
        Ok(Reloaded { changed, not_open }) => {
            let not_open = not_open.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            tracing::info!(changed = changed.join(", "), not_open, "reloaded");
        }
        Err(error) => tracing::error!(error = report::chain(error), "not reloaded"),
    }
    outcome
}

async fn apply(control: &Control) -> Result<Reloaded, Error> {
    let before = control.config.load_full();
    let config_sources = Arc::clone(&control.config_sources);
    // A file system that hangs delays this reload, and nothing else.
    let read = tokio::task::spawn_blocking(move || config_sources.read()).await.map_err(Error::Panicked)?;
    let after = Arc::new(read?);
    let changed_keys = changed_keys(&before.values, &after.values);
    let mut changed: Vec<_> = changed_keys.iter().filter(|key| is_of_the_proxy(key)).cloned().collect();
    let needs_restart: Vec<_> = changed.iter().filter(|key| !is_among(key, &RELOADABLE)).cloned().collect();
    if !needs_restart.is_empty() {
        return Err(Error::NeedsRestart(needs_restart));
    }
    let wanted = &after.settings.runs;
    let taken = control.runs.name_conflicts(wanted);
    if !taken.is_empty() {
        return Err(Error::Taken(taken));
    }
    changed.extend(changed_files(&before, &after));
    changed.extend(changed_agents(&before, &after));
    changed.extend(changed_keys.into_iter().filter(|key| is_read_later_by_the_control_plane(key)));
    let Proxy { drain_timeout: drain, max_body_memory: all_bodies, .. } = after.settings.proxy;
    control.snapshot.store(Arc::new(after.snapshot(Some(&control.snapshot.load()))));
    control.body_memory.set_limit(all_bodies);
    control.runs.set_defaults(after.run_defaults());
    control.runs.accounts().configure(after.settings.accounts.clone());
    control.config.store(Arc::clone(&after));
    control.shown_prices.read_again();
    let not_open = control.runs.open_static(&before.settings.runs, wanted, drain.duration()).await;
    control.reloads.fetch_add(1, Ordering::Relaxed);
    Ok(Reloaded { changed, not_open })
}

/// Tries again to open the runs and gateways that could not be opened.
pub(crate) async fn retry(control: &Control) {
    if control.runs.not_open().is_empty() {
        return;
    }
    let _one_at_a_time = control.reloading.lock().await;
    let config = control.config.load_full();
    control.runs.retry(&config.settings.runs).await;
}

/// Returns the keys with different values.
fn changed_keys(before: &Values, after: &Values) -> Vec<String> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    keys.into_iter().filter(|key| before.get(*key) != after.get(*key)).cloned().collect()
}

/// Returns whether a key is one of the proxy's. A section without an owner counts as the proxy's.
fn is_of_the_proxy(key: &str) -> bool {
    SectionName::of(key).is_none_or(|section| section.owner() == OwningProgram::Proxy)
}

/// Returns whether the control plane applies a change of this key after the reload. [`changed_agents`] names the agents.
fn is_read_later_by_the_control_plane(key: &str) -> bool {
    SectionName::of(key)
        .is_some_and(|section| section != SectionName::Agents && section.is_reloaded_by_control_plane())
}

/// Returns the agents that differ.
fn changed_agents(before: &Config, after: &Config) -> Vec<String> {
    let before = &before.settings.agents;
    let after = &after.settings.agents;
    let ids: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differ = ids.into_iter().filter(|id| before.get(*id) != after.get(*id));
    differ.map(|id| format!("agents.{id}")).collect()
}

fn is_among(key: &str, settings: &[&str]) -> bool {
    settings.iter().any(|setting| key == *setting || setting.ends_with('.') && key.starts_with(setting))
}

/// Returns the settings with changed files.
fn changed_files(before: &Config, after: &Config) -> Vec<String> {
    let ids = |config: &Config| config.secrets.ids().cloned().collect::<Vec<_>>();
    let key = (before.authorization != after.authorization).then_some("upstream.key_file (its content)");
    let admin = (before.admin != after.admin).then_some("upstream.admin_key_file (its content)");
    let secrets = (ids(before) != ids(after)).then_some("proxy.token_secrets_file (its content)");
    key.into_iter().chain(admin).chain(secrets).map(str::to_owned).collect()
}
