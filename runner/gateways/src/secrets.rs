//! Reads files that only this user may read: a gateway's token, its slots.

use std::path::Path;

use platform_core::{control::Correlation, limit::ByteSize, secret::Secret};
use platform_runtime::{
    file::{self, Unread},
    trust::Trusted,
};

use super::Error;

/// Largest size of a token file or of a list of slots.
const MAX_FILE: ByteSize = ByteSize::kib(64);

/// Returns the token in `path`.
pub(super) fn token(path: &Path) -> Result<Secret, Error> {
    let text = read("the gateway's token", path)?;
    let token = text.expose().trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(Error::NotOne { what: "token in a single line", path: path.to_owned() });
    }
    Ok(Secret::new(token.to_owned()))
}

/// Returns the slots in `path`, in their order: the gateway's providers are numbered so.
pub(super) fn slots(path: &Path) -> Result<Vec<Correlation>, Error> {
    let text = read("the gateway's slots", path)?;
    let lines = text.expose().lines().map(str::trim).filter(|line| !line.is_empty());
    let slots: Option<Vec<_>> = lines.map(Correlation::slot).collect();
    let what = "slots of 32 lower-case hexadecimal digits, a line each";
    slots.filter(|slots| !slots.is_empty()).ok_or_else(|| Error::NotOne { what, path: path.to_owned() })
}

fn read(what: &'static str, path: &Path) -> Result<Secret, Error> {
    file::secret(path, MAX_FILE, &Trusted::own()).map_err(|unread| match unread {
        Unread::Exposed(exposure) => Error::Exposed(exposure),
        Unread::Io(source) => Error::File { what, path: path.to_owned(), source },
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn written(text: &str, mode: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_token_is_one_word_and_private() {
        let (_dir, path) = written("canary-word\n", 0o600);
        assert_eq!(token(&path).unwrap().expose(), "canary-word");
        for (text, mode) in
            [("canary-word\n", 0o606), ("canary-word\n", 0o604), ("", 0o600), ("canary two", 0o600)]
        {
            let (_dir, path) = written(text, mode);
            let error = token(&path).unwrap_err().to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn slots_are_lines_in_their_order() {
        let (one, two) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
        let (_dir, path) = written(&format!("{two}\n\n{one}\n"), 0o600);
        assert_eq!(slots(&path).unwrap(), [two, one].map(|slot| Correlation::slot(slot).unwrap()));
        for text in ["", "0123\n", &format!("{one}\nx\n")] {
            let (_dir, path) = written(text, 0o600);
            assert!(slots(&path).is_err(), "{text}");
        }
    }
}
