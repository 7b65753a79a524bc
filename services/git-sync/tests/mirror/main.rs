//! Tests `git-sync` as a process: a real remote, real signals, and readers beside it.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

#[expect(dead_code, unreachable_pub, reason = "tests of other crates share it")]
#[path = "../../../../tests/harness/git_server.rs"]
mod git_server;
#[expect(dead_code, unreachable_pub, reason = "the double uses a part of it")]
#[path = "../../../../tests/harness/pace.rs"]
mod pace;
mod process;
mod readers;
mod remote;
mod signals;
mod tokens;
mod trees;
