//! The secrets that run tokens are signed with: several from a file, or one from the environment.
//!
//! The file has a secret per line, `id:secret`; the first one mints, all verify. Empty lines and lines that
//! begin with `#` are skipped. To rotate: append the new secret, later move it to the top, and remove the old
//! one when its last token has expired. Nothing here says a secret in an error.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use platform_core::{
    id::SecretId,
    limit::ByteSize,
    name,
    secret::Secret,
    token::{NamedSecret, Secrets, Unusable},
};

use crate::file::{self, Unread};

/// Name of the secret that comes from the environment.
pub const FROM_ENVIRONMENT: &str = "env";

/// Eight long secrets with remarks fit many times.
const LARGEST: ByteSize = ByteSize::kib(64);

/// Why the secrets are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or other users can read or change it.
    #[error("cannot read proxy.token_secrets_file {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Unread,
    },
    /// A file that is there and says nothing is a mistake.
    #[error("proxy.token_secrets_file {} holds no secret: expected lines of `id:secret`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line is none. It may hold a secret, so it is not shown.
    #[error(
        "{}:{line}: expected `id:secret`; an id is 1 to 32 letters, digits, `_`, `.` or `-`, not starting with a sign",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A secret is not fit for use.
    #[error("the token secrets in {origin} cannot be used")]
    Unusable {
        /// Where they come from.
        origin: String,
        /// Why not.
        #[source]
        source: Unusable,
    },
}

/// Reads the secrets from `file` if there is one, else takes the one from the environment. None at all is possible:
/// then no token holds.
///
/// # Errors
/// If the file cannot be read, is open to others, or a secret cannot be used.
pub fn read(file: Option<&Path>, from_environment: Option<&Secret>) -> Result<Secrets, Error> {
    let Some(path) = file else { return in_environment(from_environment) };
    let secrets = parse(path, &text_of(path)?)?;
    if secrets.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    Secrets::new(secrets).map_err(|source| Error::unusable(path, source))
}

impl Error {
    fn unusable(path: &Path, source: Unusable) -> Self {
        Self::Unusable { origin: path.display().to_string(), source }
    }
}

fn in_environment(secret: Option<&Secret>) -> Result<Secrets, Error> {
    let Some(secret) = secret else { return Ok(Secrets::default()) };
    let id = SecretId::parse(FROM_ENVIRONMENT).expect("it follows its own rule");
    NamedSecret::new(id, secret)
        .and_then(|secret| Secrets::new(vec![secret]))
        .map_err(|source| Error::Unusable { origin: name::env::PROXY_SHARED_SECRET.to_owned(), source })
}

fn text_of(path: &Path) -> Result<Secret, Error> {
    file::secret(path, LARGEST).map_err(|source| Error::File { path: path.to_owned(), source })
}

fn parse(path: &Path, text: &Secret) -> Result<Vec<NamedSecret>, Error> {
    let lines = text.expose().lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let wrong = || Error::Line { path: path.to_owned(), line: number };
            let (id, secret) = line.split_once(':').ok_or_else(wrong)?;
            let id = SecretId::parse(id).map_err(|_shows_the_line| wrong())?;
            NamedSecret::new(id, &Secret::new(secret.to_owned()))
                .map_err(|source| Error::unusable(path, source))
        })
        .collect()
}
