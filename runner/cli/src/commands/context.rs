//! Settings, secrets and the store, as commands get them.

use std::path::PathBuf;

use platform_core::{name, secret::Secret};
use platform_runtime::{
    config::{ConfigErrors, Environment, Values},
    settings::Settings,
};
use runner_store::{Address, Bounds, Error as StoreError, HostIdentity, Store};

use crate::reload::{ConfigSources, Purpose};

/// Settings and secrets that a command gets besides its own arguments.
pub(super) struct Context {
    pub(super) settings: Settings,
    /// Value of each setting, as it was read.
    pub(super) values: Values,
    /// Sources to read the settings again from.
    pub(super) sources: ConfigSources,
    /// Values of `--config` and `--set`, to pass on to a child.
    pub(super) passed_on: Vec<String>,
    /// Secret that run tokens are signed with, if no file has it.
    pub(super) token_secret: Option<Secret>,
    /// Password of the store's database, if no file has it.
    pub(super) store_password: Option<Secret>,
}

impl Context {
    /// Reads the configuration for a command with this `purpose`.
    pub(super) fn read(
        config: Option<PathBuf>,
        set: Vec<String>,
        mut environment: Environment,
        purpose: Purpose,
    ) -> Result<Self, ConfigErrors> {
        let token_secret = environment.take_secret(name::env::PROXY_SHARED_SECRET);
        let store_password = environment.take_secret(name::env::SLUICE_STORE_PASSWORD);
        let named = config.or_else(|| environment.get(name::env::SLUICE_CONFIG).map(PathBuf::from));
        let mut passed_on = Vec::new();
        if let Some(path) = &named {
            passed_on.extend(["--config".to_owned(), path.display().to_string()]);
        }
        for flag in &set {
            passed_on.extend(["--set".to_owned(), flag.clone()]);
        }
        let sources = ConfigSources { file: named, environment, flags: set };
        let (settings, values) = sources.read(purpose)?;
        Ok(Self { settings, values, sources, passed_on, token_secret, store_password })
    }

    /// Opens the store for this host: to order runs, work on them and remove their leftovers. A store that serves no
    /// host serves this one from now on.
    pub(super) async fn serving_store(&self) -> Result<Store, StoreError> {
        let host = self.host()?;
        self.store().await?.serving(host).await
    }

    /// Returns the identity of this host.
    pub(super) fn host(&self) -> Result<HostIdentity, StoreError> {
        HostIdentity::of(&self.settings.sandbox.state_dir)
    }

    /// Opens the store for reading on any host, with room for as many orders as may wait.
    pub(super) async fn store(&self) -> Result<Store, StoreError> {
        let address = Address::of(&self.settings.store, self.store_password.as_ref())?;
        let store = Store::open(&address, self.settings.sandbox.installation.clone()).await?;
        let worker = &self.settings.worker;
        Ok(store.bounded(Bounds { all: worker.max_queued, of_account: worker.max_queued_per_account }))
    }
}
