//! Takes the upstream's key from where it was given: a file, standard input, the environment or a terminal.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use platform_core::{invalid::InvalidValue, limit::ByteSize, name, secret::Secret};
use platform_runtime::file;

/// Largest key that is read.
const MAX_KEY: ByteSize = ByteSize::kib(64);

/// Place where a key came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// A file.
    File(PathBuf),
    /// Standard input.
    StandardInput,
    /// The environment.
    Environment,
    /// A person at the terminal.
    Terminal,
}

impl KeyOrigin {
    /// Returns the place in words.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::StandardInput => "standard input".to_owned(),
            Self::Environment => name::env::LITELLM_MASTER_KEY.to_owned(),
            Self::Terminal => "the terminal".to_owned(),
        }
    }
}

/// A key that an `Authorization` header can carry, with its origin.
#[derive(Debug)]
pub(crate) struct GivenKey {
    pub(crate) origin: KeyOrigin,
    secret: Secret,
}

impl GivenKey {
    /// Reads the key from the file `path`, or from standard input if that is `-`.
    ///
    /// # Errors
    /// A text that says what is wrong, and how to give a key.
    pub(crate) fn read(path: &Path) -> Result<Self, InvalidValue> {
        if path == Path::new("-") {
            let mut text = String::new();
            let read = io::stdin().take(MAX_KEY.0 + 1).read_to_string(&mut text);
            return match read {
                Ok(length) if length as u64 <= MAX_KEY.0 => {
                    Self::new(KeyOrigin::StandardInput, Secret::new(text))
                }
                Ok(_) => Err(format!("--key-file -: standard input has more than {MAX_KEY}").into()),
                Err(error) => Err(format!("--key-file -: cannot read standard input: {error}").into()),
            };
        }
        let text = file::text(path, MAX_KEY)
            .map_err(|error| format!("--key-file {}: cannot be read: {error}", path.display()))?;
        Self::new(KeyOrigin::File(path.to_owned()), Secret::new(text))
    }

    /// Takes `secret`, without surrounding blanks.
    ///
    /// # Errors
    /// If it is empty, or has characters that a header cannot carry.
    pub(crate) fn new(origin: KeyOrigin, secret: Secret) -> Result<Self, InvalidValue> {
        let key = secret.expose().trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let origin = origin.in_words();
            return Err(
                format!("the key from {origin} is empty, or has blanks or characters beyond ASCII").into()
            );
        }
        Ok(Self { origin, secret: Secret::new(key.to_owned()) })
    }

    /// Returns the key itself.
    pub(crate) fn expose(&self) -> &str {
        self.secret.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_without_blanks() {
        let key = |text: &str| GivenKey::new(KeyOrigin::Terminal, Secret::new(text.to_owned()));
        assert_eq!(key(" sk-1\n").unwrap().expose(), "sk-1");
        for unusable in ["", " \n", "sk 1", "sk-1\nsk-2", "sk-ä"] {
            let problem = key(unusable).unwrap_err().to_string();
            assert!(problem.contains("the key from the terminal"), "{unusable:?}: {problem}");
        }
    }
}
