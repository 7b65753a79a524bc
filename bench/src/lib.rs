//! Provides the scripted upstream and the benchmark, equipment for tests and measurements of the other crates.
//!
//! It is not part of the product, and nothing in the product depends on it. It depends on none of the product's crates:
//! a test should not share code with the program it checks.

pub mod cli;
pub mod fairness;
pub mod fast;
pub mod hop;
pub mod instructions;
pub mod load;
pub mod measure;
pub mod peer;
pub mod pool;
pub mod report;
pub mod request;
pub mod session;
pub mod tls;
pub mod upstream;
pub mod workload;

use std::future::Future;

use tokio::task::JoinHandle;

fn spawn(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_result(future)
}

#[expect(clippy::disallowed_methods, reason = "the equipment shares no code with what it tests")]
fn spawn_result<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}
