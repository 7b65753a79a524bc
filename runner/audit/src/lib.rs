//! Evaluates the journal: selects records, sums them up, verifies that none was changed, and explains refusals.
//!
//! Everything is pure, except that `files` reads files. The commands supply the lines and print the results.
//!
//! Does not follow the journal and does not print. Start reading at [`Entry`] and [`Filter`]; [`advice`] has one row
//! per refusal.
//!
//! Invariants: a changed byte is found. Advice opens no control field.

pub mod advice;
pub mod csv;
mod entry;
pub mod files;
mod filter;
mod histogram;
mod sums;
pub mod verify;

pub use self::{
    entry::Entry,
    filter::{Filter, When},
    sums::{By, Groups, Sort, Sums},
};
