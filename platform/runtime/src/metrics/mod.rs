//! What a process counts, and the text in which Prometheus reads it: plain arrays of numbers, indexed by who owns them.
//!
//! Not here: what is counted, and what it is called. `prometheus-client` would write `OpenMetrics`, not the format 0.0.4 that
//! everything reads, and leaves no more to do than this.

mod cells;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    cells::{Bound, Cells, Distribution, Histograms},
    text::{Decimal, Exposition, Family, Kind, Labels, dollars, seconds},
};

/// What the text is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
