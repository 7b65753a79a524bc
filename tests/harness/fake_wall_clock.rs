//! Gives a proxy a wall clock that the test can set; the proxy does not know of it. A small library, loaded before the
//! system's own (`fake_wall_clock.c`), intercepts the calls that read the time of day. It adds the offset that a file
//! contains. Times of files stay the machine's.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::preload::PreloadedLibrary;

/// The clock of one world.
#[derive(Debug)]
pub struct FakeWallClock {
    library: PreloadedLibrary,
    path: PathBuf,
    file: File,
    /// Seconds by which it is ahead of the machine's clock.
    ahead: i64,
}

impl FakeWallClock {
    /// Creates a clock without an offset, with its files in `dir`.
    ///
    /// # Panics
    /// If the C compiler is missing, which Rust needs for linking.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        let library = PreloadedLibrary::compile(dir, "fake_wall_clock");
        let path = dir.join("fake_wall_clock");
        fs::write(&path, [0; 8]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        Self { library, path, file, ahead: 0 }
    }

    /// Returns the environment variables that make a program use this clock.
    ///
    /// # Panics
    /// If the path of its files is not UTF-8.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, &str); 2] {
        [self.library.variable(), ("FAKE_WALL_CLOCK", self.path.to_str().unwrap())]
    }

    /// Sets it forward by `seconds`, or back if they are negative.
    ///
    /// # Panics
    /// If its file cannot be written.
    pub fn step(&mut self, seconds: i64) {
        self.ahead += seconds;
        self.file.write_all_at(&self.ahead.to_ne_bytes(), 0).unwrap();
    }

    /// Returns the seconds by which it is ahead of the machine's clock.
    #[must_use]
    pub const fn ahead(&self) -> i64 {
        self.ahead
    }

    /// Returns its time in seconds since the epoch.
    ///
    /// # Panics
    /// If it shows a time before the epoch.
    #[must_use]
    pub fn now(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        now.checked_add_signed(self.ahead).unwrap()
    }
}
