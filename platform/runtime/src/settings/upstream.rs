//! The model API that calls are forwarded to.

use std::{net::Ipv6Addr, path::PathBuf};

use platform_core::{
    limit::{self, Millis},
    name,
};

use crate::config::Section;

/// `[upstream]`
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Scheme, host and port; a path is not possible.
    pub base_url: String,
    /// File that holds the key and nothing else.
    pub key_file: Option<PathBuf>,
    /// Model for agents whose entry names none.
    pub default_model: Option<String>,
    /// Longest wait for a connection.
    pub connect: Millis,
    /// Longest wait for a TLS session on it.
    pub tls_handshake: Millis,
    /// PEM file of the CA certificates that are trusted; those of the system if absent.
    pub ca_file: Option<PathBuf>,
    /// How long an idle connection is kept for the next call.
    pub pool_idle: Millis,
    /// How many idle connections each data-plane thread keeps.
    pub pool_max: u32,
    /// What an upstream that is down is asked to find out whether it is up again; absent: a connection is enough.
    pub probe: Option<String>,
}

/// A base URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// Whether TLS is spoken.
    pub scheme: Scheme,
    /// Name or address, without brackets.
    pub host: String,
    /// Port; that of the scheme if none is named.
    pub port: u16,
}

/// How the upstream is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain.
    Http,
    /// In TLS.
    Https,
}

impl Upstream {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        let settings = Self {
            base_url: field("base_url", "Scheme, host and port of the upstream, without a path.")
                .variable(name::env::LITELLM_BASE_URL)
                .or("http://127.0.0.1:4000".to_owned()),
            key_file: field("key_file", "File that holds the upstream's key and nothing else; closed to other users.")
                .optional(),
            default_model: field("default_model", "Model for agents whose entry names none.").optional(),
            connect: field("connect", "Longest wait for a connection to the upstream.").or(limit::data_plane::CONNECT),
            tls_handshake: field("tls_handshake", "Longest wait for a TLS session, after that for the connection.")
                .or(limit::data_plane::TLS_HANDSHAKE),
            ca_file: field("ca_file", "PEM file of the CA certificates that are trusted with an https:// upstream, and no others; the system's if absent.")
                .optional(),
            pool_idle: field("pool_idle", "How long an idle connection is kept. Must be below the upstream's own limit: gunicorn 2s, uvicorn 5s (4s is good there).")
                .or(limit::data_plane::POOL_IDLE),
            pool_max: field("pool_max", "How many idle connections each data-plane thread keeps.")
                .or(limit::data_plane::POOL_MAX),
            probe: field("probe", "Path that an upstream which is down is asked for, without a key, to find out whether it is up again, such as `/health/liveliness` of LiteLLM; if absent, a connection is enough.")
                .optional(),
        };
        if let Err(problem) = BaseUrl::parse(&settings.base_url) {
            section.reject("base_url", problem);
        }
        if settings.probe.as_ref().is_some_and(|path| !path.starts_with('/')) {
            section.reject("probe", "not a path: it begins with `/`".to_owned());
        }
        settings
    }

    /// `host:port` of the upstream.
    #[must_use]
    pub fn authority(&self) -> String {
        BaseUrl::parse(&self.base_url).map(|url| url.authority()).unwrap_or_default()
    }
}

impl BaseUrl {
    /// Takes `http://host[:port]` or `https://host[:port]` apart.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("not a base URL: expected `http://host:port` or `https://host:port`, found `{text}`");
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(wrong()),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_error| wrong())?),
            _ => (authority, scheme.port()),
        };
        let (host, is_plain) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => (address, address.parse::<Ipv6Addr>().is_ok()),
            None => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
                (host, !host.is_empty() && host.bytes().all(plain))
            }
        };
        if is_plain { Ok(Self { scheme, host: host.to_owned(), port }) } else { Err(wrong()) }
    }

    /// `host:port`
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl Scheme {
    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}
