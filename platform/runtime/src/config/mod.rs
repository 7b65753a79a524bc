//! Reads the configuration: one TOML file, overridden by the environment, overridden by flags.
//!
//! The code that reads a setting also documents it: each field is read with its name, description and default. Most
//! descriptions are the comments of fields (`settings!`). The list of known keys, the check for unknown keys and the
//! published JSON Schema come from that same reading. All errors are collected and reported together, each with its
//! origin.
//!
//! [`Environment::capture`] is the only function that reads the environment of `sluice` and `sluice-proxy`.

mod described;
mod effective;
mod error;
mod field;
mod named;
mod reader;
mod schema;
mod value;

use std::{collections::BTreeMap, io, path::PathBuf};

use platform_core::{limit::ByteSize, name, secret::Secret};

pub(crate) use self::{
    described::settings,
    value::{kind, written_as_word},
};
pub use self::{
    effective::{EffectiveSetting, explain},
    error::{About, ConfigError, ConfigErrors, Origin, ValidationError},
    field::Field,
    reader::{Section, Values, defaults, read},
    schema::json_schema,
    value::Value,
};
use crate::file;

/// Configuration file that is read if no other is named.
pub const DEFAULT_FILE: &str = "/etc/sluicegate/sluice.toml";

/// Largest configuration file that is read.
const MAX_FILE: ByteSize = ByteSize::mib(4);

/// The process's environment, captured once.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Captures the environment this process was started with. Variables that are not UTF-8 are left out.
    #[must_use]
    pub fn capture() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// Returns the value of `name`, if it is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns all variables that are set and not empty.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(_, value)| !value.is_empty())
    }

    /// Moves a secret out of the environment, so that only one copy of it exists.
    #[must_use]
    pub fn take_secret(&mut self, name: &str) -> Option<Secret> {
        self.0.remove(name).filter(|value| !value.is_empty()).map(Secret::new)
    }

    fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        let not_overrides = [
            name::env::SLUICE_CONFIG,
            name::env::SLUICE_LOG,
            name::env::SLUICE_STORE_PASSWORD,
            name::env::SLUICE_FAILPOINT,
        ];
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(move |(name, _)| {
            name.starts_with(name::env::OVERRIDE_PREFIX) && !not_overrides.contains(name)
        })
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// Sources that a configuration is read from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Path of the file, for messages, and its text. `None` without a file: all settings have their defaults.
    pub file: Option<(PathBuf, String)>,
    /// The environment.
    pub environment: Environment,
    /// Values of `--set section.key=value`.
    pub flags: Vec<String>,
}

impl Sources {
    /// Reads the file named by the flag or by `SLUICE_CONFIG`, else [`DEFAULT_FILE`] if there is one.
    ///
    /// # Errors
    /// [`ConfigErrors`] with one entry, if a named file cannot be read.
    pub fn locate(
        flag: Option<PathBuf>,
        environment: Environment,
        flags: Vec<String>,
    ) -> Result<Self, ConfigErrors> {
        let named = flag.or_else(|| environment.get(name::env::SLUICE_CONFIG).map(PathBuf::from));
        let path = named.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        let file = match file::text(&path, MAX_FILE) {
            Ok(text) => Some((path, text)),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(ConfigErrors::unreadable(&path, &error)),
        };
        Ok(Self { file, environment, flags })
    }
}

#[cfg(test)]
mod tests;
