//! Reads JSON from outside. Every text that this program did not write is read here, or by the scanners of the proxy.
//!
//! A text is first checked as a whole, in one loop that builds nothing: its form (RFC 8259) and its [`Bounds`]. Then it
//! is deserialized. There a text of two meanings is refused, such as a member that occurs twice, or an array in place of
//! a struct. So are whole numbers that no 64 bits hold, and the names that serde_json reserves. A part that is passed over,
//! or kept as [`Raw`], is checked so when it is read: it does not spoil its text.
//!
//! Reading takes 24 bytes for each member of the objects that are open. How much a deserialized value takes is
//! decided by its type; for [`serde_json::Value`] by [`Bounds::values`], at some 700 bytes a value.

mod check;
mod deserialize;
mod error;
mod names;
mod parts;
mod raw;
mod sorted;
mod text;

#[cfg(test)]
mod tests;

use serde::Deserialize;

pub use self::{
    error::{Error, ErrorKind},
    raw::{Raw, RawBuf, read_member},
    sorted::write_sorted,
};

/// Bounds of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes.
    pub bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Most values, at any depth. Names of members do not count.
    pub values: usize,
}

impl Bounds {
    /// Depth that no useful text reaches, and that a thread's stack can hold.
    pub const DEPTH: usize = 64;
    /// Most values of a text without its own bound.
    pub const VALUES: usize = 100_000;

    /// Bounds of a text that this installation wrote, part of which may be from outside.
    pub const STORED: Self = Self { bytes: u32::MAX as usize, depth: 128, values: usize::MAX };

    /// Returns the bounds of a text of at most this many bytes.
    #[must_use]
    pub const fn of(bytes: usize) -> Self {
        Self { bytes, depth: Self::DEPTH, values: Self::VALUES }
    }

    /// Returns the bounds with another depth.
    #[must_use]
    pub const fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// Returns the bounds with another number of values.
    #[must_use]
    pub const fn with_values(self, values: usize) -> Self {
        Self { values, ..self }
    }
}

/// Reads a text that has not been decoded.
///
/// # Errors
/// If it is not UTF-8, or [`from_str`] fails.
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8], bounds: Bounds) -> Result<T, Error> {
    match std::str::from_utf8(text) {
        Ok(text) => from_str(text, bounds),
        Err(error) => Err(Error::at(text, error.valid_up_to(), ErrorKind::Utf8)),
    }
}

/// Reads a text.
///
/// # Errors
/// If it is malformed, exceeds a bound, has two meanings, or has another type than `T`.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str, bounds: Bounds) -> Result<T, Error> {
    check::check(text, bounds)?;
    deserialize::deserialize(text)
}
