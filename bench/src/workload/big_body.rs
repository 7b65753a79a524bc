//! An agent deep in its work: a long conversation goes up, a stream comes back as fast as it can.

use super::{Load, Workload, request};

pub(super) const WORKLOAD: Workload = Workload {
    name: "big-stream",
    about: "164 KB in, stream of 64 events as fast as they come, 8 connections",
    load: Load::Closed { connections: 8 },
    request: || request::chat("fast-events64", 164 << 10),
};
