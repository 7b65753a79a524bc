//! Evaluates the journal: selects records, sums them up, verifies the hash chain, and explains refusals.
//!
//! Everything is pure, except that [`files`] reads files. The commands of `sluice audit` supply the lines and print the
//! results.
//!
//! Does not follow the journal and does not print. Start reading at [`Entry`] and [`Filter`]; [`advice`] has one row
//! per refusal.
//!
//! Invariants: a changed byte is found. No advice suggests letting a field through that LiteLLM takes as an order.

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
