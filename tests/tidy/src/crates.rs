//! crates knows each crate's manifest, its roots, and the module that a file is.

use std::collections::BTreeSet;

use crate::{Error, file::SourceFile};

/// A crate of the repository, in the workspace or not.
#[derive(Debug)]
pub struct Crate {
    /// The package's name.
    pub name: String,
    /// Its directory, from the repository's root.
    pub dir: String,
    /// Its `Cargo.toml`.
    pub manifest: toml::Table,
    /// Files that the manifest names as roots, from the crate's directory.
    roots: BTreeSet<String>,
}

impl Crate {
    /// Reads a crate from its manifest.
    ///
    /// # Errors
    /// If the manifest is not TOML.
    pub fn read(manifest: &SourceFile) -> Result<Self, Error> {
        let not_toml =
            |source| Error::Toml { path: manifest.path.clone(), source: Box::<toml::de::Error>::new(source) };
        let table: toml::Table = manifest.text.parse().map_err(not_toml)?;
        let dir = manifest.path.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned();
        let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
        let name = name.unwrap_or(&dir).to_owned();
        let roots = named_roots(&table);
        Ok(Self { name, dir, manifest: table, roots })
    }

    /// Returns the names of dependencies, of every kind.
    #[must_use]
    pub fn dependencies(&self) -> BTreeSet<&str> {
        let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
        let tables = sections.iter().filter_map(|section| self.manifest.get(*section)?.as_table());
        tables.flat_map(|table| table.keys().map(String::as_str)).collect()
    }

    /// Returns `path` as seen from the crate's directory, if it lies there.
    #[must_use]
    pub fn inner<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&self.dir)?.strip_prefix('/')
    }

    /// Returns the module that a file of this crate is: empty for a root.
    #[must_use]
    pub fn module_of(&self, path: &str) -> Vec<String> {
        let inner = self.inner(path).unwrap_or(path);
        if self.is_root(inner) {
            return Vec::new();
        }
        let below = inner.strip_prefix(&self.root_dir(inner)).unwrap_or(inner);
        let below = below.trim_start_matches('/').trim_end_matches(".rs");
        let mut module: Vec<String> = below.split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod") {
            module.pop();
        }
        module
    }

    /// Returns the path of the library's root, or of the program's if the crate has no library.
    #[must_use]
    pub fn main_dir(&self) -> String {
        let named = ["lib", "bin"].iter().filter_map(|kind| targets(&self.manifest, kind).into_iter().next());
        let named = named.filter(|root| !root.starts_with("src/"));
        named.map(|root| parent(&root).to_owned()).next().unwrap_or_else(|| "src".to_owned())
    }

    /// Returns whether a file, seen from the crate's directory, begins a library, program, test or example.
    fn is_root(&self, inner: &str) -> bool {
        if self.roots.contains(inner) || ["src/lib.rs", "src/main.rs", "build.rs"].contains(&inner) {
            return true;
        }
        let found = ["src/bin", "tests", "examples", "benches"];
        found.iter().filter_map(|dir| inner.strip_prefix(dir)?.strip_prefix('/')).any(|below| {
            let depth = below.matches('/').count();
            depth == 0 || (depth == 1 && below.ends_with("/main.rs"))
        })
    }

    /// Returns the directory of the root that a file's module tree hangs from.
    fn root_dir(&self, inner: &str) -> String {
        let mut dir = parent(inner);
        while !dir.is_empty() {
            let has_root = |name: &str| self.is_root(&format!("{dir}/{name}"));
            if self.roots.iter().any(|root| parent(root) == dir) || (dir == "src" || has_root("main.rs")) {
                return dir.to_owned();
            }
            dir = parent(dir);
        }
        String::new()
    }
}

/// Returns the directory of a path, empty at the top.
#[must_use]
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn named_roots(manifest: &toml::Table) -> BTreeSet<String> {
    ["lib", "bin", "test", "bench", "example"].iter().flat_map(|kind| targets(manifest, kind)).collect()
}

/// Returns the paths that a manifest's targets of one kind name.
fn targets(manifest: &toml::Table, kind: &str) -> Vec<String> {
    let path = |table: &toml::Value| table.get("path").and_then(toml::Value::as_str).map(str::to_owned);
    match manifest.get(kind) {
        Some(toml::Value::Array(targets)) => targets.iter().filter_map(path).collect(),
        Some(target) => path(target).into_iter().collect(),
        None => Vec::new(),
    }
}
