//! Tests recovery: processes are killed, stopped and restarted at any point, and backends are unavailable.

mod bad_ledgers;
mod balances;
mod docker_unavailable;
mod endurance;
mod receipts;
mod reconciliation;
mod restart;
mod runner_chaos;
mod store_unavailable;
pub(crate) mod survival;
mod two_workers;
