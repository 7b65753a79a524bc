//! Tests the journal: its records, its published contract, its readers, and how it fares in a crash or on a full disk.

mod commits;
mod contract;
mod crash;
mod reading;
mod records;
mod rotation;
mod space;
