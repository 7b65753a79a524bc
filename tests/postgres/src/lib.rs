//! Gives each test a Postgres database: on the server that the tests of a run share, or on its own server.
//!
//! A test that stops or pauses its server, or needs a password, starts a [`Server`]. Every other one creates a [`Database`].

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod database;
mod program;
mod server;

pub use self::{
    database::Database,
    server::{PASSWORD, Server},
};
