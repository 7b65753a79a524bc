//! Writes a value in one form, whatever the order of its members, its spaces and escapes.

use std::{collections::BTreeMap, fmt};

use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::Value;

use super::{Error, Raw, deserialize};

/// Writes `value` as `serde_json` writes it with sorted members, piece by piece. Besides the text, memory is taken for the
/// members of open objects alone.
///
/// # Errors
/// If a string or number in it cannot be represented.
pub fn write_sorted(value: Raw<'_>, write: &mut dyn FnMut(&str)) -> Result<(), Error> {
    match value.get().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, Raw<'_>> = value.read()?;
            write("{");
            for (index, (name, member)) in members.into_iter().enumerate() {
                write(if index == 0 { "" } else { "," });
                write(&Value::from(name).to_string());
                write(":");
                write_sorted(member, write)?;
            }
            write("}");
        }
        Some(b'[') => {
            write("[");
            deserialize::visit(value.get(), Items { write })?;
            write("]");
        }
        _ => write(&value.read::<Value>()?.to_string()),
    }
    Ok(())
}

/// Writes the items of an array as they are read.
struct Items<'w> {
    write: &'w mut dyn FnMut(&str),
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut is_first = true;
        while let Some(item) = items.next_element::<Raw<'_>>()? {
            (self.write)(if is_first { "" } else { "," });
            is_first = false;
            write_sorted(item, self.write).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
