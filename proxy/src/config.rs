//! Resolves the proxy's configuration: the settings, and the key and secrets they lead to. It is read at the start
//! and at each reload, always whole, and with every mistake at once.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{HeaderValue, uri::PathAndQuery};
use platform_core::{control::UpstreamHealth, limit::ByteSize, name, secret::Secret, token::Secrets};
use platform_runtime::{
    config::{About, ConfigErrors, Environment, Sources, ValidationError, Values},
    file, report,
    settings::{self, Settings, token_secrets},
    trust::Trusted,
};

use crate::{
    budget::Prices, exchange::Snapshot, mask::Mask, metrics::Models, policy::DefaultModels, run::RunDefaults,
    upstream,
};

/// Largest file that is taken for a key.
const MAX_KEY: ByteSize = ByteSize::kib(64);

/// Sources of the configuration. The file and what it names are read again each time, the rest was given once.
#[derive(Debug)]
pub struct ConfigSources {
    file: Option<PathBuf>,
    environment: Environment,
    flags: Vec<String>,
    /// `LITELLM_MASTER_KEY`
    key: Option<Secret>,
    /// `PROXY_SHARED_SECRET`
    token_secret: Option<Secret>,
}

impl ConfigSources {
    /// Creates the sources: a file if one is named, the environment, and flags. Takes the secrets out of the
    /// environment.
    #[must_use]
    pub fn new(file: Option<PathBuf>, mut environment: Environment, flags: Vec<String>) -> Self {
        let key = environment.take_secret(name::env::LITELLM_MASTER_KEY);
        let token_secret = environment.take_secret(name::env::PROXY_SHARED_SECRET);
        Self { file, environment, flags, key, token_secret }
    }

    /// Reads the whole configuration.
    ///
    /// # Errors
    /// Every mistake in the settings, and in the files of secrets that they name.
    pub fn read(&self) -> Result<Config, ConfigErrors> {
        self.read_trusting(Settings::trusted_at_start)
    }

    /// Reads the whole configuration with the rights of the proxy's own user: root checks a service's configuration as
    /// the service's user would.
    ///
    /// # Errors
    /// As for [`ConfigSources::read`].
    pub fn check(&self) -> Result<Config, ConfigErrors> {
        let is_root = rustix::process::geteuid().is_root();
        let trust = if is_root { Settings::trusted_by_proxy } else { Settings::trusted_at_start };
        self.read_trusting(trust)
    }

    fn read_trusting(&self, trust: fn(&Settings) -> Trusted) -> Result<Config, ConfigErrors> {
        let sources = Sources::locate(self.file.clone(), self.environment.clone(), self.flags.clone())?;
        let file = sources.file.as_ref().map(|(path, _)| path.as_path());
        let resolve = |settings: &Settings| {
            let trusted = trust(settings);
            self.resolve(settings, &trusted, settings.exposures_of_proxy(file, &trusted))
        };
        let (settings, values, resolved) = Settings::read_and(&sources, resolve)?;
        Ok(Config::of(settings, values, resolved))
    }

    /// Reads the files that `settings` name, and adds their mistakes to `errors`.
    fn resolve(
        &self,
        settings: &Settings,
        trusted: &Trusted,
        mut errors: Vec<ValidationError>,
    ) -> Result<Resolved, Vec<ValidationError>> {
        let resolved = (
            self.authorization(settings, trusted),
            admin_authorization(settings, trusted),
            self.secrets(settings, trusted),
            target(&settings.upstream),
        );
        match resolved {
            (Ok(authorization), Ok(admin), Ok(secrets), Ok(target)) if errors.is_empty() => {
                Ok(Resolved { authorization, admin, secrets: Arc::new(secrets), upstream: Arc::new(target) })
            }
            (authorization, admin, secrets, target) => {
                let failed = [authorization.err(), admin.err(), secrets.err(), target.err()];
                errors.extend(failed.into_iter().flatten());
                Err(errors)
            }
        }
    }

    fn secrets(&self, settings: &Settings, trusted: &Trusted) -> Result<Secrets, ValidationError> {
        let file = settings.proxy.token_secrets_file.as_deref();
        token_secrets::read(file, self.token_secret.as_ref(), trusted).map_err(|error| ValidationError {
            about: match file {
                Some(_) => About::Setting("proxy.token_secrets_file".to_owned()),
                None => About::Variable(name::env::PROXY_SHARED_SECRET),
            },
            problem: report::chain(&error),
        })
    }

    /// Returns the key: that of the file if one is named, else that of the environment. There may be none: some
    /// upstreams need no key.
    fn authorization(
        &self,
        settings: &Settings,
        trusted: &Trusted,
    ) -> Result<Option<HeaderValue>, ValidationError> {
        match (&settings.upstream.key_file, &self.key) {
            (Some(path), _) => read_key("upstream.key_file", path, trusted).map(Some),
            (None, Some(key)) => bearer(key, About::Variable(name::env::LITELLM_MASTER_KEY)).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// Returns the key that mints the keys of runs, if each run has its own.
fn admin_authorization(
    settings: &Settings,
    trusted: &Trusted,
) -> Result<Option<HeaderValue>, ValidationError> {
    let path = settings.upstream.admin_key_file.as_deref();
    path.map(|path| read_key("upstream.admin_key_file", path, trusted)).transpose()
}

/// Reads the key in the file that `setting` names.
fn read_key(setting: &str, path: &Path, trusted: &Trusted) -> Result<HeaderValue, ValidationError> {
    let about = About::Setting(setting.to_owned());
    let problem = |error| format!("cannot read {setting} {}: {error}", path.display());
    let key = file::secret(path, MAX_KEY, trusted)
        .map_err(|error| ValidationError { about: about.clone(), problem: problem(error) })?;
    bearer(&key, about)
}

/// Values that the settings lead to.
#[derive(Debug)]
struct Resolved {
    authorization: Option<HeaderValue>,
    admin: Option<HeaderValue>,
    secrets: Arc<Secrets>,
    upstream: Arc<upstream::Target>,
}

/// Configuration of the proxy.
#[derive(Debug)]
pub struct Config {
    pub(crate) settings: Settings,
    /// Values of all settings, to find out what a reload changes.
    pub(crate) values: Values,
    /// Upstream that calls are forwarded to. Only that of the configuration a proxy starts with is ever used.
    pub(crate) upstream: Arc<upstream::Target>,
    /// `Bearer …`; marked sensitive, so that it is not printed.
    pub(crate) authorization: Option<HeaderValue>,
    /// `Bearer …` of the key that mints keys; marked sensitive. Each run has its own key if there is one.
    pub(crate) admin: Option<HeaderValue>,
    /// Secrets that run tokens are signed with.
    pub(crate) secrets: Arc<Secrets>,
    own_uid: u32,
}

impl Config {
    fn of(settings: Settings, values: Values, resolved: Resolved) -> Self {
        Self {
            upstream: resolved.upstream,
            settings,
            values,
            authorization: resolved.authorization,
            admin: resolved.admin,
            secrets: resolved.secrets,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Returns the health of the upstream, which is asked with the configured key. No proxy has to run.
    pub async fn upstream_health(&self) -> UpstreamHealth {
        upstream::Upstream::new(Arc::clone(&self.upstream)).health(self.authorization.as_ref()).await
    }

    /// Returns the part that calls use. Texts that `previous` redacts stay redacted.
    pub(crate) fn snapshot(&self, previous: Option<&Snapshot>) -> Snapshot {
        let mut redacted_terms = self.redacted_terms();
        let earlier = previous.iter().flat_map(|previous| previous.redacted_terms.iter());
        redacted_terms
            .extend(earlier.filter(|term| !redacted_terms.contains(term)).cloned().collect::<Vec<_>>());
        let keys = [self.key(), self.admin.as_ref().and_then(key_of)];
        let mask = Mask::of(keys.into_iter().flatten().chain(self.secrets.expose()));
        Snapshot {
            header_read_timeout: self.settings.proxy.connections.header_read_timeout.duration(),
            keep_alive_timeout: self.settings.proxy.connections.keep_alive_timeout.duration(),
            client_gone_timeout: self.settings.proxy.connections.client_gone_timeout.duration(),
            authorization: self.authorization.clone(),
            admin: self.admin.clone(),
            redacted_terms: redacted_terms.into(),
            mask: Arc::new(match previous {
                Some(previous) => mask.with(&previous.mask),
                None => mask,
            }),
            secrets: Arc::clone(&self.secrets),
            prices: self.prices(previous),
            output_rates: self.output_rates(),
            default_models: DefaultModels::of(&self.settings),
            trusted_uids: [0, self.own_uid]
                .iter()
                .chain(&self.settings.proxy.control_uids)
                .copied()
                .collect(),
            token_leeway: self.settings.proxy.token_leeway.duration(),
        }
    }

    /// Returns the prices of the table, and those that the upstream has shown.
    fn prices(&self, previous: Option<&Snapshot>) -> Prices {
        let shown = previous.and_then(|previous| previous.prices.shown().cloned());
        let none = || (!self.settings.upstream.model_info).then(Arc::default);
        Prices::new(self.settings.prices.clone()).showing(shown.or_else(none))
    }

    /// Returns the defaults of all runs.
    pub(crate) fn run_defaults(&self) -> RunDefaults {
        RunDefaults {
            extra_fields: self.settings.proxy.extra_body_fields.clone(),
            body_memory: self.settings.proxy.max_body_memory_per_run,
        }
    }

    /// Returns the models that have metrics of their own: all that are named.
    pub(crate) fn models(&self) -> Models {
        let settings = &self.settings;
        let priced = Prices::new(settings.prices.clone());
        let of_agents = settings.agents.values().flat_map(|agent| {
            let granted = agent.models.iter().map(ToString::to_string);
            granted.chain(agent.model.clone())
        });
        let of_runs = settings.runs.values().flat_map(|run| run.grant.models.iter().flatten());
        Models::new(
            priced
                .names()
                .map(str::to_owned)
                .chain(of_agents)
                .chain(of_runs.map(ToString::to_string))
                .chain(settings.upstream.default_model.clone()),
        )
    }

    /// Returns the rates that are set for models.
    fn output_rates(&self) -> BTreeMap<String, u64> {
        let models = self.settings.models.iter();
        models.filter_map(|(name, model)| Some((name.clone(), model.tokens_per_second?))).collect()
    }

    /// Returns the upstream's key as it was given.
    fn key(&self) -> Option<&str> {
        self.authorization.as_ref().and_then(key_of)
    }

    /// Returns the texts that are never sent to an agent: the upstream's keys and address.
    fn redacted_terms(&self) -> Vec<String> {
        let url = self.settings.upstream.url().ok();
        let authority = url.as_ref().map(|url| url.base.authority()).unwrap_or_default();
        let authority = authority.as_str();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let path = url.as_ref().map_or("", |url| url.path.as_str());
        let keys = [self.key(), self.admin.as_ref().and_then(key_of)];
        let terms = keys.into_iter().chain([Some(authority), Some(host), Some(path)]);
        // A shorter text would be found in innocent words.
        terms.flatten().filter(|term| term.len() >= 4).map(str::to_owned).collect()
    }

    /// Returns whether a process of `uid` may use the control socket.
    pub(crate) fn may_control(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own_uid || self.settings.proxy.control_uids.contains(&uid)
    }
}

/// Returns the key of a header.
fn key_of(authorization: &HeaderValue) -> Option<&str> {
    authorization.to_str().ok()?.strip_prefix("Bearer ")
}

fn target(settings: &settings::Upstream) -> Result<upstream::Target, ValidationError> {
    let invalid = |setting: &str, problem: String| ValidationError {
        about: About::Setting(format!("upstream.{setting}")),
        problem,
    };
    let url = settings.url().map_err(|error| invalid("base_url", error.to_string()))?;
    let authority = HeaderValue::from_str(&url.base.authority())
        .map_err(|error| invalid("base_url", error.to_string()))?;
    let probe = settings.probe_path.as_ref().map(|path| path.parse::<PathAndQuery>()).transpose();
    let config = upstream::Config {
        host: url.base.host,
        port: url.base.port,
        authority,
        path: url.path,
        scheme: match url.base.scheme {
            settings::Scheme::Http => upstream::Scheme::Http,
            settings::Scheme::Https => upstream::Scheme::Https { ca_file: settings.ca_file.clone() },
        },
        connect_timeout: settings.connect_timeout.duration(),
        tls_timeout: settings.tls_handshake_timeout.duration(),
        idle_timeout: settings.pool_idle_timeout.duration(),
        max_idle: usize::try_from(settings.pool_max_idle_per_thread).unwrap_or(usize::MAX),
        probe_path: probe.map_err(|error| invalid("probe_path", error.to_string()))?,
    };
    upstream::Target::new(config).map_err(|error| invalid("ca_file", report::chain(&error)))
}

/// Returns the header for `key`, which `about` gave.
fn bearer(key: &Secret, about: About) -> Result<HeaderValue, ValidationError> {
    let key = key.expose().trim();
    let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let value = plain.then(|| HeaderValue::from_str(&format!("Bearer {key}")).ok()).flatten();
    let Some(mut value) = value else {
        let problem = "the key is empty or holds characters that a header cannot carry".to_owned();
        return Err(ValidationError { about, problem });
    };
    value.set_sensitive(true);
    Ok(value)
}
