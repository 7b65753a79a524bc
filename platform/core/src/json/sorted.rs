//! Writes a value in one form, whatever the order of its members, its spaces and escapes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Error, Raw};

/// Writes `value` as `serde_json` writes it with sorted members, piece by piece. Besides the text, memory is taken for the
/// parts of open arrays and objects alone.
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
            let items: Vec<Raw<'_>> = value.read()?;
            write("[");
            for (index, item) in items.into_iter().enumerate() {
                write(if index == 0 { "" } else { "," });
                write_sorted(item, write)?;
            }
            write("]");
        }
        _ => write(&value.read::<Value>()?.to_string()),
    }
    Ok(())
}
