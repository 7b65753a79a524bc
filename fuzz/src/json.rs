//! Reads JSON objects as lists: every member is kept, also if its name occurs twice, and values are the text itself.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Members of one object, in their order.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// Returns the members of `text`, if it is an object.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns a name that occurs twice.
    pub(crate) fn twice(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        self.0.iter().map(|(name, _)| name.as_str()).find(|name| !seen.insert(*name))
    }

    /// Returns how often `name` occurs.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(other, _)| other == name).count()
    }

    /// Returns the text of the value of `name`, unless it is `null`.
    pub(crate) fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|value| *value != "null")
    }

    /// Returns the text of the value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }
}

/// Returns the elements of `text`; none if it is not an array.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    let elements = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

/// Returns the text that `json` is, if it is one.
pub(crate) fn text_of(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Returns whether no part of `json` is nested in more than 64 objects and lists.
pub(crate) fn is_shallow(json: &str) -> bool {
    let plain = json.replace(r"\\", "").replace(r#"\""#, "");
    let outside = plain.split('"').step_by(2).flat_map(str::chars);
    let mut depth = 0_i32;
    outside
        .map(|char| {
            depth += i32::from(matches!(char, '{' | '[')) - i32::from(matches!(char, '}' | ']'));
            depth
        })
        .all(|depth| depth <= 64)
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
