//! Sends an agent's long conversation, and receives a stream without pauses.

use super::{Load, Workload};
use crate::request;

pub(super) const WORKLOAD: Workload = Workload {
    name: "big-stream",
    about: "164 KB in, stream of 64 events as fast as they come, 8 connections",
    load: Load::Closed { connections: 8 },
    request: || request::chat("fast-events64", 164 << 10),
    ..Workload::CLOSED
};
