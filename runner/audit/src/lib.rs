//! Evaluates the journal: selects records, sums them up, verifies that none was changed, and explains refusals.
//!
//! Everything is pure, except that `files` reads files. The commands supply the lines and print the results.

pub(crate) mod advice;
pub(crate) mod csv;
mod entry;
pub(crate) mod files;
mod filter;
mod histogram;
mod sums;
pub(crate) mod verify;

pub(crate) use self::{
    entry::Entry,
    filter::{Filter, When},
    sums::{By, Groups, Sort, Sums},
};
