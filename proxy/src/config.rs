//! What the proxy works with, resolved: the settings, and the key they lead to.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use http::HeaderValue;
use platform_core::{budget::Price, name, secret::Secret};
use platform_runtime::settings::{self, Settings, token_secrets};

use crate::{budget::Prices, exchange::Snapshot, metrics::Models, upstream};

/// Why the key is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read upstream.key_file {}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What is there cannot be sent in a header. The key itself is not shown.
    #[error("the key in {origin} is empty or holds characters that a header cannot carry")]
    Unusable {
        /// Where the key was read from.
        origin: String,
    },
}

/// Secrets that came in the environment and were taken out of it.
#[derive(Debug, Default)]
pub struct FromEnvironment {
    /// `LITELLM_MASTER_KEY`
    pub key: Option<Secret>,
    /// `PROXY_SHARED_SECRET`
    pub token_secret: Option<Secret>,
}

/// The proxy's configuration.
#[derive(Debug)]
pub struct Config {
    pub(crate) proxy: settings::Proxy,
    pub(crate) journal: settings::Journal,
    pub(crate) base_url: String,
    pub(crate) upstream: upstream::Config,
    /// `Bearer …`; marked sensitive, so that it is not printed.
    pub(crate) authorization: Option<HeaderValue>,
    /// What accounts may use in all.
    pub(crate) accounts: settings::Accounts,
    /// What models cost.
    prices: BTreeMap<String, Price>,
    /// Models that are named anywhere.
    models: Vec<String>,
    /// The secret of run tokens from the environment.
    token_secret: Option<Secret>,
    own_uid: u32,
}

impl Config {
    /// Resolves `settings`. The key is read from the file if one is named, else it is that of the environment.
    /// No key at all is possible: some upstreams want none.
    ///
    /// # Errors
    /// If the key cannot be read or used.
    pub fn resolve(settings: Settings, from_environment: FromEnvironment) -> Result<Self, Error> {
        let models = named_models(&settings);
        let Settings { upstream, proxy, journal, accounts, prices, .. } = settings;
        let key = match &upstream.key_file {
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|source| Error::KeyFile { path: path.clone(), source })?;
                Some((Secret::new(text), path.display().to_string()))
            }
            None => from_environment.key.map(|key| (key, name::env::LITELLM_MASTER_KEY.to_owned())),
        };
        let authorization =
            key.map(|(key, origin)| bearer(&key).ok_or(Error::Unusable { origin })).transpose()?;
        let authority = upstream.authority();
        let host = HeaderValue::from_str(&authority)
            .map_err(|_error| Error::Unusable { origin: "upstream.base_url".to_owned() })?;
        Ok(Self {
            base_url: upstream.base_url,
            upstream: upstream::Config {
                authority,
                host,
                connect: upstream.connect.duration(),
                idle: upstream.pool_idle.duration(),
            },
            proxy,
            journal,
            authorization,
            accounts,
            prices,
            models,
            token_secret: from_environment.token_secret,
            own_uid: rustix::process::geteuid().as_raw(),
        })
    }

    /// The part of it that calls work with, token secrets read anew.
    ///
    /// # Errors
    /// If their file cannot be read or used.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, token_secrets::Error> {
        let file = self.proxy.token_secrets_file.as_deref();
        Ok(Snapshot {
            header_read: self.proxy.header_read.duration(),
            secrets: token_secrets::read(file, self.token_secret.as_ref())?,
            prices: Prices::new(self.prices.clone()),
            token_skew: self.proxy.token_skew.duration(),
        })
    }

    /// The models that have metrics of their own.
    pub(crate) fn models(&self) -> Models {
        Models::new(self.models.iter().cloned())
    }

    /// What no agent is told: the upstream's key and address.
    pub(crate) fn unspoken(&self) -> Vec<String> {
        let key = self.authorization.as_ref().and_then(|value| value.to_str().ok());
        let authority = self.upstream.authority.as_str();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let words = [key.and_then(|value| value.strip_prefix("Bearer ")), Some(authority), Some(host)];
        // A shorter one would be found in innocent words.
        words.into_iter().flatten().filter(|word| word.len() >= 4).map(str::to_owned).collect()
    }

    /// Whether a process of `uid` may speak to the control socket.
    pub(crate) fn may_control(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own_uid || self.proxy.control_uids.contains(&uid)
    }
}

/// All models that the configuration names.
fn named_models(settings: &Settings) -> Vec<String> {
    let priced = Prices::new(settings.prices.clone());
    let of_agents = settings.agents.values().flat_map(|agent| {
        let granted = agent.models.iter().map(ToString::to_string);
        granted.chain(agent.model.clone())
    });
    priced
        .names()
        .map(str::to_owned)
        .chain(of_agents)
        .chain(settings.upstream.default_model.clone())
        .collect()
}

fn bearer(key: &Secret) -> Option<HeaderValue> {
    let key = key.expose().trim();
    let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let mut value = plain.then(|| HeaderValue::from_str(&format!("Bearer {key}")).ok())??;
    value.set_sensitive(true);
    Some(value)
}
