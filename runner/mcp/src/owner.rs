//! owner marks the process that containers of servers belong to. Its lock shows that it is alive: the kernel releases the
//! lock when the process ends, in any way.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use platform_runtime::{lock::Lock, random, report};

/// Directory below the state of the control plane.
const DIR: &str = "tool-servers";
/// Tries to make a directory that no reaper takes for a left one.
const MAX_TRIES: usize = 16;

/// Mark of a process that is alive, removed on drop.
#[derive(Debug)]
pub struct OwnerLock {
    name: String,
    path: PathBuf,
    _lock: Lock,
}

impl OwnerLock {
    /// Creates the mark of this process below `state_dir`.
    ///
    /// # Errors
    /// If the directory cannot be made or locked.
    pub fn create(state_dir: &Path) -> io::Result<Self> {
        let root = state_dir.join(DIR);
        fs::create_dir_all(&root)?;
        for _ in 0..MAX_TRIES {
            let name = format!("{:016x}", random::bits() & u128::from(u64::MAX));
            let path = root.join(&name);
            fs::create_dir(&path)?;
            // A reaper that looks in between takes the directory for a left one, and removes it.
            if let Some(lock) = Lock::attempt(&path)? {
                return Ok(Self { name, path, _lock: lock });
            }
        }
        Err(io::Error::other(format!("{} is emptied all the time", root.display())))
    }

    /// Returns the name, which containers have on a label.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            tracing::debug!(path = %self.path.display(), error = report::chain(&error), "mark of this process not removed");
        }
    }
}

/// Returns the names of the processes that are alive, and removes the marks of all others.
///
/// # Errors
/// If the directory cannot be read.
pub fn live_owners(state_dir: &Path) -> io::Result<BTreeSet<String>> {
    let root = state_dir.join(DIR);
    let entries = match fs::read_dir(&root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut live = BTreeSet::new();
    for entry in entries {
        let entry = entry?;
        match Lock::attempt(&entry.path())? {
            Some(_lock) => fs::remove_dir(entry.path())?,
            None => live.extend(entry.file_name().into_string()),
        }
    }
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_while_it_holds_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(live_owners(dir.path()).unwrap(), BTreeSet::new());
        let [one, other] = [(); 2].map(|()| OwnerLock::create(dir.path()).unwrap());
        let names = [&one, &other].map(|owner| owner.name().to_owned());
        assert_eq!(live_owners(dir.path()).unwrap(), BTreeSet::from(names.clone()));
        // As after a kill: the directory stays, and its lock does not.
        let left = dir.path().join(DIR).join("left");
        fs::create_dir(&left).unwrap();
        drop(other);
        assert_eq!(live_owners(dir.path()).unwrap(), BTreeSet::from([names[0].clone()]));
        assert!(!left.exists());
    }
}
