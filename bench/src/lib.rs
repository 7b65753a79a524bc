//! Equipment to test and measure the other crates with.
//!
//! Nothing here is part of the product, nothing in the product depends on it, and it depends on none of the
//! product's crates: what checks a program should not share its code.

pub mod cli;
pub mod fairness;
pub mod fast;
pub mod instructions;
pub mod load;
pub mod measure;
pub mod peer;
pub mod report;
pub mod session;
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
