//! The store's conformance suite: the same stories on SQLite and on Postgres.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod backups;
mod crashes;
mod database;
mod holders;
mod hosts;
mod leases;
mod pool;
mod prunes;
mod queue;
mod runs;
mod schemas;
mod secrets;

/// Makes of each story, which takes a [`database::Database`], a test on each backend.
macro_rules! on_both {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::database::Database::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::database::Database::postgres().await).await;
            })*
        }
    };
}
use on_both;
