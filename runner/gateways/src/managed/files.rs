//! Manages the files of a managed gateway. They are in one directory that only this user can enter. Files that the
//! container's user has to access are therefore closed to other users, too.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use platform_core::{
    control::Correlation,
    id::SocketDirName,
    json::{self, Bounds},
    secret::Secret,
};
use platform_runtime::{file, lock::Lock, random, socket};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Error, spec::Setup};
use crate::{GatewayPaths, secrets};

/// Files of the plugin that adds a session's own headers to its calls, as the container has them.
const PLUGIN_FILES: [(&str, &str); 4] = [
    ("headers.js", include_str!("../../../../services/openclaw-headers-plugin/headers.js")),
    ("index.js", include_str!("../../../../services/openclaw-headers-plugin/index.js")),
    (PLUGIN_MANIFEST, include_str!("../../../../services/openclaw-headers-plugin/openclaw.plugin.json")),
    ("package.json", include_str!("../../../../services/openclaw-headers-plugin/package.json")),
];
/// Name of the plugin's manifest, which says which provider's calls it handles.
const PLUGIN_MANIFEST: &str = "openclaw.plugin.json";
/// Name of the gateway's configuration, as OpenClaw calls it.
const CONFIG_FILE: &str = "openclaw.json";

/// Files of one gateway.
#[derive(Debug)]
pub(super) struct Files<'f> {
    pub(super) paths: &'f GatewayPaths,
}

impl Files<'_> {
    /// Creates the directory if it is missing, and locks it; `None` if another process holds the lock.
    pub(super) fn lock(&self) -> Result<Option<Lock>, Error> {
        let dir = self.paths.dir();
        if let Some(parent) = dir.parent() {
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
            created.map_err(failed("create", parent))?;
        }
        socket::private_dir(dir, 0o700)?;
        Lock::attempt(dir).map_err(failed("lock", dir))
    }

    /// Creates the directory that its container reads.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        Ok(socket::private_dir(&self.paths.config(), 0o755)?)
    }

    /// Returns its token; creates one if it is missing.
    pub(super) fn token(&self) -> Result<Secret, Error> {
        let path = self.paths.token();
        if !path.exists() {
            write(&path, 0o600, format!("{:032x}{:032x}\n", random::bits(), random::bits()).as_bytes())?;
        }
        Ok(secrets::token(&path)?)
    }

    /// Returns `count` slots; existing ones stay.
    pub(super) fn slots(&self, count: usize) -> Result<Vec<String>, Error> {
        let path = self.paths.slots();
        let known = if path.exists() { secrets::slots(&path)? } else { Vec::new() };
        let digits = |slot: &Correlation| match slot {
            Correlation::Slot(bits) | Correlation::Trace(bits) => format!("{bits:032x}"),
        };
        let mut slots: Vec<_> = known.iter().take(count).map(digits).collect();
        slots.resize_with(count, || format!("{:032x}", random::bits()));
        if known.len() != count {
            write(&path, 0o600, (slots.join("\n") + "\n").as_bytes())?;
        }
        Ok(slots)
    }

    /// Returns the name of the directory of its socket at the data plane; creates one if it is missing.
    pub(super) fn listener_dir(&self) -> Result<SocketDirName, Error> {
        let path = self.paths.dir().join("door");
        let known = fs::read_to_string(&path).ok();
        if let Some(name) = known.and_then(|text| SocketDirName::parse(text.trim()).ok()) {
            return Ok(name);
        }
        let name = SocketDirName::from_random(random::bits());
        write(&path, 0o600, name.as_str().as_bytes())?;
        Ok(name)
    }

    /// Returns the configuration that its container has, if there is one that can be read.
    pub(super) fn config(&self) -> Option<Value> {
        read(&self.paths.config().join(CONFIG_FILE))
    }

    /// Returns the setup that its container was created from, if there is one that can be read.
    pub(super) fn setup(&self) -> Option<Setup> {
        read(&self.paths.dir().join("setup.json"))
    }

    /// Writes the setup of its container, and the container's configuration. Another user inside the container reads
    /// these files. No other user outside can, because only this user can enter the directory above.
    pub(super) fn write_setup(&self, setup: &Setup, config: &Value, provider: &str) -> Result<(), Error> {
        let setup = serde_json::to_vec(setup).expect("it has no keys but names");
        write(&self.paths.dir().join("setup.json"), 0o600, &setup)?;
        let plugin = self.paths.config().join("plugin");
        socket::private_dir(&plugin, 0o755)?;
        for (name, text) in PLUGIN_FILES {
            let text = if name == PLUGIN_MANIFEST { manifest_for(text, provider) } else { text.to_owned() };
            write(&plugin.join(name), 0o644, text.as_bytes())?;
        }
        write(&self.paths.config().join(CONFIG_FILE), 0o644, format!("{config:#}\n").as_bytes())
    }

    /// Removes all files of the gateway.
    pub(super) fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(self.paths.dir()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", self.paths.dir())(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the plugin's manifest for calls of `provider`.
fn manifest_for(manifest: &str, provider: &str) -> String {
    let mut manifest: Value = json::from_str(manifest, Bounds::STORED).expect("it is part of this program");
    manifest["providers"] = serde_json::json!([provider]);
    format!("{manifest:#}\n")
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    json::from_slice(&fs::read(path).ok()?, Bounds::STORED).ok()
}

/// Writes a file whole or not at all.
fn write(path: &Path, mode: u32, content: &[u8]) -> Result<(), Error> {
    file::replace(path, mode, content).map_err(failed("write", path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path: PathBuf = path.to_owned();
    move |source| Error::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn secrets_are_made_once_and_ours_alone() {
        let dir = tempfile::tempdir().unwrap();
        let paths = GatewayPaths::below(dir.path());
        let files = Files { paths: &paths };
        let _lock = files.lock().unwrap().unwrap();
        assert!(files.lock().unwrap().is_none(), "the lock is held");
        files.prepare().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(paths.dir()), mode(&paths.config())), (0o700, 0o755));

        let token = files.token().unwrap();
        assert_eq!((token.expose().len(), mode(&paths.token())), (64, 0o600));
        assert_eq!(files.token().unwrap().expose(), token.expose());

        let three = files.slots(3).unwrap();
        assert_eq!(mode(&paths.slots()), 0o600);
        let five = files.slots(5).unwrap();
        assert_eq!(five[..3], three, "a slot that is known stays");
        assert_eq!(files.slots(2).unwrap(), three[..2]);
        assert_ne!(five[3], five[4]);

        assert_eq!(files.listener_dir().unwrap(), files.listener_dir().unwrap());
        files.remove().unwrap();
        assert!(!paths.dir().exists());
    }
}
