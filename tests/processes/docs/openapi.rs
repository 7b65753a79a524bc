//! The OpenAPI document of the book, and the page that is made from it, are what `sluice` says of its API.
//!
//! After a change, delete the file: its test writes it anew, and fails once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use harness::{process::binary, served::served};
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use super::reference::{cell, published};

pub(super) async fn document() -> String {
    let output = Command::new(binary("sluice")).args(["api", "openapi"]).env_clear().output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_openapi_document_is_published() {
    published("openapi.json", &document().await);
}

#[tokio::test]
async fn the_openapi_document_is_served() {
    let (_world, up, client) = served("", "").await;
    let answer = client.get("/api/v1/openapi.json").await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, document().await));
    up.stop(Signal::TERM).await;
}

/// Adds each reference below `value` to `found`.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn references_of_the_document_resolve() {
    let document: Value = serde_json::from_str(&document().await).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.contains("#/components/schemas/RunId"), "control: {found:?}");
    let dangling = |path: &&&str| document.pointer(path.trim_start_matches('#')).is_none();
    let dangling: Vec<_> = found.iter().filter(dangling).collect();
    assert!(dangling.is_empty(), "{dangling:?}");
}

/// Returns the schema as a word or a link.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_ascii_lowercase());
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(choice) = schema["oneOf"].as_array() {
        return choice.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match (&schema["type"], schema["format"].as_str()) {
        (Value::Array(types), _) => {
            types.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(" or ")
        }
        (Value::String(word), _) if word == "array" => format!("list of {}", kind(&schema["items"])),
        (Value::String(word), Some("date-time")) if word == "string" => "time".to_owned(),
        (Value::String(word), _) => word.clone(),
        _ => String::new(),
    }
}

fn text(value: &Value) -> String {
    cell(value.as_str().unwrap_or_default())
}

/// Writes an operation: its request, its parameters and its answers.
fn operation(page: &mut String, request: &str, operation: &Value) {
    let role = operation["x-role"].as_str().map_or("no role".to_owned(), |role| format!("the role `{role}`"));
    let takes_session = operation["security"].as_array().is_none_or(|schemes| schemes.len() > 1);
    let role =
        if takes_session { role } else { format!("{role} and a token: the cookie of a session is refused") };
    let name = operation["operationId"].as_str().unwrap();
    writeln!(page, "\n### `{request}`\n\n{}", text(&operation["summary"])).unwrap();
    if operation["description"].is_string() {
        writeln!(page, "{}", text(&operation["description"])).unwrap();
    }
    writeln!(page, "It needs {role}. Clients call it `{name}`.").unwrap();
    if let Some(parameters) = operation["parameters"].as_array() {
        page.push_str("\n| parameter | in | values | meaning |\n|---|---|---|---|\n");
        for parameter in parameters {
            let place = text(&parameter["in"]);
            let values = cell(&kind(&parameter["schema"]));
            let meaning = text(&parameter["description"]);
            writeln!(page, "| `{}` | {place} | {values} | {meaning} |", text(&parameter["name"])).unwrap();
        }
    }
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        match content.get("application/json") {
            Some(body) => {
                writeln!(page, "\nThe body is {}, for example `{}`.", kind(&body["schema"]), body["example"])
                    .unwrap();
            }
            // Another specification defines it.
            None => {
                let media_types: Vec<_> =
                    content.keys().map(|media_type| format!("`{media_type}`")).collect();
                writeln!(page, "\nThe body is {}.", media_types.join(" or ")).unwrap();
            }
        }
    }
    answers(page, operation);
}

/// Writes the answers of an operation, and the codes of its problems.
fn answers(page: &mut String, operation: &Value) {
    page.push_str("\n| status | body | |\n|---|---|---|\n");
    for (status, answer) in operation["responses"].as_object().unwrap() {
        if let Some(cases) = answer["x-problems"].as_array() {
            let codes: Vec<_> = cases.iter().map(|case| format!("`{}`", text(&case["code"]))).collect();
            let forms = answer["content"].as_object().unwrap().values().map(|form| kind(&form["schema"]));
            let forms = forms.collect::<Vec<_>>().join(" or ");
            writeln!(page, "| {status} | {forms} | {} |", codes.join(", ")).unwrap();
            continue;
        }
        let contents = answer["content"].as_object().into_iter().flatten();
        let body = contents.map(|(media_type, content)| {
            let item = content.get("x-item-schema").unwrap_or(&content["schema"]);
            format!("{}, `{media_type}`", kind(item))
        });
        let body = body.collect::<Vec<_>>().join("; ");
        writeln!(page, "| {status} | {} | {} |", cell(&body), text(&answer["description"])).unwrap();
    }
}

/// Writes all problems of `document`, each once.
fn problems(page: &mut String, document: &Value) {
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|path| path.as_object().unwrap().values());
    let mut rows = BTreeSet::new();
    for (status, answer) in operations.flat_map(|it| it["responses"].as_object().unwrap()) {
        for case in answer["x-problems"].as_array().into_iter().flatten() {
            let [code, when, help] = ["code", "when", "help"].map(|field| text(&case[field]));
            rows.insert(format!("| {status} | `{code}` | {when} | {help} |\n"));
        }
    }
    page.push_str("\n## Problems\n\n| status | code | when | help |\n|---|---|---|---|\n");
    rows.iter().for_each(|row| page.push_str(row));
}

/// Writes the fields of an object.
fn fields(page: &mut String, schema: &Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    page.push_str("\n| field | values | meaning |\n|---|---|---|\n");
    for (name, field) in schema["properties"].as_object().unwrap() {
        let always = if required.contains(&Value::from(name.as_str())) { "" } else { " (optional)" };
        writeln!(page, "| `{name}`{always} | {} | {} |", cell(&kind(field)), text(&field["description"]))
            .unwrap();
    }
}

fn is_object(schema: &Value) -> bool {
    schema["properties"].is_object()
}

/// Writes a named schema.
fn schema(page: &mut String, name: &str, schema: &Value) {
    writeln!(page, "\n### {name}\n\n{}", text(&schema["description"])).unwrap();
    if let Some(parts) = schema["allOf"].as_array() {
        for part in parts {
            if is_object(part) {
                fields(page, part);
            } else {
                writeln!(page, "\nAll fields of {}, and these:", kind(part)).unwrap();
            }
        }
    } else if let Some(choices) = schema["oneOf"].as_array().filter(|choices| choices.iter().all(is_object)) {
        for choice in choices {
            writeln!(page, "\n{}", text(&choice["description"])).unwrap();
            fields(page, choice);
        }
    } else if is_object(schema) {
        fields(page, schema);
    } else if schema["oneOf"].is_array() {
        writeln!(page, "\nIt is {}.", kind(schema)).unwrap();
    } else if let Some(pattern) = schema["pattern"].as_str() {
        writeln!(page, "\nA text that matches `{pattern}`.").unwrap();
    } else {
        writeln!(
            page,
            "\nA text{}.",
            schema.get("enum").map_or(String::new(), |_| format!(": {}", kind(schema)))
        )
        .unwrap();
    }
}

#[tokio::test]
async fn the_operations_page_has_every_route() {
    let document: Value = serde_json::from_str(&document().await).unwrap();
    let mut page = "# Operations of the HTTP API\n\nFor authors of applications: every request and every answer of the \
        [HTTP API](http-api.md), made from its [OpenAPI document](openapi.json). `sluice api openapi` prints the \
        document, and a running `sluice up` serves it at `GET /api/v1/openapi.json`. [Use the API \
        from Python and TypeScript](../how-to/applications-api.md) generates clients from it.\n"
        .to_owned();
    let mut tags = BTreeMap::<_, Vec<_>>::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, described) in operations.as_object().unwrap() {
            let request = format!("{} {path}", method.to_ascii_uppercase());
            tags.entry(text(&described["tags"][0])).or_default().push((request, described));
        }
    }
    for (tag, operations) in tags {
        writeln!(page, "\n## {}{}", tag[..1].to_ascii_uppercase(), &tag[1..]).unwrap();
        operations.iter().for_each(|(request, described)| operation(&mut page, request, described));
    }
    problems(&mut page, &document);
    page.push_str("\n## Schemas\n");
    for (name, described) in document["components"]["schemas"].as_object().unwrap() {
        schema(&mut page, name, described);
    }
    published("http-api-operations.md", &page);
}
