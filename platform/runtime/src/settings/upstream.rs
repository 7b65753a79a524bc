//! The model API that calls are forwarded to.

use std::path::PathBuf;

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
    /// How long an idle connection is kept for the next call.
    pub pool_idle: Millis,
}

impl Upstream {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        let settings = Self {
            base_url: field("base_url", "Scheme, host and port of the upstream, without a path.")
                .variable(name::env::LITELLM_BASE_URL)
                .or("http://127.0.0.1:4000".to_owned()),
            key_file: field("key_file", "File that holds the upstream's key and nothing else; it should be readable by the proxy's user only.")
                .optional(),
            default_model: field("default_model", "Model for agents whose entry names none.").optional(),
            connect: field("connect", "Longest wait for a connection to the upstream.").or(limit::data_plane::CONNECT),
            pool_idle: field("pool_idle", "How long an idle connection is kept. Must be below the upstream's own limit: gunicorn 2s, uvicorn 5s.")
                .or(limit::data_plane::POOL_IDLE),
        };
        if let Err(problem) = authority(&settings.base_url) {
            section.reject("base_url", problem);
        }
        settings
    }

    /// `host:port` of the upstream.
    #[must_use]
    pub fn authority(&self) -> String {
        authority(&self.base_url).unwrap_or_default()
    }
}

/// `host:port` of `http://host[:port]`.
fn authority(base_url: &str) -> Result<String, String> {
    let expected = |what: &str| Err(format!("{what}: expected `http://host:port`, found `{base_url}`"));
    if base_url.starts_with("https://") {
        return expected("TLS to the upstream is not supported yet");
    }
    let Some(authority) = base_url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')) else {
        return expected("not a base URL");
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (authority, Some(80)),
    };
    let host_is_plain = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
    match port {
        Some(port) if host_is_plain => Ok(format!("{host}:{port}")),
        _ => expected("not a base URL"),
    }
}
