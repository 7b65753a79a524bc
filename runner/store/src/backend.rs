//! Defines the differences between SQLite and Postgres. All other statements are the same for both.

/// Database that keeps the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
}

/// Purpose of a lock on the row that names the host. A transaction that will change the row takes the stronger lock at
/// once. Two transactions that first shared the lock would deadlock.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowLock {
    /// No other transaction changes the row.
    Keep,
    /// This transaction changes the row.
    Change,
}

impl Backend {
    /// Returns the statement that begins a writing transaction. SQLite has one writer. The transaction waits for its
    /// turn at the beginning: later, after a read, it could only fail.
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Returns the statement that begins a reading transaction, which sees one snapshot.
    pub(super) const fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN DEFERRED",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Returns the query that reads the database's clock, in milliseconds since the epoch.
    pub(super) const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// Returns the text in `column` as JSON, of which `->>` reads a member.
    pub(super) fn json(self, column: &str) -> String {
        match self {
            Self::Sqlite => column.to_owned(),
            Self::Postgres => format!("CAST({column} AS JSON)"),
        }
    }

    /// Returns the query that counts the tables called `$1`: one or none.
    pub(super) const fn has_table(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
            Self::Postgres => {
                "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1"
            }
        }
    }

    /// Returns the statement that lets one program at a time change the schema. On SQLite the transaction itself does
    /// that.
    pub(super) const fn lock_schema(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            // Cast to text, because the `Any` driver does not know the type of the result.
            Self::Postgres => Some("SELECT CAST(pg_advisory_xact_lock(7382957011) AS TEXT)"),
        }
    }

    /// Returns the statement that lets no other program read or write rows until the transaction ends. Locks hosts
    /// last, as every transaction that claims a run does. SQLite has one writer.
    pub(super) const fn lock_tables(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(
                "LOCK TABLE runs, events, resources, cursors, principals, turns, calls, receipts, top_ups, balances, ledger_rows, reconciliations, tool_calls, accepted_tools, usage_sums, refusal_sums, run_sums, gateway_agents, gateway_agent_files, proposals, browser_sessions, pool, hosts IN ACCESS EXCLUSIVE MODE",
            ),
        }
    }

    /// Returns the end of a query that locks the row of the run that it finds. Others skip that row meanwhile. SQLite has
    /// one writer.
    pub(super) const fn lock_run(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE OF runs SKIP LOCKED",
        }
    }

    /// Returns the end of a query that locks the rows that it finds. SQLite has one writer.
    pub(super) const fn lock_row(self, lock: RowLock) -> &'static str {
        match (self, lock) {
            (Self::Sqlite, _) => "",
            (Self::Postgres, RowLock::Keep) => " FOR SHARE",
            (Self::Postgres, RowLock::Change) => " FOR UPDATE",
        }
    }

    /// Returns whether programs can notify each other over the database.
    pub(super) const fn has_channels(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Returns the statement that lets one program at a time order runs of the installation `$1`. So no other program
    /// stores a run that was not counted. SQLite has one writer.
    pub(super) const fn lock_orders(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("SELECT CAST(pg_advisory_xact_lock(738295, hashtext($1)) AS TEXT)"),
        }
    }

    /// Returns the statement that lets one program at a time claim runs of the installation `$1`. SQLite has one
    /// writer.
    pub(super) const fn lock_claims(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("SELECT CAST(pg_advisory_xact_lock(738296, hashtext($1)) AS TEXT)"),
        }
    }

    /// Returns the statement that lets one program at a time correct the receipts of the call `$1`. SQLite has one
    /// writer.
    pub(super) const fn lock_call(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("SELECT CAST(pg_advisory_xact_lock(738297, hashtext($1)) AS TEXT)"),
        }
    }

    /// Returns the first statements of a new connection. WAL: readers do not wait for the writer. FULL: committed
    /// changes survive a power failure. A container or a workspace survives it as well, and is found only by its row.
    pub(super) const fn on_connect(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                 PRAGMA busy_timeout = 5000;"
            }
            // A client that stalls within a transaction keeps the run's row locked, and no worker could take the run
            // over.
            Self::Postgres => {
                "SET application_name = 'sluice'; SET lock_timeout = '10s'; \
                 SET idle_in_transaction_session_timeout = '2s';"
            }
        }
    }

    /// Returns the number of connections of one program. On SQLite, more connections would only wait for each other.
    pub(super) const fn connections(self) -> u32 {
        match self {
            Self::Sqlite => 1,
            Self::Postgres => 4,
        }
    }
}
