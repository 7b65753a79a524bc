//! Finds members that occur twice in one object.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// JSON, of which only this is known.
struct Repeats(bool);

/// Returns whether a member occurs twice in an object of `text`, at any depth.
pub(super) fn has_repeats(text: &[u8]) -> bool {
    serde_json::from_slice::<Repeats>(text).is_ok_and(|Repeats(found)| found)
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatsVisitor)
    }
}

struct RepeatsVisitor;

impl<'de> Visitor<'de> for RepeatsVisitor {
    type Value = Repeats;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_str<E>(self, _value: &str) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Repeats, A::Error> {
        let mut found = false;
        while let Some(Repeats(inside)) = items.next_element()? {
            found |= inside;
        }
        Ok(Repeats(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Repeats, A::Error> {
        let mut found = false;
        let mut names = HashSet::new();
        while let Some((name, Repeats(inside))) = members.next_entry::<String, _>()? {
            found |= inside | !names.insert(name);
        }
        Ok(Repeats(found))
    }
}
