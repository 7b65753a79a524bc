//! What is wrong with a configuration, and where.

use std::{fmt, io, path::Path};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file, counted from 1.
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
    /// Nobody set it.
    Nowhere,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "--set {flag}"),
            Self::Nowhere => f.write_str("not set"),
        }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub origin: Origin,
    /// The key it is about, dotted; empty if the file could not be understood at all.
    pub key: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// Something that is wrong with what settings lead to: a file that cannot be read, two settings that do not fit.
#[derive(Debug)]
pub struct Objection {
    /// What it is about.
    pub about: About,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            About::Setting(key) => write!(f, "{key}: {}", self.problem),
            About::Variable(name) => write!(f, "environment variable {name}: {}", self.problem),
        }
    }
}

/// What an [`Objection`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A setting, by its dotted key.
    Setting(String),
    /// A variable of the environment that is no setting.
    Variable(&'static str),
}

/// Every mistake of a configuration, in the order of the file, then environment and flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let origin = Origin::File { path: path.display().to_string(), line: 0 };
        Self(vec![Mistake { origin, key: String::new(), problem: format!("cannot be read: {error}") }])
    }

    pub(super) fn sorted(mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| match &mistake.origin {
            Origin::File { line, .. } => (0, *line),
            Origin::Variable(_) => (1, 0),
            Origin::Flag(_) | Origin::Nowhere => (2, 0),
        });
        // What is wrong with a value is also found where it leads to.
        mistakes.dedup();
        Self(mistakes)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the configuration has {count} {}", if count == 1 { "mistake" } else { "mistakes" })?;
        self.0.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl std::error::Error for Mistakes {}
