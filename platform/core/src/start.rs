//! Defines the start file, which names the command for a warm container. The host writes it, and `sandbox-init` reads
//! it.
//!
//! It replaces the container's own command line and environment. Every process inside can read it, so it must not hold
//! a secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most bytes of a start file: hardly less than Linux accepts as arguments and environment of a program.
pub const MAX_SIZE: u64 = 1 << 20;

/// Program to start, checked as far as is possible without starting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Start {
    argv: Vec<String>,
    environment: BTreeMap<String, String>,
    working_directory: String,
}

/// Content of the file before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    argv: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    working_directory: String,
}

/// Reason why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStart {
    /// The argument list is empty.
    #[error("argv names no program")]
    NoProgram,
    /// The working directory is relative, so it would depend on the reader's own directory.
    #[error("working_directory `{0}` is not an absolute path")]
    RelativeDirectory(String),
    /// The name cannot be used in an environment, where lines are `NAME=value`.
    #[error("`{0}` cannot be the name of a variable")]
    VariableName(String),
    /// The text contains a zero byte, where the kernel's strings end.
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
}

impl Start {
    /// Creates a start from a program with its arguments, variables added to its environment, and a working directory.
    ///
    /// # Errors
    /// [`InvalidStart`], the first reason for which the kernel would refuse the program.
    pub fn new(
        argv: Vec<String>,
        environment: BTreeMap<String, String>,
        working_directory: String,
    ) -> Result<Self, InvalidStart> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(InvalidStart::NoProgram);
        }
        if !working_directory.starts_with('/') {
            return Err(InvalidStart::RelativeDirectory(working_directory));
        }
        if let Some(name) = environment.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err(InvalidStart::VariableName(name.clone()));
        }
        let has_zero = |text: &String| text.contains('\0');
        if argv.iter().any(has_zero) {
            return Err(InvalidStart::ZeroByte("argv"));
        }
        if environment.iter().any(|(name, value)| has_zero(name) || has_zero(value)) {
            return Err(InvalidStart::ZeroByte("environment"));
        }
        if has_zero(&working_directory) {
            return Err(InvalidStart::ZeroByte("working_directory"));
        }
        Ok(Self { argv, environment, working_directory })
    }

    /// Returns the program and its arguments; at least the program.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// Returns the variables that are added to the container's own environment, and override it.
    #[must_use]
    pub const fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Returns the working directory, an absolute path.
    #[must_use]
    pub fn working_directory(&self) -> &str {
        &self.working_directory
    }
}

impl TryFrom<Unchecked> for Start {
    type Error = InvalidStart;

    fn try_from(unchecked: Unchecked) -> Result<Self, InvalidStart> {
        Self::new(unchecked.argv, unchecked.environment, unchecked.working_directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let start = Start::new(
            vec!["node".to_owned(), "a b".to_owned(), String::new()],
            [("RUN_ID".to_owned(), "r=1\n".to_owned())].into(),
            "/workspace".to_owned(),
        )
        .unwrap();
        let json = serde_json::to_string(&start).unwrap();
        assert_eq!(
            json,
            r#"{"argv":["node","a b",""],"environment":{"RUN_ID":"r=1\n"},"working_directory":"/workspace"}"#
        );
        assert_eq!(serde_json::from_str::<Start>(&json).unwrap(), start);
    }

    #[test]
    fn an_impossible_start_is_refused_with_a_reason() {
        for (json, reason) in [
            (r#"{"argv":[],"working_directory":"/"}"#, "argv names no program"),
            (r#"{"argv":[""],"working_directory":"/"}"#, "argv names no program"),
            (r#"{"argv":["a"],"working_directory":"work"}"#, "`work` is not an absolute path"),
            (r#"{"argv":["a"],"working_directory":""}"#, "`` is not an absolute path"),
            (r#"{"argv":["a"],"working_directory":"/","environment":{"":"x"}}"#, "name of a variable"),
            (r#"{"argv":["a"],"working_directory":"/","environment":{"A=B":"x"}}"#, "`A=B` cannot be"),
            (r#"{"argv":["a\u0000b"],"working_directory":"/"}"#, "argv contains a zero byte"),
            (
                r#"{"argv":["a"],"working_directory":"/","environment":{"A":"\u0000"}}"#,
                "environment contains a zero",
            ),
            (r#"{"argv":["a"],"working_directory":"/\u0000"}"#, "working_directory contains a zero byte"),
            (r#"{"argv":["a"]}"#, "missing field `working_directory`"),
            (r#"{"argv":"a","working_directory":"/"}"#, "expected a sequence"),
            (r#"{"argv":["a"],"working_directory":"/","shell":true}"#, "unknown field `shell`"),
            (r#"{"argv":["a"],"working_dir"#, "EOF while parsing"),
            ("", "EOF while parsing"),
        ] {
            let error = serde_json::from_str::<Start>(json).unwrap_err().to_string();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
