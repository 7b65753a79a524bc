//! sources reads the repository: its Rust, Markdown, script and manifest files, and the crates they belong to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    crates::Crate,
    file::{Area, SourceFile},
};

/// Directories that hold nothing written here, whatever `.gitignore` says.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// Endings of the files that rules look at.
const READ: [&str; 5] = [".rs", ".md", ".mjs", ".sh", "Cargo.toml"];

/// The repository, read into memory.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    files: Vec<SourceFile>,
    crates: Vec<Crate>,
}

impl Repository {
    /// Reads the repository that this crate lies in.
    ///
    /// # Errors
    /// If a file cannot be read, or a manifest is not TOML.
    pub fn open() -> Result<Self, Error> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::read(own.ancestors().nth(2).unwrap_or(own))
    }

    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// If a file cannot be read, or a manifest is not TOML.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let files = walk(root, &skipped(&ignored))?;
        let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
        let crates = manifests.map(Crate::read).collect::<Result<_, _>>()?;
        Ok(Self { root: root.to_owned(), files, crates })
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns every file that rules look at, sorted by path.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns the file at `path`, if it is one that rules look at.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok().map(|at| &self.files[at])
    }

    /// Returns all Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// Returns the Rust files that are shipped.
    pub fn product(&self) -> impl Iterator<Item = &SourceFile> {
        self.rust().filter(|file| file.area() == Area::Product)
    }

    /// Returns all Markdown files.
    pub fn markdown(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".md"))
    }

    /// Returns the crates, sorted by directory.
    #[must_use]
    pub fn crates(&self) -> &[Crate] {
        &self.crates
    }

    /// Returns the innermost crate with `path` in its directory.
    #[must_use]
    pub fn crate_of(&self, path: &str) -> Option<&Crate> {
        self.crates.iter().filter(|each| each.inner(path).is_some()).max_by_key(|each| each.dir.len())
    }

    /// Reads a file that rules look at only by name, such as a lock file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self, path: &str) -> Result<String, Error> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(|source| Error::Access { path, source })
    }
}

/// Returns the names and paths in a `.gitignore` that stand for directories or files without a pattern.
fn skipped(ignored: &str) -> Vec<String> {
    let plain = ignored.lines().map(|line| line.trim().trim_matches('/'));
    let plain = plain.filter(|line| !line.is_empty() && !line.contains(['*', '#', '!', '?', '[']));
    SKIPPED.into_iter().chain(plain).map(str::to_owned).collect()
}

/// Reads the files below `root` that rules look at.
fn walk(root: &Path, skipped: &[String]) -> Result<Vec<SourceFile>, Error> {
    let mut files = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        let path = root.join(&directory);
        let access = |source| Error::Access { path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(access)? {
            let entry = entry.map_err(access)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            // Links are not followed: what they lead to is read where it lies, or is not ours.
            let kind = entry.file_type().map_err(access)?;
            if skipped.iter().any(|skipped| *skipped == name || *skipped == relative) {
                continue;
            }
            if kind.is_dir() {
                directories.push(relative);
            } else if kind.is_file() && READ.iter().any(|ending| name.ends_with(ending)) {
                let text = fs::read_to_string(entry.path()).map_err(access)?;
                files.push(SourceFile::new(&relative, &text));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
