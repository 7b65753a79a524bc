//! github speaks with a GitHub that a test scripts.
//!
//! Each fault has its control: the same order without the fault. The module clients compares everything that was said with
//! GitHub's own description of its API.

mod app;
mod clients;
mod credentials;
#[expect(dead_code, unreachable_pub, reason = "tests of the whole system share it")]
#[path = "../../../../tests/harness/github/mod.rs"]
mod double;
mod faults;
mod issues;
#[expect(dead_code, unreachable_pub, reason = "the double uses a part of it")]
#[path = "../../../../tests/harness/pace.rs"]
mod pace;
mod pull_requests;
mod world;
