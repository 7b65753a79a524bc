//! What the journal tells: picking records, summing them up, checking that nothing of it was changed, explaining refusals.
//!
//! Pure but for the reading of files. Where lines come from and how results look is the commands'.

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
