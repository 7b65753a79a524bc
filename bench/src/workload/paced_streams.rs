//! A thousand agents reading answers at the pace of a model.

use super::{Load, Workload, request};

pub(super) const WORKLOAD: Workload = Workload {
    name: "paced-1000",
    about: "1,000 streams at once, 100 events each, 20 ms apart",
    load: Load::Streams { count: 1000 },
    request: || request::chat("fast-events100-gap20ms", 1024),
};
