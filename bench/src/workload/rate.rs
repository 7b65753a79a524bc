//! Sends small calls at a fixed rate, far below the capacity of any peer. Latency counts from the time a request was
//! due.

use super::{Load, Workload};
use crate::request;

pub(super) const WORKLOAD: Workload = Workload {
    name: "rate-2000",
    about: "1 KB in, 600 B out, 2,000 requests a second over 32 connections, latency from when each was due",
    load: Load::Paced { connections: 32, per_second: 2000 },
    request: || request::chat("fast", 1024),
    ..Workload::CLOSED
};
