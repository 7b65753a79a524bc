//! Reads the address at which a gateway listens.

use std::{fmt, path::PathBuf, str::FromStr};

/// Address of a gateway, as an operator writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `ws://host:port`, unencrypted: for the loopback and for private networks.
    Tcp {
        /// Name or address; an IPv6 address without its brackets.
        host: String,
        /// Port; 80 if none is given.
        port: u16,
    },
    /// `wss://host:port`.
    Tls {
        /// Name or address that the certificate must be for; an IPv6 address without its brackets.
        host: String,
        /// Port; 443 if none is given.
        port: u16,
    },
    /// `unix:/path`: the socket of a relay that reaches the gateway's own network.
    Unix(PathBuf),
}

/// Error for a text that is not a gateway's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not the address of a gateway: {reason}; expected `ws://host:port`, `wss://host:port` or `unix:/path`"
)]
pub struct InvalidEndpoint {
    /// Text that was given, cut to 200 characters and escaped.
    pub text: String,
    /// Reason why the text is not an address.
    pub reason: &'static str,
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        parse(text).map_err(|reason| InvalidEndpoint {
            text: text.chars().take(200).flat_map(char::escape_default).collect(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<Endpoint, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        // Paths in URLs are written as `unix:///path`.
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.starts_with('/') && !path.contains('\0') {
            Ok(Endpoint::Unix(path.into()))
        } else {
            Err("the path of a socket begins with `/`")
        };
    }
    if let Some(rest) = text.strip_prefix("ws://") {
        return authority(rest, 80).map(|(host, port)| Endpoint::Tcp { host, port });
    }
    if let Some(rest) = text.strip_prefix("wss://") {
        return authority(rest, 443).map(|(host, port)| Endpoint::Tls { host, port });
    }
    Err("it does not begin with `ws://`, `wss://` or `unix:`")
}

fn authority(text: &str, default_port: u16) -> Result<(String, u16), &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("an IPv6 address stands in brackets")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("there is no IPv6 address between the brackets");
        }
        (host, port)
    } else {
        text.split_at(text.find(':').unwrap_or(text.len()))
    };
    let is_v6 = host.contains(':');
    let is_name =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if !is_v6 && !is_name {
        return Err("a host is letters, digits, `-` and `.`, without a user and without a path");
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port != 0).ok_or("a port is 1 to 65535")?
        }
        _ => return Err("a port is 1 to 65535, with nothing after it"),
    };
    Ok((host.to_owned(), port))
}

impl Endpoint {
    /// Returns the `Host` of the upgrade request.
    pub(crate) fn authority(&self) -> String {
        let (host, port) = match self {
            Self::Unix(_) => return "localhost".to_owned(),
            Self::Tcp { host, port } | Self::Tls { host, port } => (host, port),
        };
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { .. } => write!(f, "ws://{}", self.authority()),
            Self::Tls { .. } => write!(f, "wss://{}", self.authority()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for (text, shown) in [
            ("ws://127.0.0.1:18789", "ws://127.0.0.1:18789"),
            ("ws://gateway", "ws://gateway:80"),
            ("wss://gw.example.org/", "wss://gw.example.org:443"),
            ("wss://[::1]:8443", "wss://[::1]:8443"),
            ("unix:/run/gateway.sock", "unix:/run/gateway.sock"),
            ("unix:///run/gateway.sock", "unix:/run/gateway.sock"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(shown.parse(), Ok(endpoint));
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for bad in [
            "",
            "gateway:18789",
            "http://gateway:18789",
            "ws://",
            "ws://:80",
            "ws://user@gateway:80",
            "ws://gateway:0",
            "ws://gateway:65536",
            "ws://gateway:+80",
            "ws://gateway:80/path",
            "ws://gateway\r\nX: y",
            "ws://[::1",
            "ws://[gateway]:80",
            "unix:relative.sock",
        ] {
            let error = bad.parse::<Endpoint>().unwrap_err();
            assert!(error.to_string().contains("expected `ws://host:port`"), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
