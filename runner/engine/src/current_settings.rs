//! Keeps the latest configuration, which a reload replaces.

use std::sync::Arc;

use platform_runtime::settings::Settings;
use tokio::sync::watch;

/// Latest configuration. Clones share it.
#[derive(Debug, Clone)]
pub struct CurrentSettings(Arc<watch::Sender<Arc<Settings>>>);

impl CurrentSettings {
    /// Returns `settings` as the latest configuration.
    pub fn of(settings: &Settings) -> Self {
        Self(Arc::new(watch::Sender::new(Arc::new(settings.clone()))))
    }

    /// Returns the latest configuration. A later reload does not change it.
    #[must_use]
    pub fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the configuration.
    pub(crate) fn replace(&self, settings: &Settings) {
        self.0.send_replace(Arc::new(settings.clone()));
    }
}
