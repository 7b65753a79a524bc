//! Tests of the whole system that start processes only, by area: no container, and SQLite.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod api;
mod cli;
mod docs;
mod gateways;
mod init;
mod journal;
mod proxy;
mod recovery;
mod runs;
mod security;
mod tools;
