//! Compiles small C libraries of this directory that are loaded before a program's own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Library that is loaded before the system's own.
#[derive(Debug)]
pub(crate) struct PreloadedLibrary(PathBuf);

impl PreloadedLibrary {
    /// Compiles `NAME.c` of this directory into `dir`.
    ///
    /// # Panics
    /// If the C compiler is missing, which Rust needs for linking.
    pub(crate) fn compile(dir: &Path, name: &str) -> Self {
        let source = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/harness/{}.c"), name);
        let library = dir.join(name).with_extension("so");
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
        assert!(compiled.unwrap().success(), "cc {source}");
        Self(library)
    }

    /// Returns the environment variable that loads it into a program.
    ///
    /// # Panics
    /// If its path is not UTF-8.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        ("LD_PRELOAD", self.0.to_str().unwrap())
    }
}
