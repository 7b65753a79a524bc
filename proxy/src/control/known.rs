//! Distinguishes names that this proxy knows from mistyped ones.
//!
//! An emergency stop is never refused for its name. The answer lists the names that match nothing, so that a mistyped
//! name is not taken for a stop.

use platform_core::{
    control::Frozen,
    id::{ModelName, RunId},
};

use super::Control;
use crate::freezes::Change;

/// Returns those of `named` that `change` does not reach: names to freeze that this proxy does not know, names to thaw
/// that are not frozen.
pub(super) fn unmatched(control: &Control, change: Change, named: &[Frozen]) -> Vec<Frozen> {
    let frozen = control.freezes.list();
    let is_matched = |one: &&Frozen| match (change, one) {
        (Change::Thaw, one) => frozen.contains(one),
        (Change::Freeze, Frozen::All) => true,
        (Change::Freeze, Frozen::Account(account)) => control.runs.accounts().contains(account),
        (Change::Freeze, Frozen::Model(model)) => has_model(control, model),
    };
    named.iter().filter(|one| !is_matched(one)).cloned().collect()
}

/// Returns whether a price, the default or a run's grant names `model`. The upstream is not queried for its models: a
/// stop must not wait for it.
fn has_model(control: &Control, model: &ModelName) -> bool {
    let config = control.config.load();
    let settings = &config.settings;
    settings.prices.contains_key(model.as_str())
        || settings.upstream.default_model.as_deref() == Some(model.as_str())
        || control.runs.grants_model(model)
}

/// Returns whether the run `run_id` is open, is in the configuration, or was closed.
pub(super) fn has_run(control: &Control, run_id: &RunId) -> bool {
    control.runs.knows(run_id) || control.config.load().settings.runs.contains_key(run_id)
}
