//! What a container that waits is told to become: the start file, written by the host and read by `sandbox-init`.
//!
//! It says what a container's own command line and environment would have said. It is read by whoever is inside, so
//! no secret belongs in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most bytes of a start file: what Linux takes as arguments and environment of a program is hardly more.
pub const MOST_BYTES: u64 = 1 << 20;

/// A program to start, which can be started as far as one can tell without trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Start {
    argv: Vec<String>,
    environment: BTreeMap<String, String>,
    working_directory: String,
}

/// What is in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    argv: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    working_directory: String,
}

/// Why something cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStart {
    /// There is nothing to execute.
    #[error("argv names no program")]
    NoProgram,
    /// A relative path would depend on where the reader happens to be.
    #[error("working_directory `{0}` is not an absolute path")]
    RelativeDirectory(String),
    /// The environment is lines of `NAME=value`.
    #[error("`{0}` cannot be the name of a variable")]
    VariableName(String),
    /// The kernel's strings end at a zero byte.
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
}

impl Start {
    /// A program with its arguments, what is added to its environment, and where it begins.
    ///
    /// # Errors
    /// If no kernel could start that.
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
        let zero = |text: &String| text.contains('\0');
        if argv.iter().any(zero) {
            return Err(InvalidStart::ZeroByte("argv"));
        }
        if environment.iter().any(|(name, value)| zero(name) || zero(value)) {
            return Err(InvalidStart::ZeroByte("environment"));
        }
        if zero(&working_directory) {
            return Err(InvalidStart::ZeroByte("working_directory"));
        }
        Ok(Self { argv, environment, working_directory })
    }

    /// Program and arguments, at least the program.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// What is added to the container's own environment, and wins over it.
    #[must_use]
    pub const fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// An absolute path.
    #[must_use]
    pub fn working_directory(&self) -> &str {
        &self.working_directory
    }
}

impl TryFrom<Unchecked> for Start {
    type Error = InvalidStart;

    fn try_from(found: Unchecked) -> Result<Self, InvalidStart> {
        Self::new(found.argv, found.environment, found.working_directory)
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
    fn what_no_kernel_could_start_is_refused_and_named() {
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
