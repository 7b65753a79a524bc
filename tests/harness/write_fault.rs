//! Kills a proxy at one of its writes to the journal. A small library, loaded before the system's own
//! (`write_fault.c`), intercepts the writes; the proxy does not know of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::preload::PreloadedLibrary;

/// Fault that a proxy can be started with.
#[derive(Debug)]
pub struct WriteFault {
    library: PreloadedLibrary,
    order: PathBuf,
}

/// Moment of a write at which the proxy dies.
#[derive(Debug, Clone, Copy)]
pub enum FatalMoment {
    /// Nothing of it is written.
    Before,
    /// Half of it is written.
    Middle,
    /// All of it is written, and nothing happens after it.
    After,
    /// At the first line, and no mark was written, although the proxy relies on it: a control.
    Unmarked,
}

impl WriteFault {
    /// Creates a fault that does nothing yet, with its files in `dir`.
    ///
    /// # Panics
    /// If the C compiler is missing, which Rust needs for linking.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        let library = PreloadedLibrary::compile(dir, "write_fault");
        Self { library, order: dir.join("write_fault") }
    }

    /// Returns the environment variables of a proxy that can be killed.
    ///
    /// # Panics
    /// If the path of its files is not UTF-8.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, &str); 2] {
        [self.library.variable(), ("WRITE_FAULT", self.order.to_str().unwrap())]
    }

    /// Kills the proxy at `moment` of the write with this number, from now on.
    ///
    /// # Panics
    /// If its file cannot be written.
    pub fn arm(&self, number: usize, moment: FatalMoment) {
        let word = format!("{moment:?}").to_lowercase();
        let next = self.order.with_extension("next");
        fs::write(&next, format!("{number} {word}")).unwrap();
        fs::rename(next, &self.order).unwrap();
    }

    /// Lets all writes succeed again.
    pub fn disarm(&self) {
        fs::remove_file(&self.order).ok();
    }
}
