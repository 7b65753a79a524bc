//! Reads the configuration again while `sluice up` works: all of it or nothing, here and in the proxy.
//!
//! Of the control plane's own settings only agents change. Other changes are named in the log and need a restart. Runs
//! keep the agent that they were ordered with.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_runtime::{
    config::{DEFAULT_FILE, Environment, Mistakes, Sources, Values},
    report,
    settings::{Owner, Part, Settings},
    trust::Trusted,
};
use runner_control_client::{self as data_plane, DataPlane};
use runner_engine::agents::Catalog;
use runner_telemetry::metrics::Metrics;

/// Returns whether the setting with this key is the control plane's and read once: all but agents are.
fn is_read_once(key: &str) -> bool {
    Part::of(key).is_some_and(|part| part.owner() == Owner::ControlPlane && part != Part::Agents)
}

/// Sources of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    pub(crate) file: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) flags: Vec<String>,
}

/// Purpose for which a configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The command looks at something or asks for it.
    Look,
    /// The command starts or continues work on agents. Other users must not be able to change files that this work
    /// trusts.
    Work,
}

/// Reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("nothing was changed")]
    Mistakes(#[from] Mistakes),
    #[error("nothing was changed, here neither")]
    Proxy(#[from] data_plane::Error),
}

/// Reader of the configuration after the start.
#[derive(Debug)]
pub(crate) struct Reloading {
    origins: Origins,
    /// Values of the settings at the start.
    values: Values,
    catalog: Arc<Catalog>,
    metrics: Arc<Metrics>,
    data_plane: DataPlane,
}

impl Origins {
    pub(crate) fn read(&self, purpose: Purpose) -> Result<(Settings, Values), Mistakes> {
        let Self { file, environment, flags } = self.clone();
        let sources = Sources::locate(file, environment, flags)?;
        let look = |settings: &Settings| {
            let exposed = match purpose {
                Purpose::Look => Vec::new(),
                Purpose::Work => {
                    settings.exposures_of_control_plane(Some(self.configuration()), &Trusted::own())
                }
            };
            if exposed.is_empty() { Ok(()) } else { Err(exposed) }
        };
        Settings::read_and(&sources, look).map(|(settings, values, ())| (settings, values))
    }

    /// Returns the path at which the configuration file is, or would be.
    pub(crate) fn configuration(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE))
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

    /// Reads the configuration here and in the proxy, and logs the outcome.
    pub(crate) async fn again(&self) {
        match self.attempt().await {
            Ok(()) => tracing::info!("reloaded: agents are those of the configuration"),
            Err(error) => tracing::error!(error = %report::chain(&error), "not reloaded"),
        }
    }

    async fn attempt(&self) -> Result<(), Error> {
        let (settings, values) = self.origins.read(Purpose::Work)?;
        match self.data_plane.reload().await {
            Ok(reloaded) => tracing::info!(?reloaded, "the proxy has read its configuration again"),
            // Only a proxy that is not running is passed over: one that was asked and did not answer may have refused.
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
