//! tidy checks the repository against its house rules, by parsing sources instead of searching text.
//!
//! The rules are the integration tests beside this library; they start no process but git and need no Docker. The
//! binary `measure` prints the same figures as a table, or as JSON with `--json`.
//!
//! Start reading at [`sources`], which reads the repository once; every other module judges what it holds:
//!
//! | module | does |
//! |---|---|
//! | [`imports`] | parses `use` trees and paths, and resolves them to module paths |
//! | [`modules`] | builds each crate's module graph and finds its loops |
//! | [`language`] | reads comments: openings, sentences, retired words |
//! | [`names`] | counts type names and test names |
//! | [`habits`] | finds tuples, vague constants and logged errors without causes |
//! | [`sleeps`] | finds pauses of tests that name no purpose |
//! | [`documents`] | checks links, paths and test names in Markdown, which [`markdown`] reads |
//! | [`figures`] | lists every figure that may only fall |
//! | [`ratchet`] | compares figures with `ratchet.toml` |
//!
//! A rule that cannot hold yet is a figure in `tests/tidy/ratchet.toml`. A count above the file's fails with the
//! offenders. A count below it fails too, so that the file is lowered in the same commit.
//! `cargo run -p tidy --bin measure -- --lower` lowers it, and `-- --list FIGURE` prints the offenders.
//!
//! Does not expand macros and does not ask the compiler: a path that a macro builds is not seen.

pub mod comments;
pub mod commits;
pub mod crates;
pub mod documents;
pub mod figures;
pub mod file;
pub mod habits;
pub mod imports;
mod items;
pub mod language;
pub mod markdown;
pub mod modules;
pub mod names;
pub mod ratchet;
pub mod report;
pub mod size;
pub mod sleeps;
pub mod sources;

use std::{fmt, io, path::PathBuf};

/// A reason why the repository cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory cannot be read or written.
    #[error("cannot access {}", path.display())]
    Access {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A Rust file does not parse.
    #[error("{path}:{line} does not parse as Rust")]
    Rust {
        /// Path from the repository's root.
        path: String,
        /// Line of the first error.
        line: usize,
        /// The parser's reason.
        source: syn::Error,
    },
    /// A TOML file does not parse.
    #[error("{path} does not parse as TOML")]
    Toml {
        /// Path from the repository's root.
        path: String,
        /// The parser's reason.
        source: Box<toml::de::Error>,
    },
    /// A figure is asked for that does not exist.
    #[error("no figure is called {name}")]
    UnknownFigure {
        /// The name that was asked for.
        name: String,
    },
}

/// A place in the repository that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offender {
    /// Path from the repository's root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The name or words that break the rule.
    pub what: String,
}

impl fmt::Display for Offender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{} {}", self.path, self.line, self.what)
    }
}
