//! Reads the secrets that sign run tokens: several from a file, or one from the environment.
//!
//! The file has one secret per line, `id:secret`; the first one mints, all verify. Empty lines and lines that begin
//! with `#` are skipped. To rotate, append the new secret, and later move it to the top. Remove the old secret when its
//! last token has expired. No error here repeats a secret.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use platform_core::{
    code::{Code, Coded},
    id::SecretId,
    limit::ByteSize,
    name,
    secret::Secret,
    token::{NamedSecret, Secrets, Unusable},
};

use crate::{
    file::{self, Unread},
    trust::Trusted,
};

/// Name of the secret that comes from the environment.
pub const FROM_ENVIRONMENT: &str = "env";

/// Largest file. Eight long secrets with remarks fit many times.
const MAX_FILE: ByteSize = ByteSize::kib(64);

/// Reason why the secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or other users can read or change it.
    #[error("cannot read proxy.token_secrets_file {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the read.
        #[source]
        source: Unread,
    },
    /// The file exists and holds no secret.
    #[error("proxy.token_secrets_file {} holds no secret: expected lines of `id:secret`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The line has no id before a colon. It may hold a secret all the same, so it is not shown.
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
        /// Source of the secret.
        origin: String,
        /// Reason of the refusal.
        #[source]
        source: Unusable,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        Code::TokenSecretsUnusable
    }
}

/// Reads the secrets from `file` if there is one, else uses the one from the environment. Without any secret, no token
/// is valid.
///
/// # Errors
/// If the file cannot be read, if users outside `trusted` can read or change it, or if a secret cannot be used.
pub fn read(
    file: Option<&Path>,
    from_environment: Option<&Secret>,
    trusted: &Trusted,
) -> Result<Secrets, Error> {
    let Some(path) = file else { return read_environment(from_environment) };
    let secrets = parse(path, &read_file(path, trusted)?)?;
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

fn read_environment(secret: Option<&Secret>) -> Result<Secrets, Error> {
    let Some(secret) = secret else { return Ok(Secrets::default()) };
    let id = SecretId::parse(FROM_ENVIRONMENT).expect("it follows its own rule");
    NamedSecret::new(id, secret)
        .and_then(|secret| Secrets::new(vec![secret]))
        .map_err(|source| Error::Unusable { origin: name::env::PROXY_SHARED_SECRET.to_owned(), source })
}

fn read_file(path: &Path, trusted: &Trusted) -> Result<Secret, Error> {
    file::secret(path, MAX_FILE, trusted).map_err(|source| Error::File { path: path.to_owned(), source })
}

fn parse(path: &Path, text: &Secret) -> Result<Vec<NamedSecret>, Error> {
    let lines = text.expose().lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let invalid = || Error::Line { path: path.to_owned(), line: number };
            let (id, secret) = line.split_once(':').ok_or_else(invalid)?;
            let id = SecretId::parse(id).map_err(|_shows_the_line| invalid())?;
            NamedSecret::new(id, &Secret::new(secret.to_owned()))
                .map_err(|source| Error::unusable(path, source))
        })
        .collect()
}
