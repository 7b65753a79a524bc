//! Reads settings and secrets for commands, and opens the store.

use std::{path::PathBuf, sync::Arc};

use platform_core::{name, secret::Secret};
use platform_runtime::{
    config::{ConfigErrors, Environment, Values},
    settings::Settings,
};
use runner_engine::relay::GitHubAccess;
use runner_proposals::SettingsReader;
use runner_store::{Address, Bounds, Error as StoreError, HostIdentity, Store};

use crate::{
    agent_images::DockerProgram,
    reload::{ConfigSources, Purpose},
};

/// Connections of the API to the store.
const API_CONNECTIONS: u32 = 4;

/// Settings and secrets that a command receives besides its own arguments.
pub(super) struct Context {
    pub(super) settings: Settings,
    /// Value of each setting, as its source writes it.
    pub(super) values: Values,
    /// Sources of the settings, to read them again.
    pub(super) sources: ConfigSources,
    /// Arguments for `sluice-proxy`: `--config` and `--set` with the values of this command.
    pub(super) proxy_arguments: Vec<String>,
    /// Secret of run tokens from the environment.
    pub(super) token_secret: Option<Secret>,
    /// Password of the store's database from the environment.
    pub(super) store_password: Option<Secret>,
    /// Token of LiteLLM's callback from the environment.
    pub(super) ingest_token: Option<Arc<Secret>>,
    /// Token for GitHub from the environment.
    github_token: Option<Arc<Secret>>,
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
        let ingest_token = environment.take_secret(name::env::BILLING_INGEST_TOKEN).map(Arc::new);
        let github_token = environment.take_secret(name::env::GITHUB_TOKEN).map(Arc::new);
        let config_file = config.or_else(|| environment.get(name::env::SLUICE_CONFIG).map(PathBuf::from));
        let mut proxy_arguments = Vec::new();
        if let Some(path) = &config_file {
            proxy_arguments.extend(["--config".to_owned(), path.display().to_string()]);
        }
        for flag in &set {
            proxy_arguments.extend(["--set".to_owned(), flag.clone()]);
        }
        let sources = ConfigSources { file: config_file, environment, flags: set };
        let (settings, values) = sources.read(purpose)?;
        Ok(Self {
            settings,
            values,
            sources,
            proxy_arguments,
            token_secret,
            store_password,
            ingest_token,
            github_token,
        })
    }

    /// Opens the store for this host, to submit runs, execute them and remove their leftover resources. A store that
    /// serves no host serves this one from now on.
    pub(super) async fn serving_store(&self) -> Result<Store, StoreError> {
        let host = self.host()?;
        self.store().await?.serving(host).await
    }

    /// Returns GitHub, for the relays of runs.
    pub(super) fn github(&self) -> Arc<GitHubAccess> {
        Arc::new(GitHubAccess::new(&self.settings.github, self.github_token.clone()))
    }

    /// Returns the reader of texts that a configuration file could have.
    pub(super) fn settings_reader(&self) -> SettingsReader {
        let ConfigSources { environment, flags, .. } = &self.sources;
        SettingsReader { environment: environment.clone(), flags: flags.clone() }
    }

    /// Returns Docker's command line program, for images.
    pub(super) fn docker_program(&self) -> DockerProgram<'_> {
        DockerProgram { socket: &self.settings.sandbox.docker_socket, environment: &self.sources.environment }
    }

    /// Returns the identity of this host.
    pub(super) fn host(&self) -> Result<HostIdentity, StoreError> {
        HostIdentity::of(&self.settings.sandbox.state_dir)
    }

    /// Opens the store on any host, with the configured bounds of its queue. A store that serves another host can only
    /// be read.
    pub(super) async fn store(&self) -> Result<Store, StoreError> {
        self.store_at(self.store_address()?).await
    }

    /// Opens the store for the API: for this host, with connections that read beside a write that waits.
    pub(super) async fn api_store(&self) -> Result<Store, StoreError> {
        let address = self.store_address()?.with_connections(API_CONNECTIONS);
        self.store_at(address).await?.serving(self.host()?).await
    }

    fn store_address(&self) -> Result<Address, StoreError> {
        Address::of(&self.settings.store, self.store_password.as_ref())
    }

    async fn store_at(&self, address: Address) -> Result<Store, StoreError> {
        let store = Store::open(&address, self.settings.sandbox.installation.clone()).await?;
        let worker = &self.settings.worker;
        Ok(store.bounded(Bounds { all: worker.max_queued, of_account: worker.max_queued_per_account }))
    }
}
