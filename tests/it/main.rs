//! One integration binary, many stories: linking once is what takes time.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod answers;
mod attacks;
mod bodies;
mod chaos;
mod cleanup;
mod cli;
mod commands;
mod complaints;
mod control;
mod endings;
mod fairness;
mod framing;
mod freeze;
mod identity;
mod journal;
mod journal_contract;
mod journal_crash;
mod journal_reading;
mod journal_space;
mod limits;
mod metrics;
mod openclaw;
mod path;
mod refusals;
mod runs;
mod sandbox;
mod secrets;
mod shared;
mod shutdown;
mod sockets;
mod streaming;
mod tap;
mod tidy;
mod time;
mod time_clients;
mod tokens;
mod up;
mod upstream;
mod upstream_tls;
