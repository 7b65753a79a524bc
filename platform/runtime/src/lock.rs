//! Locks directories. One process at a time holds a lock, or several share it, and the kernel releases it when they end,
//! in any way. The caller decides what a lock held elsewhere means and how long to wait for it.

use std::{fs::File, io, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// A lock of a directory, released on drop.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

impl Lock {
    /// Shares the lock of `dir` with others that share it. Waits while one holds it alone.
    ///
    /// # Errors
    /// If the directory is missing, or the system refuses.
    pub fn share(dir: &Path) -> io::Result<Self> {
        let file = File::open(dir)?;
        flock(&file, FlockOperation::LockShared)?;
        Ok(Self(file))
    }

    /// Returns the lock of `dir` for this process alone. `None` if another process or handle holds it, or if the directory is missing or was
    /// removed meanwhile.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn attempt(dir: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        Ok((file.metadata()?.nlink() > 0).then_some(Self(file)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_needs_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let locked = dir.path().join("locked");
        assert!(Lock::attempt(&locked).unwrap().is_none(), "there is nothing");
        fs::create_dir(&locked).unwrap();
        let first = Lock::attempt(&locked).unwrap().expect("no process has it");
        assert!(Lock::attempt(&locked).unwrap().is_none(), "this process has it");
        drop(first);
        assert!(Lock::attempt(&locked).unwrap().is_some());
        let shared = [Lock::share(&locked).unwrap(), Lock::share(&locked).unwrap()];
        assert!(Lock::attempt(&locked).unwrap().is_none(), "two share it");
        drop(shared);
        assert!(Lock::attempt(&locked).unwrap().is_some());
    }
}
