//! Integration tests by area, in one binary, because linking takes most of the time.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod cli;
mod connections;
mod dashboard;
mod docs;
mod gateways;
mod journal;
mod observability;
mod proxy;
mod recovery;
mod runs;
mod sandbox;
mod security;
mod tools;
