//! Tests host tools in whole runs. `tests/processes/tools` has the data plane's part.

mod approvals;
mod kills;
mod runs;
