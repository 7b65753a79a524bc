//! schema decides which schemas of third parties are small enough to compile and to check arguments with. Pure.
//!
//! A reference leads to the same schema alone, and to no part that leads back to it. Written out, without references, the
//! schema stays within a bound.

use std::collections::BTreeMap;

use platform_core::invalid::InvalidValue;
use serde_json::Value;

/// Deepest nesting.
const MAX_DEPTH: usize = 24;
/// Most values.
const MAX_VALUES: usize = 4000;
/// Most values with all references written out.
const MAX_EXPANDED: usize = 20_000;
/// Keywords that make other references than those to a path, or give parts other names.
const REFUSED: [&str; 6] =
    ["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$id", "$anchor"];
/// Keyword of a reference.
const REF: &str = "$ref";

/// Checks the schema of a tool's arguments.
///
/// # Errors
/// A description of what is wrong.
pub(crate) fn check(schema: &Value) -> Result<(), InvalidValue> {
    if schema.get("type") != Some(&Value::from("object")) {
        return Err("its schema does not describe an object".into());
    }
    let mut values = 0;
    measure(schema, 1, &mut values)?;
    let mut sizes = SchemaSizes { root: schema, known: BTreeMap::new() };
    let size = sizes.of(schema)?;
    if size > MAX_EXPANDED {
        return Err(format!("its schema, written out, has more than {MAX_EXPANDED} values").into());
    }
    Ok(())
}

fn measure(value: &Value, depth: usize, values: &mut usize) -> Result<(), InvalidValue> {
    *values += 1;
    if depth > MAX_DEPTH {
        return Err(format!("its schema is nested deeper than {MAX_DEPTH} levels").into());
    }
    if *values > MAX_VALUES {
        return Err(format!("its schema has more than {MAX_VALUES} values").into());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, values)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            if REFUSED.contains(&name.as_str()) {
                return Err(format!("its schema uses `{name}`").into());
            }
            measure(member, depth + 1, values)
        }),
        _ => Ok(()),
    }
}

/// Sizes of the parts that references lead to; none while a part is being measured.
struct SchemaSizes<'s> {
    root: &'s Value,
    known: BTreeMap<&'s str, Option<usize>>,
}

impl<'s> SchemaSizes<'s> {
    fn of(&mut self, value: &'s Value) -> Result<usize, InvalidValue> {
        let mut size = 1_usize;
        match value {
            Value::Array(items) => {
                for item in items {
                    size = size.saturating_add(self.of(item)?);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let added = match member {
                        Value::String(reference) if name == REF => self.of_reference(reference)?,
                        member => self.of(member)?,
                    };
                    size = size.saturating_add(added);
                }
            }
            _ => {}
        }
        Ok(size)
    }

    fn of_reference(&mut self, reference: &'s str) -> Result<usize, InvalidValue> {
        match self.known.get(reference) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err("its schema has a reference that leads back to itself".into()),
            None => {}
        }
        let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'));
        let pointer = pointer.ok_or("its schema has a reference to another document")?;
        let part = self.root.pointer(pointer).ok_or("its schema has a reference to nothing")?;
        self.known.insert(reference, None);
        let size = self.of(part)?;
        self.known.insert(reference, Some(size));
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(more: Value) -> Value {
        let mut schema = json!({ "type": "object" });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({ "type": "string" }), |inner, _| json!({ "items": inner }))
    }

    /// Returns definitions of which each refers to the next one, `times` times.
    fn laughs(times: usize) -> Value {
        let definition = |number: usize| {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            (format!("d{number}"), json!({ "allOf": vec![next; times] }))
        };
        let mut all: serde_json::Map<_, _> = (0..10).map(definition).collect();
        all.insert("d10".to_owned(), json!({ "type": "string" }));
        object(json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": all }))
    }

    #[test]
    fn a_schema_that_grows_is_refused() {
        for (schema, problem) in [
            (object(json!({ "properties": { "a": nested(30) } })), "deeper than 24"),
            (
                object(json!({ "properties": { "a": { "enum": (0..5000).collect::<Vec<_>>() } } })),
                "more than 4000",
            ),
            (object(json!({ "properties": { "a": { "$ref": "#" } } })), "leads back"),
            (object(json!({ "$ref": "#" })), "leads back"),
            (
                object(
                    json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "items": { "$ref": "#/$defs/a" } } } }),
                ),
                "leads back",
            ),
            (laughs(4), "written out"),
            (object(json!({ "$ref": "http://169.254.169.254/s.json" })), "another document"),
            (object(json!({ "$ref": "file:///etc/passwd" })), "another document"),
            (object(json!({ "$ref": "#/nothing" })), "to nothing"),
            (object(json!({ "$ref": "#/%24defs/a" })), "another document"),
            (object(json!({ "$id": "http://x.example" })), "`$id`"),
            (object(json!({ "$dynamicRef": "#a" })), "`$dynamicRef`"),
            (json!({ "type": "string" }), "does not describe an object"),
            (json!(true), "does not describe an object"),
        ] {
            let error = check(&schema).unwrap_err().to_string();
            assert!(error.contains(problem), "{problem}: {error}");
        }
        // The controls: as deep, as large, and with references.
        for schema in [
            object(
                json!({ "properties": { "a": nested(20), "b": { "enum": (0..3000).collect::<Vec<_>>() } } }),
            ),
            laughs(1),
        ] {
            assert_eq!(check(&schema), Ok(()));
        }
    }
}
