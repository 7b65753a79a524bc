//! Tests of the whole system with containers, Postgres or nginx, by area. They use no foreign clients.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod cli;
mod connections;
mod docs;
mod gateways;
mod observability;
mod proxy;
mod recovery;
mod runs;
mod sandbox;
mod security;
mod tools;
