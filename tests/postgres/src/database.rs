//! Creates a database of a test's own, and drops it after the test.

use std::{
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use crate::{
    program::psql,
    server::{FIRST, Server},
};

/// Variable with the directory of the shared server's socket, which `scripts/with-postgres.sh` sets.
const SHARED_SERVER: &str = "TEST_POSTGRES";

/// Database of a test's own, empty at first. Its server is that of the test run if there is one, which then has the
/// databases of other tests, too. Dropped with the connections that are left.
#[derive(Debug)]
pub struct Database {
    name: String,
    socket_dir: PathBuf,
    /// Absent if the server is shared.
    server: Option<Server>,
}

impl Database {
    /// Creates a database, after starting a server if the test run has none.
    ///
    /// # Panics
    /// If that fails.
    pub async fn create() -> Self {
        let Some(socket_dir) = shared_server() else {
            let server = Server::start().await;
            let socket_dir = server.socket_dir().to_owned();
            return Self { name: FIRST.to_owned(), socket_dir, server: Some(server) };
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        // The time tells this test from one that was killed, if the process id is used again.
        let name = format!("test_{}_{}", process::id(), now.as_nanos());
        psql(&socket_dir, FIRST, &format!("CREATE DATABASE {name}"));
        Self { name, socket_dir, server: None }
    }

    /// Returns the directory of the server's socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// Returns its address in the form of `store.url`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_over(&self.socket_dir)
    }

    /// Returns its address over a socket in another directory.
    #[must_use]
    pub fn url_over(&self, socket_dir: &Path) -> String {
        format!("postgres:///{}?host={}&user=sluice", self.name, socket_dir.display())
    }

    /// Returns what a query prints, without the names of columns.
    ///
    /// # Panics
    /// If the query fails.
    #[must_use]
    pub fn query(&self, query: &str) -> String {
        psql(&self.socket_dir, &self.name, query)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // After a failed test another panic would hide why; the shared server does not outlive the test run.
        if self.server.is_none() && !std::thread::panicking() {
            psql(&self.socket_dir, FIRST, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

/// Returns the directory of the shared server's socket.
#[expect(
    clippy::disallowed_methods,
    reason = "the server outlives the process of a test; the variable decides how long tests take, not whether they pass"
)]
fn shared_server() -> Option<PathBuf> {
    std::env::var_os(SHARED_SERVER).map(PathBuf::from)
}
