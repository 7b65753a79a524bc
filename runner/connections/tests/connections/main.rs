//! connections tests the broker with a store, doubles of an OAuth provider and of GitHub, and files of keys.
//!
//! Each attack and each fault has its control.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod attacks;
#[expect(dead_code, unreachable_pub, unused_imports, reason = "tests of other crates share it")]
#[path = "../../../../tests/harness/github/mod.rs"]
mod github_double;
mod keys;
mod kinds;
#[allow(dead_code, unreachable_pub, reason = "tests of other crates share it")]
#[path = "../../../../tests/harness/oauth.rs"]
mod oauth_double;
#[expect(dead_code, unreachable_pub, reason = "the double uses a part of it")]
#[path = "../../../../tests/harness/pace.rs"]
mod pace;
mod refreshes;
mod world;
