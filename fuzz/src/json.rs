//! JSON objects as lists: every member is there, names that are there twice included, and values are the text itself.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of one object, in their order.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// Those of `text`, if it is an object.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A name that is there twice.
    pub(crate) fn twice(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        self.0.iter().map(|(name, _)| name.as_str()).find(|name| !seen.insert(*name))
    }

    /// The text of the value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }
}

/// The elements of `text`, if it is an array.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    let elements = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Listing;
        impl<'de> Visitor<'de> for Listing {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Listing)
    }
}
