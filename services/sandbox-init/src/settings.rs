//! What the container's environment says. Read here and nowhere else, once; an empty variable is as good as none.

use std::{env, ffi::OsString, path::PathBuf};

use platform_core::name::{self, path};

use crate::error::Error;

#[derive(Debug)]
pub(crate) struct Settings {
    /// Where the run's socket is.
    pub(crate) socket: PathBuf,
    /// Where `localhost` leads to it.
    pub(crate) port: u16,
    /// What to wait for if there is no command.
    pub(crate) start_file: Option<PathBuf>,
    /// Whether the agent is told of a model API.
    pub(crate) expects_api: bool,
}

impl Settings {
    #[expect(clippy::disallowed_methods, reason = "it has no configuration but its environment")]
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Self::read(|name| env::var_os(name))
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let given = |name| variable(name).filter(|value| !value.is_empty());
        let port = match given(name::env::LLM_PROXY_PORT).map(|port| port.to_string_lossy().into_owned()) {
            None => name::BRIDGE_PORT,
            Some(text) => text.parse().map_err(|_not_a_number| Error::Port { text })?,
        };
        Ok(Self {
            socket: given(name::env::LLM_PROXY_SOCKET).map_or_else(|| path::SOCKET.into(), PathBuf::from),
            port,
            start_file: given(name::env::SANDBOX_START_FILE).map(PathBuf::from),
            expects_api: given(name::env::OPENAI_API_BASE).is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::read(|name| find(name).map(|(_, value)| value.into()))
    }

    #[test]
    fn what_is_not_said_is_as_the_sandbox_runtime_has_it() {
        for nothing in
            [&[][..], &[("LLM_PROXY_PORT", ""), ("LLM_PROXY_SOCKET", ""), ("SANDBOX_START_FILE", "")]]
        {
            let settings = read(nothing).unwrap();
            assert_eq!((settings.socket, settings.port), ("/llm-sock/llm.sock".into(), 8080));
            assert_eq!((settings.start_file, settings.expects_api), (None, false));
        }
    }

    #[test]
    fn what_is_said_holds() {
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
            let error = read(&[("LLM_PROXY_PORT", port)]).unwrap_err();
            assert_eq!(error.to_string(), format!("LLM_PROXY_PORT is `{port}`, which is not a port"));
        }
    }
}
