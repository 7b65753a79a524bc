//! Knows the files of a new configuration: finds what is in the way, and writes them whole or not at all.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use platform_runtime::{file, random};

use super::{Draft, Error, GivenKey};

/// Name of the key's file, beside the configuration.
const KEY_FILE: &str = "upstream.key";
const CONFIGURATION_MODE: u32 = 0o644;
const KEY_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o755;

/// Place of a configuration and of its key.
#[derive(Debug)]
pub(crate) struct Site {
    configuration: PathBuf,
    key: PathBuf,
    dir: PathBuf,
}

impl Site {
    /// Returns the place of the configuration file `configuration`.
    ///
    /// # Errors
    /// If the path is not one of a file.
    pub(crate) fn of(configuration: &Path) -> Result<Self, Error> {
        let write = |source| Error::Write { path: configuration.to_owned(), source };
        let configuration = std::path::absolute(configuration).map_err(write)?;
        let dir = configuration.parent().filter(|_| configuration.file_name().is_some());
        let dir = dir.ok_or_else(|| write(io::ErrorKind::IsADirectory.into()))?.to_owned();
        Ok(Self { key: dir.join(KEY_FILE), configuration, dir })
    }

    /// Returns the path of the configuration.
    pub(crate) fn configuration(&self) -> &Path {
        &self.configuration
    }

    /// Returns the path of the key's file.
    pub(crate) fn key(&self) -> &Path {
        &self.key
    }

    /// Returns whether `path` is the key's file, which then stays as it is.
    pub(crate) fn is_key(&self, path: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(path).is_some_and(|path| Some(path) == real(&self.key))
    }

    /// Returns the files that are there already and would be replaced.
    pub(crate) fn existing(&self, writes_key: Option<&GivenKey>) -> Vec<&Path> {
        let key = writes_key.map(|_| self.key.as_path());
        let files = [Some(self.configuration.as_path()), key].into_iter().flatten();
        files.filter(|path| fs::symlink_metadata(path).is_ok()).collect()
    }

    /// Passes a configuration file with the text of `draft` to `check`, beside the later one so that the rights of the
    /// same directories are checked. Removes the file, and directories that were
    /// made for it.
    ///
    /// # Errors
    /// Those of `check`, or if the file cannot be written.
    pub(crate) fn with_trial<T>(
        &self,
        draft: &Draft,
        check: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let path = self.dir.join(format!(".sluice-init-{:032x}.toml", random::bits()));
        let write = |source| Error::Write { path: self.dir.clone(), source };
        let made = self.make_dir()?;
        let result = file::replace(&path, CONFIGURATION_MODE, draft.text().as_bytes()).map_err(write);
        let checked = result.and_then(|()| check(&path));
        // The name in messages is that of the file that would have been written.
        let checked = checked.map_err(|error| self.renamed(error, &path));
        let removed = fs::remove_file(&path);
        // This fails if another process has put something there: then it stays.
        made.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
        if checked.is_ok() {
            removed.map_err(write)?;
        }
        checked
    }

    fn renamed(&self, error: Error, trial: &Path) -> Error {
        match error {
            Error::Check { said } => Error::Check {
                said: said.replace(&trial.display().to_string(), &self.configuration.display().to_string()),
            },
            other => other,
        }
    }

    /// Makes the directory and those above it. Returns the ones that were missing.
    fn make_dir(&self) -> Result<Vec<PathBuf>, Error> {
        let missing: Vec<_> =
            self.dir.ancestors().take_while(|dir| !dir.exists()).map(PathBuf::from).collect();
        let made: Vec<_> = missing.into_iter().rev().collect();
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&self.dir)
            .map_err(|source| Error::Write { path: self.dir.clone(), source })?;
        Ok(made)
    }

    /// Writes the key, if one is given, and then the configuration.
    ///
    /// # Errors
    /// If the system refuses. A previous configuration is unchanged then.
    pub(crate) fn write(&self, draft: &Draft, key: Option<&GivenKey>) -> Result<(), Error> {
        self.make_dir()?;
        let write = |path: &Path, mode, text: &str| {
            let written = file::replace(path, mode, text.as_bytes());
            written.map_err(|source| Error::Write { path: path.to_owned(), source })
        };
        if let Some(key) = key {
            write(&self.key, KEY_MODE, key.expose())?;
        }
        write(&self.configuration, CONFIGURATION_MODE, &draft.text())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use platform_core::secret::Secret;

    use super::*;
    use crate::setup::KeyOrigin;

    struct Dir(PathBuf);

    impl Dir {
        fn new() -> Self {
            let dir = std::env::temp_dir().join(format!("sluice-site-{:032x}", random::bits()));
            fs::create_dir(&dir).unwrap();
            Self(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn draft(base_url: &str) -> Draft {
        Draft { base_url: base_url.to_owned(), key_file: None, default_model: None }
    }

    #[test]
    fn a_key_is_written_for_its_owner_alone() {
        let dir = Dir::new();
        let site = Site::of(&dir.0.join("etc/sluice.toml")).unwrap();
        let key = GivenKey::new(KeyOrigin::Terminal, Secret::new("sk-1".to_owned())).unwrap();
        assert_eq!(site.existing(Some(&key)).len(), 0);
        site.write(&draft("http://a"), Some(&key)).unwrap();
        assert_eq!(fs::read_to_string(site.key()).unwrap(), "sk-1");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(site.key()), mode(site.configuration())), (0o600, 0o644));
        assert_eq!(site.existing(Some(&key)).len(), 2);
        assert!(site.is_key(&dir.0.join("etc/../etc/upstream.key")) && !site.is_key(site.configuration()));
    }

    #[test]
    fn a_trial_leaves_nothing() {
        let dir = Dir::new();
        let site = Site::of(&dir.0.join("etc/sluicegate/sluice.toml")).unwrap();
        let refused = site.with_trial(&draft("http://a"), |path| -> Result<(), Error> {
            assert!(fs::read_to_string(path).unwrap().contains("http://a"));
            Err(Error::Check { said: format!("{}:2: no", path.display()) })
        });
        let said = refused.unwrap_err().to_string();
        assert!(said.ends_with(&format!("{}:2: no", site.configuration().display())), "{said}");
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 0);
        site.with_trial(&draft("http://a"), |path| {
            assert!(path.exists());
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 0);
        fs::create_dir_all(dir.0.join("etc/sluicegate")).unwrap();
        site.with_trial(&draft("http://a"), |_| Ok(())).unwrap();
        assert!(site.dir.exists(), "the control: it was there before");
    }
}
