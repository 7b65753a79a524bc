//! Sends large requests that wait for their answers. The memory they hold meanwhile is the peak of the round.

use super::{Load, Workload};
use crate::request;

pub(super) const WORKLOAD: Workload = Workload {
    name: "in-flight-64",
    about: "1 MiB in, 64 at once, each answered after 200 ms: see the peak of memory",
    load: Load::Closed { connections: 64 },
    request: || request::chat("fast-hold200ms", 1 << 20),
    ..Workload::CLOSED
};
