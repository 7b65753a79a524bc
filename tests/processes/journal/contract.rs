//! Tests that what is published of the journal's lines is what is written. The JSON Schema and the table are compared
//! with the list of fields, and the list with a line.
//!
//! After a change of the list, delete two things: `platform/config/journal.schema.json`, and the text between the marks
//! in `docs/src/reference/journal.md`. This test writes them anew, and fails once.

use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use harness::World;
use platform_core::{
    fields::{Absence, FIELDS, Field, Holds},
    record::JournalLine,
};
use serde_json::{Map, Value, json};

/// Marks around the part of the page that is written from the list.
const BEGIN: &str = "<!-- generated:journal -->\n";
const END: &str = "<!-- /generated -->\n";

fn published(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn schema_of(field: &Field) -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    let untrusted =
        json!({ "type": "string", "pattern": "^([A-Za-z0-9_./:@-]{1,128}|<[0-9]+:[0-9a-f]{16}>)$" });
    let mut schema = match field.holds {
        Holds::Count => count,
        Holds::Text => json!({ "type": "string" }),
        Holds::Untrusted => untrusted,
        Holds::ManyUntrusted => json!({ "type": "array", "items": untrusted }),
        Holds::Bool => json!({ "type": "boolean" }),
        Holds::Word(words) => json!({ "enum": words() }),
        Holds::Fields(fields) => object(fields),
        Holds::Many(fields) => json!({ "type": "array", "items": object(fields) }),
    };
    if field.absence == Absence::Null {
        match &mut schema["enum"] {
            Value::Array(words) => words.push(Value::Null),
            _ => {
                drop(schema.as_object_mut().unwrap().remove("enum"));
                schema["type"] = json!([schema["type"], "null"]);
            }
        }
    }
    schema["description"] = json!(field.doc);
    schema
}

fn object(fields: &[Field]) -> Value {
    let properties: Map<_, _> =
        fields.iter().map(|field| (field.name.to_owned(), schema_of(field))).collect();
    let is_required = |field: &&Field| field.absence != Absence::LeftOut;
    let required: Vec<_> = fields.iter().filter(is_required).map(|field| field.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn schema() -> String {
    let mut schema = object(&FIELDS);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A line of Sluicegate's journal");
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

fn table() -> String {
    let mut text = "| field | holds | means |\n|---|---|---|\n".to_owned();
    let mut rows = |prefix: &str, fields: &[Field]| {
        for field in fields {
            let holds = match field.holds {
                Holds::Count => "number".to_owned(),
                Holds::Text => "text".to_owned(),
                Holds::Untrusted => "plain text or `<length:hash>`".to_owned(),
                Holds::ManyUntrusted => "list of plain texts or `<length:hash>`".to_owned(),
                Holds::Bool => "true or false".to_owned(),
                Holds::Word(words) => {
                    words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
                }
                Holds::Fields(_) => "the fields below".to_owned(),
                Holds::Many(_) => "list of the fields below".to_owned(),
            };
            let null = match field.absence {
                Absence::Never => "",
                Absence::Null => ", or null",
                Absence::LeftOut => ", or left out",
            };
            writeln!(text, "| `{prefix}{}` | {holds}{null} | {} |", field.name, field.doc).unwrap();
        }
    };
    for field in FIELDS {
        rows("", &[field]);
        match field.holds {
            Holds::Fields(fields) => rows(&format!("{}.", field.name), fields),
            Holds::Many(fields) => rows(&format!("{}[].", field.name), fields),
            _ => {}
        }
    }
    text
}

#[test]
fn schema_and_table_are_those_of_the_list() {
    let path = published("platform/config/journal.schema.json");
    let written = fs::read_to_string(&path).unwrap_or_default();
    if written.is_empty() {
        fs::write(&path, schema()).unwrap();
    }
    assert_eq!(written, schema(), "see the top of this file");
    let path = published("docs/src/reference/journal.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if written.is_empty() {
        fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
    }
    assert_eq!(written, table(), "see the top of this file");
}

/// Checks `value` as far as our schema says anything, and returns what is wrong.
fn mistakes(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(words) = schema["enum"].as_array() {
        return if words.contains(value) { vec![] } else { vec![format!("{at}: {value} is not a word")] };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind =
        schema["type"] == kind || schema["type"].as_array().is_some_and(|all| all.contains(&json!(kind)));
    if !is_kind {
        return vec![format!("{at}: {kind} instead of {}", schema["type"])];
    }
    let Value::Object(fields) = value else { return vec![] };
    let properties = schema["properties"].as_object().unwrap();
    let names = |fields: &Map<String, Value>| fields.keys().cloned().collect::<BTreeSet<_>>();
    let required: BTreeSet<_> =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let missing = &required - &names(fields);
    let unknown = &names(fields) - &names(properties);
    let mut wrong: Vec<_> =
        missing.union(&unknown).map(|name| format!("{at}: only one side has {name}")).collect();
    for (name, field) in fields {
        if let Some(schema) = properties.get(name) {
            wrong.extend(mistakes(schema, field, &format!("{at}.{name}")));
        }
    }
    wrong
}

#[tokio::test]
async fn journal_lines_match_the_schema() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for model in ["fake", "fake-cost", "fake-cut0", "no such model", "fake-tools2"] {
        drop(run.agent.stream(model).await.until_break().await);
    }
    run.agent.post("/v1/files", &json!({})).await;
    world.records(6).await;
    let text = fs::read_to_string(world.journal_file()).unwrap();
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(mistakes(&schema, &value, "line"), Vec::<String>::new(), "{line}");
        let is_written = |field: &&Field| field.absence != Absence::LeftOut;
        let written: Vec<_> = FIELDS.iter().filter(is_written).map(|field| field.name).collect();
        let places: Vec<_> = written.iter().map(|name| line.find(&format!("\"{name}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "the fields are in the order of the list: {line}");
        assert!(serde_json::from_str::<JournalLine>(line).is_ok());
        // The control: the check finds mistakes.
        for (name, other) in
            [("seq", json!("1")), ("outcome", json!("lost")), ("extra", json!(1)), ("ts", json!(null))]
        {
            value[name] = other;
            assert_eq!(mistakes(&schema, &value, "line").len(), 1, "{name}");
            value = serde_json::from_str(line).unwrap();
        }
    }
}
