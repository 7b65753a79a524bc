//! Parses the address of a store, and prepares its file and password.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use platform_core::{limit::ByteSize, secret::Secret};
use platform_runtime::{
    file::{self, Unread},
    settings, state_file,
    trust::Trusted,
};
use sqlx::{ConnectOptions, any::AnyConnectOptions};

use super::{backend::Backend, error::Error};

/// Longest password that is read from a file.
const MAX_PASSWORD: ByteSize = ByteSize::kib(4);
/// Query parameter that passes a password to the driver, even where the URL has no host.
const PASSWORD_KEY: &str = "password";

/// Address of a store. Displayed without its password.
#[derive(Clone)]
pub struct Address {
    pub(super) options: AnyConnectOptions,
    pub(super) backend: Backend,
    /// Address as the settings spell it; contains no password.
    url: String,
    /// The file of a SQLite store.
    file: Option<PathBuf>,
    /// Most connections of one handle.
    pub(super) connections: u32,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.url)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.url)
    }
}

impl Address {
    /// Returns the address of the store that `settings` name. The password comes from `store.password_file` if that is
    /// set, and from the environment otherwise.
    ///
    /// # Errors
    /// If the address is invalid, or the file cannot be read or is open to others.
    pub fn of(settings: &settings::Store, from_environment: Option<&Secret>) -> Result<Self, Error> {
        let from_file = settings.password_file.as_deref().map(read_password).transpose()?;
        Self::parse(&settings.url, from_file.as_ref().or(from_environment))
    }

    /// Returns the same address, at which a store has up to `connections` connections. More than one help a reader on
    /// SQLite: its reads then do not wait for its own writes, which wait for the writer of another handle.
    #[must_use]
    pub const fn with_connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// Parses the address of a store: `sqlite:///absolute/path` or `postgres://user@host:port/database`.
    ///
    /// # Errors
    /// If `url` is neither, or contains a password.
    pub fn parse(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        settings::Store::check(url).map_err(|problem| Error::Address { problem })?;
        // The parser's error is dropped: it may quote the URL.
        let unparsable = |_may_quote_the_url| Error::Address { problem: "it is not a URL" };
        let file = url.strip_prefix("sqlite://").map(PathBuf::from);
        let mut options = match &file {
            Some(_) => AnyConnectOptions::from_str(&format!("{url}?mode=rw")),
            None => AnyConnectOptions::from_str(url),
        }
        .map_err(unparsable)?
        .disable_statement_logging();
        let is_password = |pair: (std::borrow::Cow<'_, str>, _)| pair.0 == PASSWORD_KEY;
        if options.database_url.query_pairs().any(is_password) {
            return Err(Error::Address { problem: "it must not contain a password" });
        }
        if let (None, Some(password)) = (&file, password) {
            options.database_url.query_pairs_mut().append_pair(PASSWORD_KEY, password.expose());
        }
        let backend = if file.is_some() { Backend::Sqlite } else { Backend::Postgres };
        Ok(Self { options, backend, url: url.to_owned(), file, connections: backend.connections() })
    }

    /// Creates the file of a SQLite store if it is missing. Only its owner can read it, because it holds questions to
    /// agents and their answers. Checks the path before any creation, and does not follow a link in place of the file.
    /// A file that root creates belongs to the owner of the directory. So do the files that SQLite creates beside it.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        let Some((path, dir)) = self.file.as_deref().and_then(|path| Some((path, path.parent()?))) else {
            return Ok(());
        };
        let failed = |action| move |source| Error::File { action, path: path.to_owned(), source };
        state_file::check_path(path).map_err(Error::Exposed)?;
        if fs::symlink_metadata(path).is_err() {
            state_file::create_dir(dir).map_err(failed("make the directory of"))?;
            match state_file::create(path, b"") {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => created.map_err(failed("create"))?,
            }
        }
        state_file::check(path).map_err(|unread| match unread {
            Unread::Exposed(exposure) => Error::Exposed(exposure),
            Unread::Io(source) => failed("open")(source),
        })
    }
}

/// Reads a password from its file, without the line end.
fn read_password(path: &Path) -> Result<Secret, Error> {
    let text = file::secret(path, MAX_PASSWORD, &Trusted::own()).map_err(|unread| match unread {
        Unread::Exposed(exposure) => Error::Exposed(exposure),
        Unread::Io(source) => {
            Error::File { action: "read store.password_file", path: path.to_owned(), source }
        }
    })?;
    Ok(Secret::new(text.expose().trim_end_matches(['\r', '\n']).to_owned()))
}
