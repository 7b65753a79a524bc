//! Reads the settings of the upstream, the model API that calls are forwarded to.

use std::{net::Ipv6Addr, path::PathBuf};

use platform_core::{
    invalid::InvalidValue,
    limit::{self, Millis},
    name,
};

use super::ServiceUrl;
use crate::config::{Section, settings};

settings! {
    /// `[upstream]`
    #[derive(Debug, Clone)]
    pub struct Upstream read from section {
        /// Scheme, host and port of the upstream, and the path below which its API is, such as
        /// `https://models.example/openai`. A `/v1` at its end is left out: calls bring it.
        pub base_url: String => variable(name::env::LITELLM_BASE_URL).or("http://127.0.0.1:4000".to_owned()),
        /// File that holds the upstream's key and nothing else; closed to other users.
        pub key_file: Option<PathBuf> => optional(),
        /// File that holds a key that may mint and delete keys, and nothing else. Each run has its own key then.
        pub admin_key_file: Option<PathBuf> = read_admin_key_file(section),
        /// Model for agents without one in their entry.
        pub default_model: Option<String> = section.field("default_model", "Model for agents whose entry names none.").optional(),
        /// Reads the prices of models that `[prices]` does not name from `/model/info` of LiteLLM. Other upstreams show
        /// none there, and are asked in vain every five minutes.
        pub model_info: bool => or(true),
        /// Longest wait for a connection to the upstream.
        pub connect_timeout: Millis => or(limit::data_plane::CONNECT),
        /// Longest wait for a TLS session, after that for the connection.
        pub tls_handshake_timeout: Millis => or(limit::data_plane::TLS_HANDSHAKE),
        /// PEM file of the CA certificates that are trusted with an https:// upstream, and no others; the system's if
        /// absent.
        pub ca_file: Option<PathBuf> => optional(),
        /// Longest time that an idle connection is kept. Must be below the upstream's own limit: gunicorn 2s, uvicorn
        /// 5s (4s is good there).
        pub pool_idle_timeout: Millis => or(limit::data_plane::POOL_IDLE),
        /// Most idle connections that each data-plane thread keeps.
        pub pool_max_idle_per_thread: u32 => or(limit::data_plane::POOL_MAX),
        /// Path below `base_url` that is requested of an upstream that is down, without a key, to detect that it is up again, such as
        /// `/health/liveliness` of LiteLLM; if absent, a connection is enough.
        pub probe_path: Option<String> => optional(),
    }
}

/// A parsed base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// Scheme, which decides on TLS.
    pub scheme: Scheme,
    /// Name or address, without brackets.
    pub host: String,
    /// Port; that of the scheme if none is named.
    pub port: u16,
}

/// Transport to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Upstream {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let settings = Self::read(section);
        if let Err(problem) = settings.url() {
            section.reject("base_url", problem);
        }
        if settings.probe_path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            section.reject("probe_path", "not a path: it begins with `/`".to_owned());
        }
        settings
    }

    /// Returns where the upstream is. Its path has no `/v1` at the end.
    ///
    /// # Errors
    /// A description of what is wrong with `base_url`.
    pub fn url(&self) -> Result<ServiceUrl, InvalidValue> {
        let ServiceUrl { base, path } = ServiceUrl::split(&self.base_url)?;
        let path = path.strip_suffix("/v1").unwrap_or(&path).to_owned();
        Ok(ServiceUrl { base, path })
    }
}

/// Reads the file of the key that mints keys, which has to be named where each run has its own key, and there
/// alone.
fn read_admin_key_file(section: &Section<'_>) -> Option<PathBuf> {
    let key_per_run: bool = section
        .field("key_per_run", "Gives each run a key of its own at a LiteLLM with a database, with the run's budget as a second limit; deleted when the run ends. Needs `admin_key_file`.")
        .or(false);
    let file: Option<PathBuf> = section
        .field("admin_key_file", "File that holds a key that may call `/key/generate` and `/key/delete` of LiteLLM, and nothing else; closed to other users. For `key_per_run`.")
        .optional();
    match (key_per_run, &file) {
        (true, None) => {
            section.reject(
                "key_per_run",
                "the keys of runs are minted with a key: name its file in `admin_key_file`".to_owned(),
            );
        }
        (false, Some(_)) => {
            section.reject(
                "admin_key_file",
                "the key is not used: set `key_per_run = true`, or leave the file out".to_owned(),
            );
        }
        _ => {}
    }
    file
}

impl BaseUrl {
    /// Parses `http://host[:port]` or `https://host[:port]`.
    ///
    /// # Errors
    /// A description of the error.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let invalid = || {
            let expected = "`http://host:port` or `https://host:port`";
            InvalidValue::from(format!("not a base URL: expected {expected}, found `{text}`"))
        };
        Self::check_user(text)?;
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(invalid()),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_error| invalid())?),
            _ => (authority, scheme.port()),
        };
        let (host, is_plain) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => (address, address.parse::<Ipv6Addr>().is_ok()),
            None => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
                (host, !host.is_empty() && host.bytes().all(plain))
            }
        };
        if is_plain { Ok(Self { scheme, host: host.to_owned(), port }) } else { Err(invalid()) }
    }

    /// Refuses an address with a user or a password, without repeating it.
    pub(super) fn check_user(text: &str) -> Result<(), InvalidValue> {
        match text.contains('@') {
            true => {
                Err("not a base URL: it has a user or a password; the key goes into upstream.key_file".into())
            }
            false => Ok(()),
        }
    }

    /// Returns `host:port`.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl Scheme {
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}
