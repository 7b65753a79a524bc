//! keys reads the keys that seal connections: the first one seals, all open.

use std::{fmt, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platform_core::{
    code::{Code, Coded},
    limit::ByteSize,
    secret::Secret,
};
use platform_runtime::{
    file::{self, Unread},
    random,
    settings::KeyFile,
    trust::Trusted,
};
use ring::{
    aead::{AES_256_GCM, LessSafeKey, UnboundKey},
    digest::{Context, SHA256},
};
use zeroize::Zeroizing;

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Most keys of a file.
const MAX_KEYS: usize = 16;
/// Largest file.
const MAX_FILE: ByteSize = ByteSize::kib(16);
/// Text before a key where its id is made.
const ID_LABEL: &[u8] = b"sluicegate sealing key\0";
/// Bytes of an id.
const ID_BYTES: usize = 6;

/// Reason why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// systemd gives this process no credentials.
    #[error(
        "connections.key_file names the credential `{name}`, and CREDENTIALS_DIRECTORY is not set: add `LoadCredential={name}:/path/to/the/file` to the unit, or name a path with a `/`"
    )]
    NoCredential {
        /// Name of the credential.
        name: String,
    },
    /// The file cannot be read, or other users can read it.
    #[error(
        "cannot read connections.key_file {}: make it with `sluice connections keygen`, mode 0600", path.display()
    )]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: Unread,
    },
    /// A line is not a key. It may be a secret all the same, so it is not shown.
    #[error("connections.key_file {}:{line}: {problem}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Problem of the line.
        problem: &'static str,
    },
    /// The file has no key.
    #[error("connections.key_file {} has no key: add one with `sluice connections keygen`", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
}

impl Coded for KeyFileError {
    fn code(&self) -> Code {
        Code::ConnectionKeysUnusable
    }
}

/// Key that seals, or opens.
pub(crate) struct SealingKey {
    pub(crate) id: String,
    pub(crate) key: LessSafeKey,
}

/// Keys that seal connections.
pub struct SealingKeys {
    keys: Vec<SealingKey>,
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

impl SealingKeys {
    /// Reads the keys in a file. Empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// If the file cannot be read, other users can read or change it, or a line is not a key.
    pub fn read(file: &KeyFile) -> Result<Self, KeyFileError> {
        let path = file.path().map_err(|name| KeyFileError::NoCredential { name: name.to_owned() })?;
        let text = file::secret(&path, MAX_FILE, &Trusted::own())
            .map_err(|source| KeyFileError::File { path: path.clone(), source })?;
        let mut keys: Vec<SealingKey> = Vec::new();
        for (index, line) in text.expose().lines().enumerate() {
            let line_text = line.trim();
            if line_text.is_empty() || line_text.starts_with('#') {
                continue;
            }
            let invalid = |problem| KeyFileError::Line { path: path.clone(), line: index + 1, problem };
            let key = SealingKey::parse(line_text).ok_or_else(|| {
                invalid("expected 32 bytes in base64, as `sluice connections keygen` prints them")
            })?;
            if keys.iter().any(|known| known.id == key.id) {
                return Err(invalid("the key is in the file twice: remove one line"));
            }
            if keys.len() == MAX_KEYS {
                return Err(invalid(
                    "the file has more than 16 keys: remove old ones after `sluice connections reseal`",
                ));
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeyFileError::Empty { path }) } else { Ok(Self { keys }) }
    }

    /// Returns a new key, as a line of a file.
    #[must_use]
    pub fn generate() -> Secret {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for half in bytes.chunks_exact_mut(KEY_BYTES / 2) {
            half.copy_from_slice(&random::bits().to_ne_bytes());
        }
        Secret::new(BASE64_STANDARD.encode(bytes.as_slice()))
    }

    /// Returns the number of keys.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.keys.len()
    }

    /// Returns the key that seals.
    pub(crate) fn first(&self) -> Option<&SealingKey> {
        self.keys.first()
    }

    /// Returns the key with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&SealingKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

impl SealingKey {
    fn parse(line: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64_STANDARD.decode(line).ok()?);
        let key = UnboundKey::new(&AES_256_GCM, &bytes).ok()?;
        let mut digest = Context::new(&SHA256);
        digest.update(ID_LABEL);
        digest.update(&bytes);
        let digest = digest.finish();
        let id = digest.as_ref().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { id, key: LessSafeKey::new(key) })
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error as _, fs, os::unix::fs::PermissionsExt as _, path::Path};

    use super::*;

    fn write(text: &str, mode: u32) -> (tempfile::TempDir, KeyFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, KeyFile::Path(path))
    }

    fn printed(error: &KeyFileError) -> String {
        format!("{error} {:?} {error:?}", error.source().map(ToString::to_string))
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let [first, second] = [SealingKeys::generate(), SealingKeys::generate()];
        let text = format!("# November\n{}\n\n  {} \n", first.expose(), second.expose());
        let (_dir, file) = write(&text, 0o600);
        let keys = SealingKeys::read(&file).unwrap();
        assert_eq!(keys.keys.len(), 2);
        assert_eq!(keys.first().unwrap().id, SealingKey::parse(first.expose()).unwrap().id);
        assert!(keys.get(&SealingKey::parse(second.expose()).unwrap().id).is_some());
        assert!(!format!("{keys:?}").contains(first.expose()));
    }

    #[test]
    fn a_bad_key_file_names_the_setting_and_the_fix() {
        let good = SealingKeys::generate();
        let good = good.expose();
        let short = BASE64_STANDARD.encode([7; 16]);
        let many: String = (0..17).map(|_| format!("{}\n", SealingKeys::generate().expose())).collect();
        for (text, mode, problem) in [
            (String::new(), 0o600, "has no key: add one with `sluice connections keygen`"),
            ("# only a remark".to_owned(), 0o600, "has no key"),
            (format!("{good}\n{short}"), 0o600, ":2: expected 32 bytes in base64"),
            (format!("{good}\ncanary"), 0o600, ":2: expected 32 bytes in base64"),
            (format!("{good}\n{good}"), 0o600, ":2: the key is in the file twice"),
            (many, 0o600, "more than 16 keys"),
            (good.to_owned(), 0o644, "mode 0600"),
        ] {
            let (_dir, file) = write(&text, mode);
            let error = printed(&SealingKeys::read(&file).unwrap_err());
            assert!(error.contains(problem) && error.contains("connections.key_file"), "{problem}: {error}");
            for secret in [good, "canary", short.as_str()] {
                assert!(!error.contains(secret), "{error}");
            }
        }
        let missing = KeyFile::Path("/nowhere/keys".into());
        let error = printed(&SealingKeys::read(&missing).unwrap_err());
        assert!(error.contains("cannot read connections.key_file /nowhere/keys"), "{error}");
        let credential = KeyFile::Credential { name: "keys".to_owned(), directory: None };
        let error = SealingKeys::read(&credential).unwrap_err().to_string();
        assert!(error.contains("LoadCredential=keys:"), "{error}");
        let (dir, _file) = write(good, 0o600);
        let directory = Some(Path::to_owned(dir.path()));
        let credential = KeyFile::Credential { name: "keys".to_owned(), directory };
        assert!(SealingKeys::read(&credential).is_ok(), "the control");
    }
}
