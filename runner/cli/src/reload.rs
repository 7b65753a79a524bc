//! Reads the configuration again while `sluice up` runs: all of it or nothing, here and in the proxy.
//!
//! Of the control plane's own settings, only agents, their repository, models, billing and the relay change. The log
//! names other changed settings, which need a restart. The certificate and the key of the API are read again, too.
//! A run keeps the agent's entry with which it was submitted.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use platform_core::control::Reloaded;
use platform_runtime::{
    config::{ConfigErrors, DEFAULT_FILE, Environment, Sources, Values},
    report,
    settings::{OwningProgram, SectionName, Settings},
};
use runner_api::{ReadIdentity, TlsError, TlsIdentity};
use runner_control_client::{self as data_plane, DataPlane};
use runner_engine::agents::Catalog;
use runner_telemetry::metrics::Metrics;
use tokio::time::timeout;

use crate::host_tools;

/// Longest wait for the proxy's count of reloads. Signals are handled afterwards.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns whether the control plane reads the setting `key` only at its start: all of its settings except agents,
/// their repository, models, billing and the relay.
fn is_read_once(key: &str) -> bool {
    SectionName::of(key).is_some_and(|section| {
        section.owner() == OwningProgram::ControlPlane && !section.is_reloaded_by_control_plane()
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
    /// The command adds to the file, and creates it if it is missing.
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
    /// Reloads of the proxy that were followed, once it has been asked.
    pub(crate) followed: Option<ProxyReloads>,
}

/// Reloads that a proxy has applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProxyReloads {
    pid: u32,
    count: u64,
}

/// Configuration that was read again and not applied yet.
struct ReadAgain {
    settings: Settings,
    values: Values,
    identity: Option<ReadIdentity>,
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
    pub(crate) async fn reload(&mut self) {
        let outcome = self.try_reload().await;
        log_outcome(&outcome);
    }

    /// Reads the configuration here if the proxy has done so since the last call, and logs the outcome. So what
    /// `sluice reload` and `sluice agents add` ask of the proxy holds here, too.
    pub(crate) async fn follow(&mut self) {
        let Ok(Ok(health)) = timeout(HEALTH_TIMEOUT, self.data_plane.health()).await else { return };
        let now = ProxyReloads { pid: health.pid, count: health.reloads };
        let is_new = self.followed.replace(now).is_some_and(|before| {
            // A proxy that has just been started counts from 0.
            if before.pid == now.pid { before.count != now.count } else { now.count > 0 }
        });
        if is_new {
            let outcome = match self.read() {
                Ok(read) => Ok(self.apply(read).await),
                Err(error) => Err(error),
            };
            log_outcome(&outcome);
        }
    }

    /// Returns the agents that have changed, in words.
    async fn try_reload(&mut self) -> Result<Vec<String>, Error> {
        let read = self.read()?;
        self.reload_proxy().await?;
        Ok(self.apply(read).await)
    }

    fn read(&self) -> Result<ReadAgain, Error> {
        let (settings, values) = self.sources.read(Purpose::Execute)?;
        let identity = self.api_tls.as_ref().map(TlsIdentity::read_again).transpose()?;
        Ok(ReadAgain { settings, values, identity })
    }

    async fn reload_proxy(&mut self) -> Result<(), Error> {
        match self.data_plane.reload().await {
            Ok(Reloaded { changed, not_open }) => {
                let not_open = not_open.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                tracing::info!(
                    changed = changed.join(", "),
                    not_open,
                    "proxy has read its configuration again"
                );
                // This one is followed by the caller. Others that came meanwhile still count.
                if let Some(followed) = &mut self.followed {
                    followed.count += 1;
                }
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
        Ok(())
    }

    /// Applies what was read. Returns the agents that have changed, in words.
    async fn apply(&self, read: ReadAgain) -> Vec<String> {
        let ReadAgain { settings, values, identity } = read;
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
        self.catalog.replace(&settings).await
    }
}

fn log_outcome(outcome: &Result<Vec<String>, Error>) {
    match outcome {
        Ok(agents) => {
            tracing::info!(agents = agents.join(", "), "reloaded: agents are those of the configuration");
        }
        Err(error) => tracing::error!(error = report::chain(error), "configuration not reloaded"),
    }
}
