//! Says whether a worker on this host executes ordered runs. Each holds a share of a lock, which ends with its process.

use std::{fs, io, path::Path};

use platform_runtime::lock::Lock;

/// Directory that workers lock, below `sandbox.state_dir`.
const DIRECTORY: &str = "worker";

/// Sign of a worker that executes runs, until it is dropped.
#[derive(Debug)]
pub struct Presence(#[expect(dead_code, reason = "dropping it releases the lock")] Lock);

impl Presence {
    /// Shows this process as a worker.
    ///
    /// # Errors
    /// If the directory cannot be created or locked.
    pub fn show(state_dir: &Path) -> io::Result<Self> {
        let dir = state_dir.join(DIRECTORY);
        fs::create_dir_all(&dir)?;
        Lock::share(&dir).map(Self)
    }

    /// Returns whether any worker shows itself. A directory that this user cannot look at counts as one.
    #[must_use]
    pub fn is_shown(state_dir: &Path) -> bool {
        let dir = state_dir.join(DIRECTORY);
        match Lock::attempt(&dir) {
            Ok(Some(_)) => false,
            Ok(None) => dir.exists(),
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_show_themselves_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Presence::is_shown(dir.path()), "none was ever there");
        let workers = [Presence::show(dir.path()).unwrap(), Presence::show(dir.path()).unwrap()];
        assert!(Presence::is_shown(dir.path()));
        let [first, second] = workers;
        drop(first);
        assert!(Presence::is_shown(dir.path()), "one is left");
        drop(second);
        assert!(!Presence::is_shown(dir.path()));
    }
}
