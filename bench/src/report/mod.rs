//! Turns samples into a report: rows of medians and quartiles, tables, a plot, and a directory that keeps them.

mod headline;
mod plot;
mod quartiles;
mod readme;
mod record;
mod row;
mod table;

pub use self::{
    quartiles::Quartiles,
    readme::write as write_readme,
    record::Record,
    row::{Raw, Row},
    table::tables,
};
