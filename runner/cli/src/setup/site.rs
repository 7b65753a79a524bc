//! Knows the files of a new configuration: finds what is in the way, and writes them whole or not at all.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use platform_runtime::{file, settings::Settings};

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
    /// If the path names something other than a file.
    pub(crate) fn of(configuration: &Path) -> Result<Self, Error> {
        let write = |source| Error::Write { path: configuration.to_owned(), source };
        let configuration = std::path::absolute(configuration).map_err(write)?;
        let dir = configuration.parent().filter(|_| configuration.file_name().is_some());
        let dir = dir.ok_or_else(|| write(io::ErrorKind::IsADirectory.into()))?.to_owned();
        if fs::metadata(&configuration).is_ok_and(|found| !found.is_file()) {
            let problem =
                format!("{} is not a regular file: name another with --config", configuration.display());
            return Err(Error::Unusable(vec![problem]));
        }
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

    /// Checks who else could change the configuration, as `sluice-proxy` does when it reads it.
    ///
    /// # Errors
    /// If other users could.
    pub(crate) fn check_rights(&self, settings: &Settings) -> Result<(), Error> {
        let exposed = settings.exposures_of_proxy(Some(&self.configuration), &settings.trusted_by_proxy());
        let exposed: Vec<_> = exposed.iter().map(ToString::to_string).collect();
        if exposed.is_empty() { Ok(()) } else { Err(Error::Unusable(exposed)) }
    }

    /// Writes the key, if one is given, and then the configuration.
    ///
    /// # Errors
    /// If the system refuses. A previous configuration is unchanged then, and no new key is left.
    pub(crate) fn write(&self, draft: &Draft, key: Option<&GivenKey>) -> Result<(), Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&self.dir)
            .map_err(|source| Error::Write { path: self.dir.clone(), source })?;
        let had_key = fs::symlink_metadata(&self.key).is_ok();
        let write = |path: &Path, mode, text: &str| {
            let written = file::replace(path, mode, text.as_bytes());
            written.map_err(|source| Error::Write { path: path.to_owned(), source })
        };
        if let Some(key) = key {
            write(&self.key, KEY_MODE, key.expose())?;
        }
        let written = write(&self.configuration, CONFIGURATION_MODE, &draft.text());
        if written.is_err() && key.is_some() && !had_key {
            drop(fs::remove_file(&self.key));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use platform_core::secret::Secret;
    use platform_runtime::random;

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

    /// The file system of `/proc` takes no file.
    #[test]
    fn a_key_stays_only_with_its_configuration() {
        let dir = Dir::new();
        let key = GivenKey::new(KeyOrigin::Terminal, Secret::new("sk-1".to_owned())).unwrap();
        let mut site = Site::of(&dir.0.join("sluice.toml")).unwrap();
        site.configuration = "/proc/no/sluice.toml".into();
        for had_key in [false, true] {
            site.write(&draft("http://a"), Some(&key)).unwrap_err();
            assert_eq!(site.key().exists(), had_key);
            fs::write(site.key(), "sk-0").unwrap();
        }
    }

    #[test]
    fn a_directory_is_no_configuration() {
        let dir = Dir::new();
        let refused = Site::of(&dir.0).unwrap_err().to_string();
        assert!(refused.contains("is not a regular file"), "{refused}");
    }
}
