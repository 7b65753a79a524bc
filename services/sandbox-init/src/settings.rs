//! Reads the container's environment, once and only here. An empty variable counts as absent.

use std::{env, ffi::OsString, path::PathBuf};

use platform_core::name::{self, path};

use crate::error::Error;

/// Settings of one sandbox.
#[derive(Debug)]
pub(crate) struct InitSettings {
    /// Path of the run's socket.
    pub(crate) socket: PathBuf,
    /// Port of `localhost` that leads to the run's socket.
    pub(crate) port: u16,
    /// Socket that leads into the sandbox, and the port that it leads to.
    pub(crate) entry: Option<(PathBuf, u16)>,
    /// File to wait for without a command.
    pub(crate) start_file: Option<PathBuf>,
    /// True if the agent gets the address of a model API.
    pub(crate) expects_api: bool,
    /// Home of the agent, unless the start file names another.
    pub(crate) home: Option<PathBuf>,
}

impl InitSettings {
    #[expect(clippy::disallowed_methods, reason = "it has no configuration but its environment")]
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Self::read(|name| env::var_os(name))
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let value_of = |name| variable(name).filter(|value| !value.is_empty());
        let port = |variable| {
            let text = value_of(variable).map(|port| port.to_string_lossy().into_owned());
            text.map(|text| text.parse().map_err(|_not_a_number| Error::Port { variable, text })).transpose()
        };
        let entry = match value_of(name::env::SANDBOX_ENTRY_SOCKET).map(PathBuf::from) {
            None => None,
            Some(socket) => Some((socket, port(name::env::SANDBOX_ENTRY_PORT)?.ok_or(Error::NoEntryPort)?)),
        };
        Ok(Self {
            socket: value_of(name::env::LLM_PROXY_SOCKET).map_or_else(|| path::SOCKET.into(), PathBuf::from),
            port: port(name::env::LLM_PROXY_PORT)?.unwrap_or(name::BRIDGE_PORT),
            entry,
            start_file: value_of(name::env::SANDBOX_START_FILE).map(PathBuf::from),
            expects_api: value_of(name::env::OPENAI_API_BASE).is_some(),
            home: value_of("HOME").map(PathBuf::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<InitSettings, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        InitSettings::read(|name| find(name).map(|(_, value)| value.into()))
    }

    #[test]
    fn absent_variables_have_the_runtimes_defaults() {
        for nothing in
            [&[][..], &[("LLM_PROXY_PORT", ""), ("LLM_PROXY_SOCKET", ""), ("SANDBOX_START_FILE", "")]]
        {
            let settings = read(nothing).unwrap();
            assert_eq!((settings.socket, settings.port), ("/llm-sock/llm.sock".into(), 8080));
            assert_eq!((settings.start_file, settings.expects_api), (None, false));
        }
    }

    #[test]
    fn variables_are_read_and_ports_checked() {
        let settings = read(&[
            ("LLM_PROXY_PORT", "9"),
            ("LLM_PROXY_SOCKET", "/s"),
            ("SANDBOX_START_FILE", "/f"),
            ("OPENAI_API_BASE", "http://localhost:9"),
        ]);
        let settings = settings.unwrap();
        assert_eq!((settings.socket, settings.port), ("/s".into(), 9));
        assert_eq!((settings.start_file, settings.expects_api), (Some("/f".into()), true));
        for port in ["http", "65536", "-1", "80 "] {
            for variable in ["LLM_PROXY_PORT", "SANDBOX_ENTRY_PORT"] {
                let error =
                    read(&[(variable, port), ("SANDBOX_ENTRY_SOCKET", "/e"), ("SANDBOX_ENTRY_PORT", "9")]);
                let message = format!("{variable} is `{port}`, which is not a port");
                assert_eq!(error.unwrap_err().to_string(), message);
            }
        }
    }

    #[test]
    fn an_entry_needs_a_socket_and_a_port() {
        assert_eq!(read(&[("SANDBOX_ENTRY_PORT", "9")]).unwrap().entry, None);
        let both = read(&[("SANDBOX_ENTRY_SOCKET", "/e"), ("SANDBOX_ENTRY_PORT", "9")]);
        assert_eq!(both.unwrap().entry, Some(("/e".into(), 9)));
        let message =
            "SANDBOX_ENTRY_SOCKET is set but SANDBOX_ENTRY_PORT is not: which port does it lead to?";
        assert_eq!(read(&[("SANDBOX_ENTRY_SOCKET", "/e")]).unwrap_err().to_string(), message);
    }
}
