//! The commands one by one, in the cases that go wrong.

mod audit;
mod configuration;
mod doctor;
mod limits;
mod output;
mod retention;
mod runs;
mod token;
mod usage;
