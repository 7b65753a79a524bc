//! Records which threads of a proxy allocate space in files or shorten them. A small library, loaded before the
//! system's own (`file_calls.c`), traps these system calls; the proxy does not know of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::preload::PreloadedLibrary;

/// Recorder of a proxy's calls of `fallocate` and `ftruncate`.
#[derive(Debug)]
pub struct FileCallRecorder {
    library: PreloadedLibrary,
    records: PathBuf,
}

/// Recorded system call.
#[derive(Debug, PartialEq, Eq)]
pub struct FileCall {
    /// Name of the thread that made it.
    pub thread: String,
    /// `fallocate` or `ftruncate`.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
}

impl FileCallRecorder {
    /// Creates a recorder with its files in `dir`.
    ///
    /// # Panics
    /// If the C compiler is missing, which Rust needs for linking.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        let library = PreloadedLibrary::compile(dir, "file_calls");
        Self { library, records: dir.join("file_calls") }
    }

    /// Returns the environment variables of a proxy that is recorded.
    ///
    /// # Panics
    /// If the path of its files is not UTF-8.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, &str); 2] {
        [self.library.variable(), ("FILE_CALLS", self.records.to_str().unwrap())]
    }

    /// Returns the calls so far for files below `dir`.
    ///
    /// # Panics
    /// If nothing was recorded.
    #[must_use]
    pub fn below(&self, dir: &Path) -> Vec<FileCall> {
        let records = fs::read_to_string(&self.records).unwrap();
        let call = |line: &str| {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let mut word = || words.next().unwrap();
            FileCall { thread: word(), name: word(), path: word().into() }
        };
        records.lines().map(call).filter(|call| call.path.starts_with(dir)).collect()
    }
}
