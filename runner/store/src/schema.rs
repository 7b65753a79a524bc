//! Defines the schema as a list of migrations. The list only grows: a released migration never changes.
//!
//! To change the schema, append a file. The conformance suite then writes a golden backup of the new schema. Keep it
//! beside the older ones: the suite checks that each of them still migrates to the newest schema.

use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, Row};

use super::{
    Tx,
    backend::Backend,
    error::{Error, failed},
    gateway_sessions, run_sums, usage_sums,
};

/// Version of the first schema. Its predecessors were never released.
const FIRST: usize = 23;

/// The first schema, and the migrations to each later version.
const MIGRATIONS: [&str; 7] = [
    include_str!("migrations/023.sql"),
    include_str!("migrations/024.sql"),
    include_str!("migrations/025.sql"),
    include_str!("migrations/026.sql"),
    include_str!("migrations/027.sql"),
    include_str!("migrations/028.sql"),
    include_str!("migrations/029.sql"),
];

/// Version of the newest schema.
pub const SCHEMA: usize = FIRST + MIGRATIONS.len() - 1;

/// Checksum by which stores and backups know the first schema: that of the migration which completed it.
const FIRST_CHECKSUM: &str = "29dd5fed2882c0a315747d25eeae32720da900fe55cadfb89e7a84ef6b799649";

const TABLE: &str = "migrations";
const CREATE: &str = "CREATE TABLE migrations (version BIGINT PRIMARY KEY, checksum TEXT NOT NULL, \
                      applied BIGINT NOT NULL)";
const ACTION: &str = "read the store's schema";

/// Tables that are backed up, in an order in which each refers only to earlier ones. Warm containers are not backed up,
/// because they belong to this host and this moment. Nor are browser sessions, because a person can sign in again. Nor
/// are links to sign in, what browsers have reported, or hosts: a restored store serves the host that restored it.
pub(super) const TABLES: [&str; 23] = [
    "runs",
    "events",
    "resources",
    "cursors",
    "principals",
    "turns",
    "calls",
    "receipts",
    "top_ups",
    "balances",
    "ledger_rows",
    "reconciliations",
    "relays",
    "thread_workspaces",
    "tool_calls",
    "connections",
    "accepted_tools",
    "usage_sums",
    "refusal_sums",
    "run_sums",
    "gateway_agents",
    "gateway_agent_files",
    "proposals",
];

/// Returns the hash of the migration to `version`, which detects a changed migration.
pub(super) fn checksum(version: usize) -> Option<String> {
    let text = MIGRATIONS.get(version.checked_sub(FIRST)?)?;
    if version == FIRST {
        return Some(FIRST_CHECKSUM.to_owned());
    }
    Some(Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the version of a store; 0 if the store is new.
pub(super) async fn version(
    connection: &mut AnyConnection,
    backend: Backend,
    store: &str,
) -> Result<usize, Error> {
    let tables: i64 = sqlx::query_scalar(backend.has_table())
        .bind(TABLE)
        .fetch_one(&mut *connection)
        .await
        .map_err(failed(ACTION))?;
    if tables == 0 {
        return Ok(0);
    }
    let applied =
        sqlx::query("SELECT version, checksum FROM migrations WHERE version >= $1 ORDER BY version")
            .bind(i64::try_from(FIRST).unwrap_or(i64::MAX))
            .fetch_all(connection)
            .await
            .map_err(failed(ACTION))?;
    for (version, row) in (FIRST..=SCHEMA).zip(&applied) {
        let found: String = row.try_get("checksum").map_err(failed(ACTION))?;
        if checksum(version).as_ref() != Some(&found) {
            return Err(Error::Altered { store: store.to_owned(), version });
        }
    }
    if applied.is_empty() {
        return Err(Error::Altered { store: store.to_owned(), version: FIRST });
    }
    let found = FIRST + applied.len() - 1;
    if found > SCHEMA {
        return Err(Error::Newer { store: store.to_owned(), found, known: SCHEMA });
    }
    Ok(found)
}

/// Prevents other programs from changing the schema until `tx` ends.
pub(super) async fn lock(tx: &mut Tx) -> Result<(), Error> {
    if let Some(lock) = tx.backend.lock_schema() {
        sqlx::query(lock).execute(tx.connection()).await.map_err(failed("lock the store's schema"))?;
    }
    Ok(())
}

/// Migrates the schema from version `from` to version `to`.
pub(super) async fn migrate(tx: &mut Tx, from: usize, to: usize) -> Result<(), Error> {
    let action = "change the store's schema";
    if from == 0 {
        sqlx::raw_sql(CREATE).execute(tx.connection()).await.map_err(failed(action))?;
    }
    let migrations = (FIRST..).zip(MIGRATIONS);
    for (version, text) in migrations.filter(|(version, _)| (from + 1..=to).contains(version)) {
        sqlx::raw_sql(text).execute(tx.connection()).await.map_err(failed(action))?;
        fill(tx, version).await?;
        sqlx::query("INSERT INTO migrations (version, checksum, applied) VALUES ($1, $2, $3)")
            .bind(i64::try_from(version).unwrap_or(i64::MAX))
            .bind(checksum(version))
            .bind(tx.now)
            .execute(tx.connection())
            .await
            .map_err(failed(action))?;
    }
    Ok(())
}

/// Fills what the migration to `version` brings from the rows that were there before.
async fn fill(tx: &mut Tx, version: usize) -> Result<(), Error> {
    match version {
        gateway_sessions::SINCE => tx.name_gateway_agents().await,
        usage_sums::SINCE => tx.fill_sums().await,
        run_sums::SINCE => {
            tx.fill_run_sums().await?;
            tx.fill_unpriced().await
        }
        _ => Ok(()),
    }
}

/// Removes all tables.
pub(super) async fn drop_all(tx: &mut Tx) -> Result<(), Error> {
    const DROP: &str = "DROP TABLE IF EXISTS proposals; DROP TABLE IF EXISTS gateway_agent_files; DROP TABLE IF EXISTS gateway_agents; DROP TABLE IF EXISTS run_sums; DROP TABLE IF EXISTS refusal_sums; DROP TABLE IF EXISTS usage_sums; DROP TABLE IF EXISTS csp_reports; DROP TABLE IF EXISTS sign_in_links; DROP TABLE IF EXISTS accepted_tools; DROP TABLE IF EXISTS connections; DROP TABLE IF EXISTS tool_calls; DROP TABLE IF EXISTS thread_workspaces; DROP TABLE IF EXISTS relays; DROP TABLE IF EXISTS ledger_rows; DROP TABLE IF EXISTS reconciliations; DROP TABLE IF EXISTS balances; DROP TABLE IF EXISTS top_ups; DROP TABLE IF EXISTS receipts; DROP TABLE IF EXISTS calls; DROP TABLE IF EXISTS browser_sessions; DROP TABLE IF EXISTS hosts; DROP TABLE IF EXISTS pool; DROP TABLE IF EXISTS principals; \
                        DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS turns; DROP TABLE IF EXISTS resources; DROP TABLE IF EXISTS events; DROP TABLE IF EXISTS runs; \
                        DROP TABLE IF EXISTS migrations;";
    sqlx::raw_sql(DROP).execute(tx.connection()).await.map_err(failed("empty the store"))?;
    Ok(())
}
