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
            let mut failed = None;
            let visited = deserialize::visit(value.get(), Items { write, failed: &mut failed });
            if let Err(error) = visited {
                return Err(failed.unwrap_or(error));
            }
            write("]");
        }
        _ => write(&value.read::<Value>()?.to_string()),
    }
    Ok(())
}

/// Writes the items of an array as they are read.
struct Items<'w> {
    write: &'w mut dyn FnMut(&str),
    /// Error of an item.
    failed: &'w mut Option<Error>,
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
            if let Err(error) = write_sorted(item, self.write) {
                *self.failed = Some(error);
                return Err(A::Error::custom("an item cannot be written"));
            }
        }
        Ok(())
    }
}
