//! Reads the configuration again while `sluice up` runs: all of it or nothing, here and in the proxy.
//!
//! Of the control plane's own settings, only agents, models, billing and the relay change. The log names other
//! changed settings, which need a restart. The certificate and the key of the API are read again, too.
//! A run keeps the agent's entry with which it was submitted.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_core::control::Reloaded;
use platform_runtime::{
    config::{ConfigErrors, DEFAULT_FILE, Environment, Sources, Values},
    report,
    settings::{OwningProgram, SectionName, Settings},
};
use runner_api::{TlsError, TlsIdentity};
use runner_control_client::{self as data_plane, DataPlane};
use runner_engine::agents::Catalog;
use runner_telemetry::metrics::Metrics;

use crate::host_tools;

/// Returns whether the control plane reads the setting `key` only at its start: all of its settings except agents,
/// models, billing and the relay.
fn is_read_once(key: &str) -> bool {
    SectionName::of(key).is_some_and(|section| {
        section.owner() == OwningProgram::ControlPlane
            && !matches!(
                section,
                SectionName::Agents | SectionName::Models | SectionName::Billing | SectionName::Relay
            )
    })
}

/// Sources of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct ConfigSources {
    pub(crate) file: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) flags: Vec<String>,
}

/// Purpose for which a configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The command shows something, or sends a request to another process.
    Inspect,
    /// The command adds to the file, which it creates if there is none.
    Extend,
    /// The command executes runs or starts gateways. Other users must not be able to change files that it trusts.
    Execute,
}

/// Reason why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("nothing was changed")]
    Invalid(#[from] ConfigErrors),
    #[error("nothing was changed, and the API keeps its certificate")]
    Tls(#[from] TlsError),
    #[error("nothing was changed, neither in the proxy nor here")]
    Proxy(#[from] data_plane::Error),
}

/// Reader of the configuration after the start, with everything that a reload changes.
#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) sources: ConfigSources,
    /// Values of the settings at the start.
    pub(crate) values: Values,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) data_plane: DataPlane,
    /// Certificate and key of the API, if it has TLS.
    pub(crate) api_tls: Option<TlsIdentity>,
}

impl ConfigSources {
    /// Reads and checks the settings.
    pub(crate) fn read(&self, purpose: Purpose) -> Result<(Settings, Values), ConfigErrors> {
        let sources = match purpose {
            Purpose::Extend if !self.configuration_path().exists() => self.with_file(None),
            _ => self.locate()?,
        };
        let check = |settings: &Settings| {
            let mut errors = host_tools::unknown_tools(settings);
            if purpose == Purpose::Execute {
                errors.extend(settings.exposures_of_control_plane(Some(self.configuration_path())));
            }
            if errors.is_empty() { Ok(()) } else { Err(errors) }
        };
        Settings::read_and(&sources, check).map(|(settings, values, ())| (settings, values))
    }

    /// Checks the settings as they would be with `text` in the file.
    pub(crate) fn check(&self, text: &str) -> Result<(), ConfigErrors> {
        let file = (self.configuration_path().to_owned(), text.to_owned());
        Settings::read(&self.with_file(Some(file))).map(drop)
    }

    fn with_file(&self, file: Option<(PathBuf, String)>) -> Sources {
        Sources { file, environment: self.environment.clone(), flags: self.flags.clone() }
    }

    /// Reads the file, and returns all sources of the settings.
    pub(crate) fn locate(&self) -> Result<Sources, ConfigErrors> {
        let Self { file, environment, flags } = self.clone();
        Sources::locate(file, environment, flags)
    }

    /// Returns the path of the configuration file, even if it does not exist.
    pub(crate) fn configuration_path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE))
    }
}

impl Reloader {
    /// Reads the configuration here and in the proxy, and logs the outcome.
    pub(crate) async fn reload(&self) {
        match self.try_reload().await {
            Ok(agents) => {
                tracing::info!(agents = agents.join(", "), "reloaded: agents are those of the configuration");
            }
            Err(error) => tracing::error!(error = report::chain(&error), "configuration not reloaded"),
        }
    }

    /// Returns the agents that have changed, in words.
    async fn try_reload(&self) -> Result<Vec<String>, Error> {
        let (settings, values) = self.sources.read(Purpose::Execute)?;
        let identity = self.api_tls.as_ref().map(TlsIdentity::read_again).transpose()?;
        match self.data_plane.reload().await {
            Ok(Reloaded { changed, not_open }) => {
                let not_open = not_open.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                tracing::info!(
                    changed = changed.join(", "),
                    not_open,
                    "proxy has read its configuration again"
                );
            }
            // Only a missing proxy is skipped. A proxy that received the request and did not answer may have refused
            // it.
            Err(error @ data_plane::Error::NotRunning { .. }) => {
                tracing::warn!(
                    error = report::chain(&error),
                    "no proxy is running; the next one reads the configuration"
                );
            }
            Err(error) => return Err(error.into()),
        }
        let keys = self.values.keys().chain(values.keys());
        let differs = |key: &&String| is_read_once(key) && self.values.get(*key) != values.get(*key);
        for key in keys.filter(differs).collect::<std::collections::BTreeSet<_>>() {
            tracing::warn!(key, "setting keeps its value until `sluice up` is restarted");
        }
        if let Some((api_tls, identity)) = self.api_tls.as_ref().zip(identity) {
            api_tls.replace(identity);
            tracing::info!("API serves later connections with the certificate and key that were read now");
        }
        self.metrics.register_agents(settings.agents.keys());
        Ok(self.catalog.replace(&settings).await)
    }
}
