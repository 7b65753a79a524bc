//! Identifies this client to a gateway as a device: an Ed25519 key, and what it signs.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use platform_core::{
    code::{self, Coded},
    limit::ByteSize,
    secret::Secret,
};
use platform_runtime::{
    file::{self, Unread},
    trust::Exposure,
};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use sha2::{Digest, Sha256};

/// Largest file that is read as a key.
const MAX_KEY_FILE: ByteSize = ByteSize::kib(4);

/// Key of this device. `Debug` shows the device's id only.
pub struct DeviceKey {
    pair: Ed25519KeyPair,
    id: String,
}

/// Error of opening a device key.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Other users can read or change the file. Any of them can pass for this device.
    #[error("{0}, and pair again")]
    Exposed(Exposure),
    /// The file does not hold a key.
    #[error("{} is not a device key: expected base64url of an Ed25519 key in PKCS #8", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {action} the device key {}", path.display())]
    Io {
        /// Operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl Coded for DeviceError {
    fn code(&self) -> code::Code {
        code::Code::GatewayFailed
    }
}

impl DeviceError {
    fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl DeviceKey {
    /// Opens the key in `path`. If the file is missing, creates a new key and stores it there with mode 0600.
    ///
    /// # Errors
    /// If something else is there, if others may read it, or if the system refuses. A symbolic link is not followed.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        match Self::read(path) {
            Err(DeviceError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::create(path)
            }
            other => other,
        }
    }

    /// Reads the key in `path`.
    ///
    /// # Errors
    /// As for [`DeviceKey::open`], and if nothing is there.
    pub fn read(path: &Path) -> Result<Self, DeviceError> {
        let text = file::private(path, MAX_KEY_FILE).map_err(|unread| match unread {
            Unread::Exposed(exposure) => DeviceError::Exposed(exposure),
            Unread::Io(source) => DeviceError::io("read", path)(source),
        })?;
        Self::parse(&text).ok_or_else(|| DeviceError::NotAKey { path: path.to_owned() })
    }

    fn create(path: &Path) -> Result<Self, DeviceError> {
        let (key, text) = Self::generate();
        match file::create_private(path, text.expose().as_bytes()) {
            Ok(()) => Ok(key),
            // Another process was faster: its key is the device's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(DeviceError::io("write", path)(error)),
        }
    }

    fn generate() -> (Self, Secret) {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .expect("getrandom(2) works on every kernel this runs on");
        let text = Secret::new(URL_SAFE_NO_PAD.encode(document.as_ref()));
        (Self::parse(&text).expect("it was just made"), text)
    }

    fn parse(text: &Secret) -> Option<Self> {
        let document = URL_SAFE_NO_PAD.decode(text.expose().trim()).ok()?;
        let pair = Ed25519KeyPair::from_pkcs8(&document).ok()?;
        let id =
            Sha256::digest(pair.public_key().as_ref()).iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Self { pair, id })
    }

    /// Returns the device's id: SHA-256 of its public key in lower-case hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the public key in base64url.
    #[must_use]
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(text.as_bytes()).as_ref())
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device.key");
        let key = DeviceKey::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(DeviceKey::open(&path).unwrap().id(), key.id());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!(key.id().len(), 64);
        let public = URL_SAFE_NO_PAD.decode(key.public_key()).unwrap();
        let signature = URL_SAFE_NO_PAD.decode(key.sign("v2|text")).unwrap();
        UnparsedPublicKey::new(&ED25519, public).verify(b"v2|text", &signature).unwrap();
        assert_eq!(format!("{key:?}"), format!("DeviceKey({})", key.id()));
    }

    #[test]
    fn readable_and_invalid_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device.key");
        DeviceKey::open(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(DeviceKey::open(&path), Err(DeviceError::Exposed(_))));
        let link = dir.path().join("link");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(DeviceKey::open(&link), Err(DeviceError::Io { .. })));
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(DeviceKey::open(&path), Err(DeviceError::NotAKey { .. })));
    }
}
