//! Reads the sandbox's environment, once and only here. An empty variable counts as absent.

use std::env;

use platform_core::{
    id::RunId,
    name::{self, path},
};

use crate::error::Error;

/// Settings of an invocation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolSettings {
    /// Address of the gateway.
    pub(crate) gateway: GatewayAddress,
    /// Run of the sandbox.
    pub(crate) run_id: Option<RunId>,
}

/// Address that requests go to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GatewayAddress {
    /// Host and port, as a `host` header has them.
    pub(crate) authority: String,
    /// Path before that of a request, without a `/` at its end.
    pub(crate) base: String,
}

impl ToolSettings {
    #[expect(clippy::disallowed_methods, reason = "it has no configuration but its environment")]
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Self::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let value_of = |name| variable(name).filter(|value| !value.is_empty());
        let url = value_of(name::env::COGNI_GATEWAY_URL).unwrap_or_else(|| path::API_BASE.to_owned());
        let run_id = value_of(name::env::RUN_ID).map(|id| RunId::parse(&id)).transpose();
        let invalid = |error| Error::Usage(format!("{}: {error}", name::env::RUN_ID));
        Ok(Self { gateway: GatewayAddress::parse(&url)?, run_id: run_id.map_err(invalid)? })
    }
}

impl GatewayAddress {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let invalid = || {
            let variable = name::env::COGNI_GATEWAY_URL;
            Error::Usage(format!("{variable} is `{url}`, and not an address like {}", path::API_BASE))
        };
        let rest = url.strip_prefix("http://").ok_or_else(invalid)?;
        let (authority, base) = rest.split_once('/').unwrap_or((rest, ""));
        let is_sent_as_it_is = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_plain = !authority.is_empty()
            && !authority.contains(['@', '?', '#'])
            && !base.contains(['?', '#'])
            && is_sent_as_it_is(url);
        if !is_plain {
            return Err(invalid());
        }
        let base = base.trim_end_matches('/');
        let base = if base.is_empty() { String::new() } else { format!("/{base}") };
        Ok(Self { authority: authority.to_owned(), base })
    }

    /// Returns host and port to connect to.
    pub(crate) fn endpoint(&self) -> String {
        let port = self.authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        if port.is_some() { self.authority.clone() } else { format!("{}:80", self.authority) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_variables_have_the_sandboxes_defaults() {
        let settings = ToolSettings::read(|_| Some(String::new())).unwrap();
        assert_eq!((settings.gateway.endpoint().as_str(), settings.run_id), ("localhost:8080", None));
    }

    #[test]
    fn an_address_is_read_or_named() {
        let address = GatewayAddress::parse("http://127.0.0.1:9/base/").unwrap();
        assert_eq!((address.authority.as_str(), address.base.as_str()), ("127.0.0.1:9", "/base"));
        assert_eq!(GatewayAddress::parse("http://[::1]").unwrap().endpoint(), "[::1]:80");
        for bad in [
            "",
            "localhost:8080",
            "https://localhost",
            "http://",
            "http://a b",
            "http://u@h",
            "http://h/?q",
            "http://h\r\nx: y",
        ] {
            assert_eq!(GatewayAddress::parse(bad).unwrap_err().exit_code(), 2, "{bad}");
        }
    }
}
