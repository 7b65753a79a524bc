//! Reads answers at the pace of a model, as agents do. A few streams show the delay of an event; a thousand show the
//! cost of streams.

use std::time::Duration;

use super::{Load, Workload};
use crate::request;

/// Interval between two events of a stream.
pub(super) const GAP: Duration = Duration::from_millis(20);

const fn workload(name: &'static str, about: &'static str, count: u32) -> Workload {
    Workload {
        name,
        about,
        load: Load::Streams { count },
        request: || request::chat("fast-events50-gap20ms", 1024),
        ..Workload::CLOSED
    }
}

pub(super) const FEW: Workload = workload("paced-10", "10 streams at once, 50 events each, 20 ms apart", 10);
pub(super) const MANY: Workload =
    workload("paced-1000", "1,000 streams at once, 50 events each, 20 ms apart", 1000);
