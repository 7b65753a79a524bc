//! registry keeps the entries of mirrored repositories, each in its own file.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use platform_core::{
    id::RepoName,
    json::{self, Bounds},
    limit::ByteSize,
};
use platform_runtime::{
    file,
    lock::Lock,
    settings::Sandbox,
    state_file::{self, create_dir},
};

use tokio::time::sleep;

use crate::{entry::RepoEntry, error::Error};

/// Directory below the control plane's state.
const DIR: &str = "repos";
/// Ending of an entry's file.
const ENDING: &str = "json";
/// Interval between attempts to lock the registry.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);
/// Largest entry.
const MAX_ENTRY: ByteSize = ByteSize::kib(16);

/// Entries of mirrored repositories on this host.
#[derive(Debug, Clone)]
pub struct RepoRegistry {
    dir: PathBuf,
}

impl RepoRegistry {
    /// Returns the registry of an installation. Nothing is made yet.
    #[must_use]
    pub fn of(sandbox: &Sandbox) -> Self {
        Self { dir: sandbox.state_dir.join(DIR) }
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn list(&self) -> Result<BTreeMap<RepoName, RepoEntry>, Error> {
        let files = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            files => files.map_err(Error::file("list", &self.dir))?,
        };
        let mut entries = BTreeMap::new();
        for file in files {
            let path = file.map_err(Error::file("list", &self.dir))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let name = stem.filter(|_| path.extension().is_some_and(|ending| ending == ENDING));
            if let Some(name) = name.and_then(|name| RepoName::parse(name).ok()) {
                entries.extend(read(&path)?.map(|entry| (name, entry)));
            }
        }
        Ok(entries)
    }

    /// Returns the entry of a repository.
    ///
    /// # Errors
    /// [`Error::Unknown`], and if its file cannot be read.
    pub fn get(&self, name: &RepoName) -> Result<RepoEntry, Error> {
        if let Some(entry) = read(&self.path(name))? {
            return Ok(entry);
        }
        let known: Vec<_> = self.list()?.into_keys().map(String::from).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Error::Unknown { name: name.clone(), known })
    }

    /// Adds an entry. The same entry may be added again.
    ///
    /// # Errors
    /// [`Error::Exists`], and if the file cannot be written.
    pub fn insert(&self, name: &RepoName, entry: &RepoEntry) -> Result<(), Error> {
        create_dir(&self.dir).map_err(Error::file("create", &self.dir))?;
        let path = self.path(name);
        let content = serde_json::to_vec(entry).map_err(io::Error::other);
        let written = content.and_then(|content| state_file::create(&path, &content));
        match written {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match self.get(name)? {
                known if known == *entry => Ok(()),
                _ => Err(Error::Exists { name: name.clone() }),
            },
            written => written.map_err(Error::file("write", &path)),
        }
    }

    /// Removes an entry. A missing one is not an error.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self, name: &RepoName) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    /// Waits until no other process changes containers of repositories, and keeps others from it.
    pub(crate) async fn lock(&self) -> Result<Lock, Error> {
        loop {
            let lock = Lock::attempt(&self.dir).map_err(Error::file("lock", &self.dir))?;
            if let Some(lock) = lock {
                return Ok(lock);
            }
            sleep(LOCK_INTERVAL).await;
        }
    }

    fn path(&self, name: &RepoName) -> PathBuf {
        self.dir.join(format!("{name}.{ENDING}"))
    }
}

/// Returns the entry in a file; `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<RepoEntry>, Error> {
    match file::text(path, MAX_ENTRY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
        Ok(text) => json::from_str(&text, Bounds::STORED)
            .map(Some)
            .map_err(|error| Error::file("read", path)(io::Error::new(io::ErrorKind::InvalidData, error))),
    }
}

#[cfg(test)]
mod tests {
    use runner_git::{BaseBranch, RepoUrl};

    use super::*;

    fn entry(url: &str) -> RepoEntry {
        RepoEntry::of(RepoUrl::parse(url).unwrap(), BaseBranch::parse("main").unwrap())
    }

    #[test]
    fn entries_survive_and_are_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let registry = RepoRegistry { dir: dir.path().join("state/repos") };
        assert_eq!(registry.list().unwrap().len(), 0);
        let web = RepoName::parse("web").unwrap();
        let first = entry("https://example.org/web");
        registry.insert(&web, &first).unwrap();
        registry.insert(&web, &first).unwrap();
        let other = registry.insert(&web, &entry("https://example.org/other")).unwrap_err();
        assert!(matches!(other, Error::Exists { .. }), "{other:?}");
        assert_eq!(registry.list().unwrap(), [(web.clone(), first.clone())].into());
        assert_eq!(registry.get(&web).unwrap(), first);

        let message = registry.get(&RepoName::parse("wbe").unwrap()).unwrap_err().to_string();
        assert!(message.contains("there are: web") && message.contains("`sluice repo add wbe URL`"));
        registry.remove(&web).unwrap();
        registry.remove(&web).unwrap();
        assert!(matches!(registry.get(&web), Err(Error::Unknown { .. })));
    }

    #[test]
    fn a_damaged_entry_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let registry = RepoRegistry { dir: dir.path().to_owned() };
        fs::write(dir.path().join("web.json"), "{\"url\": \"file:///etc\"}").unwrap();
        assert!(registry.list().unwrap_err().to_string().contains("web.json"));
        fs::rename(dir.path().join("web.json"), dir.path().join("web.json.new")).unwrap();
        assert_eq!(registry.list().unwrap().len(), 0, "control: only entries are read");
    }
}
