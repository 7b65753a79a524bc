//! github speaks with a GitHub that a test scripts.
//!
//! Each fault has its control: the same order without the fault. The last module compares everything that was said with
//! GitHub's own description of its API.

mod app;
mod credentials;
mod description;
#[expect(dead_code, unreachable_pub, reason = "tests of the whole system share it")]
#[path = "../../../../tests/harness/github/mod.rs"]
mod double;
mod faults;
mod issues;
mod pull_requests;
mod world;
