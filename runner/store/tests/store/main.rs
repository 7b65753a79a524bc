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
mod gateway_agents;
mod gateway_sessions;
mod holders;
mod hosts;
mod leases;
mod ledger;
mod list_facts;
mod overview;
mod pool;
mod principals;
mod proposals;
mod prunes;
mod queue;
mod relays;
mod run_sums;
mod runs;
mod schemas;
mod secrets;
mod sign_in_links;
mod thread_workspaces;
mod threads;
mod tool_approvals;
mod tool_calls;
mod unreadable;

/// Declares each function, which takes a [`database::Database`], as a test on each backend. Functions after `restored:`
/// need Postgres even if the database is a file. Functions after `postgres:` take nothing. So exactly the tests in modules
/// `postgres` need Postgres.
macro_rules! on_both {
    (
        $($test:ident),+ $(,)?
        $(; restored: $($restored:ident),+ $(,)?)?
        $(; postgres: $($alone:ident),+ $(,)?)?
    ) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::database::Database::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::database::Database::postgres().await).await;
            })+
            $($(#[tokio::test]
            async fn $restored() {
                super::$restored(crate::database::Database::postgres().await).await;
            })+
            mod from_sqlite {
                $(#[tokio::test]
                async fn $restored() {
                    super::super::$restored(crate::database::Database::sqlite()).await;
                })+
            })?
            $($(#[tokio::test]
            async fn $alone() {
                super::$alone().await;
            })+)?
        }
    };
}
use on_both;

/// Declares each function, which takes nothing, as a test that needs Postgres.
macro_rules! on_postgres {
    ($($test:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test().await;
            })+
        }
    };
}
use on_postgres;
