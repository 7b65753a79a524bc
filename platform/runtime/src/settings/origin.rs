//! Reads the origins of web pages: scheme, host and port, in the form in which browsers name them.

use std::{fmt, net::SocketAddr, str::FromStr};

use platform_core::invalid::InvalidValue;
use serde_json::json;

use super::{BaseUrl, Scheme};
use crate::config::Value;

/// WebOrigin of a web page, such as `https://sluice.example` or `http://127.0.0.1:4180`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(BaseUrl);

/// Error for a text that is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an origin: expected a scheme, a host and perhaps a port, such as `https://sluice.example`, found `{0}`"
)]
pub struct InvalidOrigin(String);

impl WebOrigin {
    /// Returns the origin of pages that a listener at `address` serves.
    #[must_use]
    pub fn of(scheme: Scheme, address: SocketAddr) -> Self {
        Self(BaseUrl { scheme, host: address.ip().to_string(), port: address.port() })
    }

    /// Returns the name or address of the host, without brackets and in lower case.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Returns whether pages of this origin come by TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.0.scheme == Scheme::Https
    }
}

impl FromStr for WebOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        if text.ends_with('/') {
            return Err(invalid());
        }
        let url = BaseUrl::parse(text).map_err(|_other_words| invalid())?;
        Ok(Self(BaseUrl { host: url.host.to_ascii_lowercase(), ..url }))
    }
}

impl Value for WebOrigin {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(InvalidValue::of)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": "^https?://" })
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.to_string())
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.0.authority();
        let (scheme, default_port) = match self.0.scheme {
            Scheme::Http => ("http", ":80"),
            Scheme::Https => ("https", ":443"),
        };
        // Browsers leave the default port out.
        let has_default_port = self.0.port == self.0.scheme.port();
        let shown = if has_default_port { authority.trim_end_matches(default_port) } else { &authority };
        write!(f, "{scheme}://{shown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for (text, written) in [
            ("https://Sluice.Example", "https://sluice.example"),
            ("https://sluice.example:443", "https://sluice.example"),
            ("http://127.0.0.1:80", "http://127.0.0.1"),
            ("http://127.0.0.1:4180", "http://127.0.0.1:4180"),
            ("https://[::1]:4180", "https://[::1]:4180"),
            ("https://[::1]", "https://[::1]"),
        ] {
            assert_eq!(text.parse::<WebOrigin>().unwrap().to_string(), written, "{text}");
        }
        let address = "[::1]:4180".parse().unwrap();
        assert_eq!(WebOrigin::of(Scheme::Https, address).to_string(), "https://[::1]:4180");
    }

    #[test]
    fn other_texts_are_no_origins() {
        for text in [
            "",
            "null",
            "*",
            "sluice.example",
            "https://",
            "https://h/",
            "https://h/path",
            "https://u@h",
            "https://h:x",
            "ws://h",
            "https://*.example",
        ] {
            assert!(text.parse::<WebOrigin>().is_err(), "{text}");
        }
    }
}
