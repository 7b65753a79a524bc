//! imports parses what a Rust file names: `use` trees, paths in code, and paths inside macro calls.
//!
//! Every path is resolved to `crate::…` or to the name of another crate. Renames and relative paths are followed, so
//! `use std::time; time::Instant::now()` is seen as `std::time::Instant::now`.

mod collect;
mod resolve;

use std::{collections::BTreeMap, fmt};

use crate::{Error, Offender, crates::Crate, file::SourceFile, sources::Repository};

/// A path that a file names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// Line, counted from 1.
    pub line: usize,
    /// The path; `crate` comes first if it lies in the same crate.
    pub segments: Vec<String>,
    /// Set if everything below the path is named: `use a::*`.
    pub is_glob: bool,
    /// Set if only tests are compiled with it.
    pub in_tests: bool,
}

impl fmt::Display for Import {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.segments.join("::"))?;
        out.write_str(if self.is_glob { "::*" } else { "" })
    }
}

impl Import {
    /// Returns whether the path is `banned`, lies below it, or names everything above it.
    #[must_use]
    pub fn reaches(&self, banned: &str) -> bool {
        let banned: Vec<&str> = banned.split("::").collect();
        let shared = banned.iter().zip(&self.segments).all(|(a, b)| a == b);
        shared && (self.segments.len() >= banned.len() || self.is_glob)
    }
}

/// Returns every path that a file of the repository names, sorted by line.
///
/// # Errors
/// If the file does not parse.
pub fn of_file(repository: &Repository, file: &SourceFile) -> Result<Vec<Import>, Error> {
    let module = repository.crate_of(&file.path).map(|each: &Crate| each.module_of(&file.path));
    of_module(&module.unwrap_or_default(), file)
}

/// Returns the imports of files that reach a banned path, those of tests left out.
///
/// # Errors
/// If a file does not parse.
pub fn reaching<'f>(
    repository: &Repository,
    files: impl Iterator<Item = &'f SourceFile>,
    banned: &[&str],
) -> Result<Vec<Offender>, Error> {
    let mut found = Vec::new();
    for file in files {
        for import in of_file(repository, file)?.into_iter().filter(|import| !import.in_tests) {
            if banned.iter().any(|banned| import.reaches(banned)) {
                found.push(Offender { path: file.path.clone(), line: import.line, what: import.to_string() });
            }
        }
    }
    Ok(found)
}

/// Returns every path that the file of a module names, sorted by line.
///
/// # Errors
/// If the file does not parse.
pub fn of_module(module: &[String], file: &SourceFile) -> Result<Vec<Import>, Error> {
    let collected = collect::collect(module, file.syntax()?);
    let mut imports: Vec<Import> =
        collected.named.iter().filter_map(|named| resolve::resolve(&collected, named)).collect();
    imports.sort();
    imports.dedup();
    Ok(imports)
}

/// Returns the names that a root file gives to paths of its crate, such as by `pub use self::config::Config`.
///
/// # Errors
/// If the file does not parse.
pub fn exports(root: &SourceFile) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let collected = collect::collect(&[], root.syntax()?);
    let named = collected.aliases.iter().filter(|((module, _), _)| module.is_empty());
    let resolved = named.map(|((_, name), target)| (name.clone(), resolve::target(&collected, target)));
    Ok(resolved.filter(|(_, target)| target.first().is_some_and(|first| first == "crate")).collect())
}
