//! Keeps the metrics of a process in plain arrays of numbers, and writes them as the text that Prometheus reads.
//!
//! The metrics themselves and their names are defined elsewhere. `prometheus-client` would write `OpenMetrics` instead
//! of the format 0.0.4, which every scraper reads. It would also save no more work than this module does.

mod cells;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    cells::{Bound, Cells, Distribution, Histograms},
    text::{Decimal, Exposition, Family, Kind, Labels, dollars, seconds},
};

/// Content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
