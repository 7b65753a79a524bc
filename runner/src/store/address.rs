//! Where a store is, and how to get into it.

use std::{
    fmt,
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use platform_core::{limit::ByteSize, secret::Secret};
use platform_runtime::{
    file::{self, Unread},
    settings,
    trust::{self, Trusted},
};
use sqlx::{ConnectOptions, any::AnyConnectOptions};

use super::{backend::Backend, error::Error, identity::own_dir};

/// Longest password that is read from a file.
const PASSWORD: ByteSize = ByteSize::kib(4);
/// How the driver is told a password, also where the URL has no host.
const PASSWORD_KEY: &str = "password";

/// Where a store is. Shown without its password.
#[derive(Clone)]
pub struct Address {
    pub(super) options: AnyConnectOptions,
    pub(super) backend: Backend,
    shown: String,
    /// The file of a SQLite store.
    file: Option<PathBuf>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl Address {
    /// The store that `settings` name. The password is read from their file if they name one, else it is the one from
    /// the environment.
    ///
    /// # Errors
    /// If the address is none, or the file cannot be read or is open to others.
    pub fn of(settings: &settings::Store, from_environment: Option<&Secret>) -> Result<Self, Error> {
        let from_file = settings.password_file.as_deref().map(password).transpose()?;
        Self::parse(&settings.url, from_file.as_ref().or(from_environment))
    }

    /// The store at `url`: `sqlite:///absolute/path` or `postgres://user@host:port/database`.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        settings::Store::check(url).map_err(|problem| Error::Address { problem })?;
        // Only what cannot be parsed is dropped: it may say what was written.
        let unreadable = |_shows_the_url| Error::Address { problem: "it is no URL" };
        let file = url.strip_prefix("sqlite://").map(PathBuf::from);
        let mut options = match &file {
            Some(_) => AnyConnectOptions::from_str(&format!("{url}?mode=rw")),
            None => AnyConnectOptions::from_str(url),
        }
        .map_err(unreadable)?
        .disable_statement_logging();
        let url_has_one = |pair: (std::borrow::Cow<'_, str>, _)| pair.0 == PASSWORD_KEY;
        if options.database_url.query_pairs().any(url_has_one) {
            return Err(Error::Address { problem: "a password does not belong into it" });
        }
        if let (None, Some(password)) = (&file, password) {
            options.database_url.query_pairs_mut().append_pair(PASSWORD_KEY, password.expose());
        }
        let backend = if file.is_some() { Backend::Sqlite } else { Backend::Postgres };
        Ok(Self { options, backend, shown: url.to_owned(), file })
    }

    /// Makes the file of a SQLite store if there is none, readable by its owner only: it holds what agents were asked
    /// and what they answered.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        let Some(path) = &self.file else { return Ok(()) };
        let failed = |action| move |source| Error::File { action, path: path.clone(), source };
        if let Some(dir) = path.parent() {
            own_dir(dir).map_err(failed("make the directory of"))?;
        }
        let mut file = OpenOptions::new();
        let file = file.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        drop(file.map_err(failed("open"))?);
        trust::check_secret(path, &Trusted::own()).map_err(Error::Exposed)
    }
}

fn password(path: &Path) -> Result<Secret, Error> {
    let text = file::secret(path, PASSWORD).map_err(|unread| match unread {
        Unread::Exposed(exposure) => Error::Exposed(exposure),
        Unread::Io(source) => {
            Error::File { action: "read store.password_file", path: path.to_owned(), source }
        }
    })?;
    Ok(Secret::new(text.expose().trim_end_matches(['\r', '\n']).to_owned()))
}
