//! Reads the settings of the store, the database in which the control plane keeps its state.

use std::path::PathBuf;

use platform_core::limit::{Millis, events as limit};

use crate::config::{Section, settings};

/// Shortest retention of events. A follower of a run has to read its end within this time.
const MIN_RETENTION: Millis = Millis::seconds(60);

settings! {
    /// `[store]`
    #[derive(Debug, Clone)]
    pub struct Store read from section {
        /// Address: `sqlite:///path/to/file`, or `postgres://user@host:port/database`. One store serves one host, on
        /// which several `sluice` may use it; `sluice store` shows which, and moves it. A password goes into
        /// password_file or SLUICE_STORE_PASSWORD.
        pub url: String => or("sqlite:///var/lib/sluicegate/runner/sluice.db".to_owned()),
        /// File that holds the database's password and nothing else; closed to other users.
        pub password_file: Option<PathBuf> => optional(),
        /// Time that events and logs of a run are kept after its end. Its last events, with its answer, usage and
        /// outcome, stay.
        pub event_retention: Millis => at_least(&MIN_RETENTION).or(limit::KEEP),
        /// Number of ended runs of an account that keep their events and logs.
        pub event_retention_max_runs: u32 = section
            .field(
                "event_retention_max_runs",
                "Number of ended runs of an account, the latest ones, whose events and logs are kept at any age. Runs with no event but their end do not count.",
            )
            .or(limit::KEEP_OF),
        /// Time that questions, answers, events and threads are kept after a run's end. Its row and its usage stay. For
        /// ever if absent.
        pub retention: Option<Millis> => at_least(&MIN_RETENTION).optional(),
    }
}

impl Store {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let settings = Self::read(section);
        if let Err(problem) = Self::check(&settings.url) {
            section.reject("url", problem.to_owned());
        }
        settings
    }

    /// Checks that `url` can be a store's address.
    ///
    /// # Errors
    /// The reason, in words that do not repeat the address: it may hold a password where none belongs.
    pub fn check(url: &str) -> Result<(), &'static str> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            let is_plain = path.starts_with('/') && !path.ends_with('/') && !path.contains(['?', '#', '%']);
            return if is_plain {
                Ok(())
            } else {
                Err("expected `sqlite:///` and the absolute path of a file, without `?`, `#` or `%`")
            };
        }
        let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
            return Err("expected `sqlite:///path/to/file` or `postgres://user@host:port/database`");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
        if user.contains(':') || rest.contains("password=") {
            return Err(
                "a password does not belong here: put it into store.password_file or SLUICE_STORE_PASSWORD",
            );
        }
        Ok(())
    }
}
