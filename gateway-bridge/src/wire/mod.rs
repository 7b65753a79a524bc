//! Converts frames to values and back, without I/O: no tokio, no clock, no randomness.
//!
//! Unknown events, fields and values of known fields are ignored. This client thus understands a newer gateway as far
//! as it behaves like an older one. A text that is not a frame at all is [`Malformed`].

pub(crate) mod answer;
pub(crate) mod connect;
pub(crate) mod frame;
pub(crate) mod gateway_error;
pub(crate) mod hello;
mod message;
pub(crate) mod request;
pub(crate) mod run;
mod tool;
pub(crate) mod transcript;

#[cfg(test)]
mod tests;

/// Error for a text that is not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no frame of the gateway protocol")]
pub(crate) struct Malformed;
