//! From samples to what a person reads: rows of medians with their spread, a table, `summary.json`.

mod row;
mod table;

pub use self::{
    row::{Row, Samples},
    table::table,
};
