//! Runs the store's conformance suite: the same tests on SQLite and on Postgres.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod accepted_tools;
mod backups;
mod balances;
mod browser_sessions;
mod calls;
mod cancellations;
mod changes;
mod connections;
mod crashes;
mod csp_reports;
mod database;
mod holders;
mod hosts;
mod leases;
mod ledger;
mod list_facts;
mod pool;
mod principals;
mod prunes;
mod queue;
mod relays;
mod runs;
mod schemas;
mod secrets;
mod sign_in_links;
mod thread_workspaces;
mod threads;
mod tool_approvals;
mod tool_calls;

/// Declares each function, which takes a [`database::Database`], as a test on each backend.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::database::Database::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::database::Database::postgres().await).await;
            })*
        }
    };
}
use on_both;
