//! bounds reads lists and counts values before they take memory: a short text has many small ones. Pure.

use std::{fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// List of at most `MAX` items. Reading stops at the first one too many.
#[derive(Debug)]
pub(crate) struct BoundedList<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T, const MAX: usize> Default for BoundedList<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for BoundedList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
    type Value = BoundedList<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format!("a list has more than {MAX} items")));
            }
            list.push(item);
        }
        Ok(BoundedList(list))
    }
}

/// Returns whether JSON has more than `max` values, members and items, without reading any of them.
pub(crate) fn has_more_values(json: &str, max: usize) -> bool {
    let mut values = 1_usize;
    let mut is_text = false;
    let mut is_escaped = false;
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            // Each begins one more value, but for the first in an empty list.
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values > max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_at_its_bound() {
        let read = |items: usize| {
            let json = serde_json::to_string(&vec![0; items]).unwrap();
            serde_json::from_str::<BoundedList<u8, 3>>(&json).map(|list| list.0.len())
        };
        assert_eq!(read(3).unwrap(), 3);
        assert!(read(4).unwrap_err().to_string().contains("more than 3 items"));
        assert!(serde_json::from_str::<BoundedList<u8, 3>>("1").is_err());
    }

    #[test]
    fn values_are_counted_outside_texts() {
        for (json, values) in [
            ("1", 1),
            (r#""a,b,[c],{d}\",\"""#, 1),
            (r#"["\\",1]"#, 3),
            (r#"{"a":1,"b":[1,2,{"c":"}"}]}"#, 7),
        ] {
            assert!(!has_more_values(json, values), "{json}");
            assert!(has_more_values(json, values - 1), "{json}");
        }
    }
}
