//! What the proxy works with, resolved: the settings, and the key and secrets they lead to. Read at the start and again at
//! each reload, always whole, and with every mistake at once.

use std::{path::PathBuf, sync::Arc};

use http::{HeaderValue, uri::PathAndQuery};
use platform_core::{limit::ByteSize, name, secret::Secret, token::Secrets};
use platform_runtime::{
    config::{About, Environment, Mistakes, Objection, Sources, Values},
    file, report,
    settings::{self, Settings, token_secrets},
    trust::Trusted,
};

use crate::{budget::Prices, exchange::Snapshot, mask::Mask, metrics::Models, run::Terms, upstream};

/// The largest file that is taken for a key.
const MAX_KEY: ByteSize = ByteSize::kib(64);

/// Where the configuration comes from. The file and what it names are read again each time, the rest was given once.
#[derive(Debug)]
pub struct Origins {
    file: Option<PathBuf>,
    environment: Environment,
    flags: Vec<String>,
    /// `LITELLM_MASTER_KEY`
    key: Option<Secret>,
    /// `PROXY_SHARED_SECRET`
    token_secret: Option<Secret>,
}

impl Origins {
    /// A file, if one is named, the environment, from which secrets are taken out, and flags.
    #[must_use]
    pub fn new(file: Option<PathBuf>, mut environment: Environment, flags: Vec<String>) -> Self {
        let key = environment.take_secret(name::env::LITELLM_MASTER_KEY);
        let token_secret = environment.take_secret(name::env::PROXY_SHARED_SECRET);
        Self { file, environment, flags, key, token_secret }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// Every mistake in the settings, and in the files of secrets that they name.
    pub fn read(&self) -> Result<Config, Mistakes> {
        let sources = Sources::locate(self.file.clone(), self.environment.clone(), self.flags.clone())?;
        let (settings, values, found) = Settings::read_and(&sources, |settings| self.look(settings))?;
        Ok(Config::of(settings, values, found))
    }

    /// Reads what `settings` name, and says what is wrong with it.
    fn look(&self, settings: &Settings) -> Result<Found, Vec<Objection>> {
        let mut objections = settings.proxy.exposures(&Trusted::own());
        match (self.authorization(settings), self.secrets(settings), target(&settings.upstream)) {
            (Ok(authorization), Ok(secrets), Ok(target)) if objections.is_empty() => {
                Ok(Found { authorization, secrets: Arc::new(secrets), upstream: Arc::new(target) })
            }
            (authorization, secrets, target) => {
                objections.extend([authorization.err(), secrets.err(), target.err()].into_iter().flatten());
                Err(objections)
            }
        }
    }

    fn secrets(&self, settings: &Settings) -> Result<Secrets, Objection> {
        let file = settings.proxy.token_secrets_file.as_deref();
        token_secrets::read(file, self.token_secret.as_ref()).map_err(|error| Objection {
            about: match file {
                Some(_) => About::Setting("proxy.token_secrets_file".to_owned()),
                None => About::Variable(name::env::PROXY_SHARED_SECRET),
            },
            problem: report::chain(&error),
        })
    }

    /// The key is that of the file if one is named, else that of the environment. None at all is possible: some upstreams
    /// want none.
    fn authorization(&self, settings: &Settings) -> Result<Option<HeaderValue>, Objection> {
        let unusable = "the key is empty or holds characters that a header cannot carry";
        let (key, about) = match &settings.upstream.key_file {
            Some(path) => {
                let about = About::Setting("upstream.key_file".to_owned());
                let problem = |error| format!("cannot read upstream.key_file {}: {error}", path.display());
                let key = file::secret(path, MAX_KEY)
                    .map_err(|error| Objection { about: about.clone(), problem: problem(error) })?;
                (bearer(&key), about)
            }
            None => match &self.key {
                Some(key) => (bearer(key), About::Variable(name::env::LITELLM_MASTER_KEY)),
                None => return Ok(None),
            },
        };
        key.map(Some).ok_or_else(|| Objection { about, problem: unusable.to_owned() })
    }
}

/// What settings lead to.
#[derive(Debug)]
struct Found {
    authorization: Option<HeaderValue>,
    secrets: Arc<Secrets>,
    upstream: Arc<upstream::Target>,
}

/// The proxy's configuration.
#[derive(Debug)]
pub struct Config {
    pub(crate) settings: Settings,
    /// What each setting is, to tell what a reload changes.
    pub(crate) values: Values,
    /// What calls are forwarded to. Only that of the configuration a proxy starts with is ever used.
    pub(crate) upstream: Arc<upstream::Target>,
    /// `Bearer …`; marked sensitive, so that it is not printed.
    pub(crate) authorization: Option<HeaderValue>,
    /// What run tokens are signed with.
    pub(crate) secrets: Arc<Secrets>,
    own_uid: u32,
}

impl Config {
    fn of(settings: Settings, values: Values, found: Found) -> Self {
        Self {
            upstream: found.upstream,
            settings,
            values,
            authorization: found.authorization,
            secrets: found.secrets,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// The part of it that calls work with. What no agent was told `before` it is not told after, either.
    pub(crate) fn snapshot(&self, before: Option<&Snapshot>) -> Snapshot {
        let mut unspoken = self.unspoken();
        let earlier = before.iter().flat_map(|before| before.unspoken.iter());
        unspoken.extend(earlier.filter(|word| !unspoken.contains(word)).cloned().collect::<Vec<_>>());
        let mask = Mask::of(self.key().into_iter().chain(self.secrets.expose()));
        Snapshot {
            header_read: self.settings.proxy.connections.header_read.duration(),
            keep_alive: self.settings.proxy.connections.keep_alive.duration(),
            authorization: self.authorization.clone(),
            unspoken: unspoken.into(),
            mask: Arc::new(match before {
                Some(before) => mask.with(&before.mask),
                None => mask,
            }),
            secrets: Arc::clone(&self.secrets),
            prices: Prices::new(self.settings.prices.clone()),
            token_skew: self.settings.proxy.token_skew.duration(),
        }
    }

    /// What is the same for all runs.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            extra_fields: self.settings.proxy.extra_fields.clone(),
            bodies: self.settings.proxy.run_bodies,
        }
    }

    /// The models that have metrics of their own: all that are named.
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

    /// The upstream's key as it was given.
    fn key(&self) -> Option<&str> {
        self.authorization.as_ref()?.to_str().ok()?.strip_prefix("Bearer ")
    }

    /// What no agent is told: the upstream's key and address.
    fn unspoken(&self) -> Vec<String> {
        let authority = self.settings.upstream.authority();
        let authority = authority.as_str();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let words = [self.key(), Some(authority), Some(host)];
        // A shorter one would be found in innocent words.
        words.into_iter().flatten().filter(|word| word.len() >= 4).map(str::to_owned).collect()
    }

    /// Whether a process of `uid` may speak to the control socket.
    pub(crate) fn may_control(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own_uid || self.settings.proxy.control_uids.contains(&uid)
    }
}

fn target(settings: &settings::Upstream) -> Result<upstream::Target, Objection> {
    let objection = |setting: &str, problem: String| Objection {
        about: About::Setting(format!("upstream.{setting}")),
        problem,
    };
    let settings::BaseUrl { scheme, host, port } =
        settings::BaseUrl::parse(&settings.base_url).map_err(|problem| objection("base_url", problem))?;
    let authority = HeaderValue::from_str(&settings.authority())
        .map_err(|error| objection("base_url", error.to_string()))?;
    let probe = settings.probe.as_ref().map(|path| path.parse::<PathAndQuery>()).transpose();
    let config = upstream::Config {
        host,
        port,
        authority,
        scheme: match scheme {
            settings::Scheme::Http => upstream::Scheme::Http,
            settings::Scheme::Https => upstream::Scheme::Https { ca_file: settings.ca_file.clone() },
        },
        connect: settings.connect.duration(),
        handshake: settings.tls_handshake.duration(),
        idle: settings.pool_idle.duration(),
        most_idle: usize::try_from(settings.pool_max).unwrap_or(usize::MAX),
        probe: probe.map_err(|error| objection("probe", error.to_string()))?,
    };
    upstream::Target::new(config).map_err(|error| objection("ca_file", report::chain(&error)))
}

fn bearer(key: &Secret) -> Option<HeaderValue> {
    let key = key.expose().trim();
    let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let mut value = plain.then(|| HeaderValue::from_str(&format!("Bearer {key}")).ok())??;
    value.set_sensitive(true);
    Some(value)
}
