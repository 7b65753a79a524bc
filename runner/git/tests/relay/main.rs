//! relay brings commits of hostile repositories through the relay, beside the command that a careless host would run.
//!
//! Each vector plants something in an agent's repository. Its control shows that the naive command runs it, publishes
//! it or accepts it. The relay must do none of these, or name the rule.
//!
//! Bundles are made with plain git in the agent's repository, which stands in for the container of the product. What
//! runs there is forgotten before the relay starts: in a container it reaches nothing.

mod agent;
mod bundles;
mod canary;
mod contents;
mod flow;
#[expect(dead_code, unreachable_pub, reason = "tests of other crates share it")]
#[path = "../../../../tests/harness/git_server.rs"]
mod git_server;
mod host_files;
mod http;
mod messages;
mod mirrors;
mod nested;
mod own_changes;
#[expect(dead_code, unreachable_pub, reason = "the double uses a part of it")]
#[path = "../../../../tests/harness/pace.rs"]
mod pace;
mod programs;
mod world;
