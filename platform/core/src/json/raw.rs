//! JSON that stays as it was written.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Visitor},
};

/// Name by which the reader knows the type: only it can hand out a part of its text.
pub(super) const RAW: &str = "$sluicegate::json::Raw";

/// A JSON value as it was written, of a text that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'t>(&'t str);

/// A JSON value as it was written, of a text that was checked: the owned form of [`Raw`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawBuf(Box<str>);

impl<'t> Raw<'t> {
    /// The value `null`.
    pub const NULL: Self = Self("null");

    /// Returns the text.
    #[must_use]
    pub const fn get(self) -> &'t str {
        self.0
    }

    /// Reads the value. Its text was checked as a part of a larger one.
    ///
    /// # Errors
    /// If it has another type than `T`.
    pub fn read<T: Deserialize<'t>>(self) -> Result<T, super::Error> {
        super::deserialize::deserialize(self.0).map_err(super::Error::without_its_place)
    }

    /// Returns an owned copy.
    #[must_use]
    pub fn to_buf(self) -> RawBuf {
        RawBuf(self.0.into())
    }
}

impl RawBuf {
    /// Returns the text.
    #[must_use]
    pub const fn get(&self) -> &str {
        &self.0
    }

    /// Returns the value.
    #[must_use]
    pub const fn as_raw(&self) -> Raw<'_> {
        Raw(&self.0)
    }

    /// Reads the value. Its text was checked as a part of a larger one.
    ///
    /// # Errors
    /// If it has another type than `T`.
    pub fn read<'t, T: Deserialize<'t>>(&'t self) -> Result<T, super::Error> {
        self.as_raw().read()
    }
}

/// Reads a member that may have any type; returns `None` if it is missing, or has another type than `T`.
#[must_use]
pub fn read_member<'t, T: Deserialize<'t>>(member: Option<Raw<'t>>) -> Option<T> {
    member?.read().ok()
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw(text))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, _other: D) -> Result<Raw<'de>, D::Error> {
        Err(D::Error::custom("only `json::from_str` hands out a part of its text"))
    }
}

impl<'de: 't, 't> Deserialize<'de> for Raw<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, RawVisitor)
    }
}

impl<'de> Deserialize<'de> for RawBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(Raw::to_buf)
    }
}
