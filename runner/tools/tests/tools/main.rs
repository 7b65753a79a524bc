//! tools calls host tools over a real tool socket, with a store, a GitHub double and a Prometheus.
//!
//! Each refusal has its control: the same call without the fault.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod approvals;
mod calls;
mod connections;
#[expect(dead_code, unreachable_pub, unused_imports, reason = "tests of other crates share it")]
#[path = "../../../../tests/harness/github/mod.rs"]
mod double;
mod github;
mod mcp;
mod mcp_answers;
mod mcp_double;
mod metrics;
#[expect(dead_code, unreachable_pub, reason = "the double uses a part of it")]
#[path = "../../../../tests/harness/pace.rs"]
mod pace;
mod refusals;
mod servers;
mod world;
mod writes;
