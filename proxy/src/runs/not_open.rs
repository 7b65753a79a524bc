//! Lists runs and gateways that could not be opened: operators see them, and they are tried again until they are
//! open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use platform_core::control::NotReady;
use platform_runtime::report;

use super::{Runs, StaticRuns};

/// List of what is not open.
#[derive(Debug, Default)]
pub(super) struct NotOpen(ArcSwap<Vec<NotReady>>);

impl NotOpen {
    /// Returns the list.
    pub(super) fn list(&self) -> Vec<NotReady> {
        Vec::clone(&self.0.load())
    }

    /// Replaces the list, and logs what is new on it and what has left it.
    pub(super) fn replace(&self, now: Vec<NotReady>) {
        let before = self.0.swap(Arc::new(now.clone()));
        for reason in now.iter().filter(|reason| !before.contains(reason)) {
            tracing::error!(?reason, "not open; opening is retried");
        }
        for reason in before.iter().filter(|reason| !now.contains(reason)) {
            tracing::info!(?reason, "open, or no longer wanted");
        }
    }
}

impl Runs {
    /// Returns the runs and gateways that could not be opened.
    pub(crate) fn not_open(&self) -> Vec<NotReady> {
        [self.not_open.list(), self.not_restored.list()].concat()
    }

    /// Tries again to open what is not open: the configuration's runs, `wanted`, and those of the proxy before.
    pub(crate) async fn retry(&self, wanted: &StaticRuns) {
        if !self.not_restored.list().is_empty()
            && let Err(error) = self.restore_missing().await
        {
            tracing::warn!(error = report::chain(&error), "stored runs cannot be read");
        }
        if !self.not_open.list().is_empty() {
            self.open_static(wanted, wanted, std::time::Duration::ZERO).await;
        }
    }
}
