//! Defines the errors in a configuration, with the line, variable or flag that each is in.

use std::{fmt, io, path::Path};

use platform_core::code::{Code, Coded};

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file, counted from 1; 0 stands for the whole file.
    File {
        /// The file's path.
        path: String,
        /// The line.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag.
    Flag(String),
    /// The value is not set.
    Nowhere,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0 } => f.write_str(path),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "--set {flag}"),
            Self::Nowhere => f.write_str("not set"),
        }
    }
}

/// An error in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Source of the wrong value.
    pub origin: Origin,
    /// Dotted key of the setting; empty if the file cannot be parsed.
    pub key: String,
    /// Description of the error and of what is expected.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// An error in what settings refer to, such as a file that cannot be read or two settings that contradict each other.
#[derive(Debug)]
pub struct ValidationError {
    /// Subject of the error.
    pub about: About,
    /// Description of the error and of what is expected.
    pub problem: String,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            About::File => f.write_str(&self.problem),
            About::Setting(key) => write!(f, "{key}: {}", self.problem),
            About::Variable(name) => write!(f, "environment variable {name}: {}", self.problem),
        }
    }
}

/// Subject of a [`ValidationError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The configuration file itself, which the problem names.
    File,
    /// A setting, by its dotted key.
    Setting(String),
    /// A variable of the environment that is not a setting.
    Variable(&'static str),
}

/// All errors in a configuration, in the order of the file, then environment and flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl Coded for ConfigErrors {
    fn code(&self) -> Code {
        Code::ConfigurationInvalid
    }
}

impl ConfigErrors {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let origin = Origin::File { path: path.display().to_string(), line: 0 };
        Self(vec![ConfigError { origin, key: String::new(), problem: format!("cannot be read: {error}") }])
    }

    pub(super) fn sorted(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| match &error.origin {
            Origin::File { line, .. } => (0, *line),
            Origin::Variable(_) => (1, 0),
            Origin::Flag(_) | Origin::Nowhere => (2, 0),
        });
        // A wrong value can be reported twice: when it is read and when it is used.
        errors.dedup();
        Self(errors)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the configuration has {count} {}", if count == 1 { "error" } else { "errors" })?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for ConfigErrors {}
