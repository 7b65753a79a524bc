//! Tests recovery: processes are killed, stopped and restarted at any point, and backends are unavailable.

mod chaos;
