//! Calls servers over HTTP/1.1, with a connection for each request.
//!
//! 1. [`Dialer`] opens a connection, with TLS as [`trust`] says.
//! 2. [`exchange`] sends a request, and reads its answer whole within an [`AnswerLimit`].
//! 3. [`send`] returns an [`OpenAnswer`] that its caller reads, such as a stream.
//!
//! Follows no redirect, keeps no connection, and sends nothing twice.

mod answer;
mod dial;
mod error;
pub mod trust;

pub use self::{
    answer::{AnswerLimit, OpenAnswer, exchange, send},
    dial::{ByteStream, Dialer},
    error::Error,
};

/// Name of this program, for servers that ask who calls.
pub const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
