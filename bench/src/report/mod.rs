//! Turns samples into a report: rows of medians with their spread, tables, a plot, and a directory that keeps them.

mod headline;
mod plot;
mod readme;
mod record;
mod row;
mod table;

pub use self::{
    readme::write as write_readme,
    record::Record,
    row::{Raw, Row, Samples},
    table::tables,
};
