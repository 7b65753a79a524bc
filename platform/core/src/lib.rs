//! Defines the values that Sluicegate's processes must agree on: ids, names, grants, tokens, records, limits, secrets.
//!
//! Nothing in this crate reads a clock, a file or the environment, and nothing depends on tokio. Code that needs I/O
//! belongs one layer up, in `platform-runtime`.
//!
//! Reading order: [`id`] and [`name`], then [`grant`] (what a run may do) and [`token`] (how a client proves its run).
//! After these come [`record`] (what a call did) and [`control`] (the protocol between the two processes).

pub mod budget;
pub mod capability;
pub mod closest;
pub mod code;
pub mod connection;
pub mod control;
pub mod credits;
pub mod event;
pub mod fields;
pub mod grant;
pub mod host_tools;
pub mod id;
pub mod invalid;
pub mod invisible;
pub mod json;
pub mod limit;
pub mod litellm;
pub mod money;
pub mod name;
pub mod percent;
pub mod priority;
pub mod record;
pub mod record_text;
pub mod refusal;
pub mod route;
pub mod secret;
pub mod spend;
pub mod start;
pub mod sync_report;
mod tap;
pub mod tariff;
pub mod token;
pub mod trace;
pub mod traceparent;
pub mod untrusted;
mod upstream;
mod usage;
