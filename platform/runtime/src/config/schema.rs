//! Generates the JSON Schema (draft 2020-12) of a configuration from the code that reads it.

use serde_json::{Map, Value, json};

use super::{Section, reader};

/// Returns the schema of every setting that `build` reads. It refuses unknown keys at every depth, as the reader does.
pub fn json_schema<T>(title: &str, build: impl FnOnce(&Section<'_>) -> T) -> Value {
    let mut root = table("");
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!(title);
    for field in reader::fields_of(build) {
        let mut schema = field.schema.unwrap_or_else(|| table(&field.doc));
        schema["description"] = json!(field.doc);
        insert(&mut root, &field.key, schema);
    }
    root
}

fn table(doc: &str) -> Value {
    json!({ "type": "object", "description": doc, "properties": {}, "additionalProperties": false })
}

/// Inserts `schema` at the dotted `key`, in which `*` matches any name.
fn insert(root: &mut Value, key: &str, schema: Value) {
    let mut node = root;
    let (parents, last) = key.rsplit_once('.').unwrap_or(("", key));
    for word in parents.split('.').filter(|word| !word.is_empty()) {
        node = if word == "*" { &mut node["additionalProperties"] } else { &mut node["properties"][word] };
    }
    if last == "*" {
        node["additionalProperties"] = schema;
    } else if let Some(properties) = node["properties"].as_object_mut() {
        let properties: &mut Map<String, Value> = properties;
        properties.insert(last.to_owned(), schema);
    }
}
