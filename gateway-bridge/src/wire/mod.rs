//! What is said on the wire, without the wire: frames to values and back. No tokio, no clock, no randomness.
//!
//! Unknown events, fields and values of known fields are passed over, so that a newer gateway is understood as far as it
//! is an older one. What is no frame at all is [`Malformed`].

pub(crate) mod answer;
pub(crate) mod connect;
pub(crate) mod fault;
pub(crate) mod frame;
pub(crate) mod hello;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod transcript;

#[cfg(test)]
mod tests;

/// A text that is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no frame of the gateway protocol")]
pub(crate) struct Malformed;
