//! Reading the configuration again while `sluice up` works: all of it or nothing, here and in the proxy.
//!
//! Of what is the control plane's own only agents change; what else would is named, and takes a restart. Runs keep the
//! agent they were ordered with.

use std::{path::PathBuf, sync::Arc};

use platform_runtime::{
    config::{Environment, Mistakes, Sources, Values},
    report,
    settings::{Owner, Part, Settings},
};

use crate::{
    agents::Catalog,
    data_plane::{self, DataPlane},
    metrics::Metrics,
};

/// Returns whether the setting with this key is the control plane's and read once: all but agents are.
fn is_read_once(key: &str) -> bool {
    Part::of(key).is_some_and(|part| part.owner() == Owner::ControlPlane && part != Part::Agents)
}

/// Where the configuration is read.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    pub(crate) file: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) flags: Vec<String>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("nothing was changed")]
    Mistakes(#[from] Mistakes),
    #[error("nothing was changed, here neither")]
    Proxy(#[from] data_plane::Error),
}

/// Whoever reads it again.
#[derive(Debug)]
pub(crate) struct Reloading {
    origins: Origins,
    /// What it was at the start.
    values: Values,
    catalog: Arc<Catalog>,
    metrics: Arc<Metrics>,
    data_plane: DataPlane,
}

impl Origins {
    pub(crate) fn read(&self) -> Result<(Settings, Values), Mistakes> {
        let Self { file, environment, flags } = self.clone();
        let sources = Sources::locate(file, environment, flags)?;
        Settings::read_and(&sources, |_settings| Ok(())).map(|(settings, values, ())| (settings, values))
    }
}

impl Reloading {
    pub(crate) fn new(
        (origins, values): (Origins, Values),
        (catalog, metrics): (Arc<Catalog>, Arc<Metrics>),
        data_plane: DataPlane,
    ) -> Self {
        Self { origins, values, catalog, metrics, data_plane }
    }

    /// Reads it, has the proxy do so, and tells in the log what became of that.
    pub(crate) async fn again(&self) {
        match self.attempt().await {
            Ok(()) => tracing::info!("reloaded: agents are those of the configuration"),
            Err(error) => tracing::error!(error = %report::chain(&error), "not reloaded"),
        }
    }

    async fn attempt(&self) -> Result<(), Error> {
        let (settings, values) = self.origins.read()?;
        match self.data_plane.reload().await {
            Ok(reloaded) => tracing::info!(?reloaded, "the proxy has read its configuration again"),
            // One that was asked and did not answer may have refused.
            Err(error @ data_plane::Error::NotRunning { .. }) => {
                tracing::warn!(error = %report::chain(&error), "the next proxy will read it");
            }
            Err(error) => return Err(error.into()),
        }
        let keys = self.values.keys().chain(values.keys());
        let differs = |key: &&String| is_read_once(key) && self.values.get(*key) != values.get(*key);
        for key in keys.filter(differs).collect::<std::collections::BTreeSet<_>>() {
            tracing::warn!(key, "stays as it is until `sluice up` is started anew");
        }
        self.metrics.know(settings.agents.keys());
        self.catalog.replace(&settings).await;
        Ok(())
    }
}
