//! Holds many idle connections. Each has served one call; memory per connection is what a peer keeps of them.

use std::{io, sync::Arc};

use super::{Load, Workload};
use crate::{
    load::{Connection, Target},
    request, spawn_result,
};

pub(super) const WORKLOAD: Workload = Workload {
    name: "idle-10000",
    about: "10,000 connections that have served one call held idle: memory of each; latency of one more connection",
    load: Load::Idle { held: 10_000 },
    request: || request::chat("fast", 1024),
    ..Workload::CLOSED
};

/// Connections that are opened at the same time.
const OPENERS: usize = 32;

/// Opens `count` connections, and serves one call on each.
pub(super) async fn hold(target: &Target, request: &Arc<[u8]>, count: usize) -> io::Result<Vec<Connection>> {
    let mut openers = Vec::new();
    for _ in 0..OPENERS {
        let (target, request) = (target.clone(), Arc::clone(request));
        openers.push(spawn_result(async move {
            let mut held = Vec::new();
            for _ in 0..count / OPENERS {
                let mut connection = Connection::open(&target).await?;
                connection.exchange(&request).await?;
                connection.forget_buffer();
                held.push(connection);
            }
            Ok::<_, io::Error>(held)
        }));
    }
    let mut all = Vec::with_capacity(count);
    for opener in openers {
        all.extend(opener.await.map_err(io::Error::other)??);
    }
    Ok(all)
}
