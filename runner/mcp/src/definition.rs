//! definition reads what a server says about its tools, and gives it the digest that an operator accepts. Pure.

use std::collections::BTreeMap;

use platform_core::{
    invalid::InvalidValue,
    json::{self, Bounds, Raw},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{error::ServerError, schema, text};

/// Members of a tool that its digest is of.
const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
/// Most bytes of a definition.
const MAX_BYTES: usize = 64 << 10;
/// Bounds of a definition.
const BOUNDS: Bounds = Bounds::of(MAX_BYTES).with_values(10_000);
/// Most bytes of a description.
const MAX_DESCRIPTION: usize = 16 << 10;
/// Most tools that a server may list.
const MAX_TOOLS: usize = 1024;

/// Description of a tool by its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Description for a model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Whole definition as JSON, with sorted members, over several lines.
    pub text: String,
    /// SHA-256 of the text.
    pub digest: String,
}

/// Reason why a tool cannot be used, whatever is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTool {
    /// Two tools have the name.
    #[error("the server lists it twice")]
    Twice,
    /// The definition is too long.
    #[error("its definition has more than {MAX_BYTES} bytes")]
    TooLong,
    /// The description is too long.
    #[error("its description has more than {MAX_DESCRIPTION} bytes")]
    LongDescription,
    /// A person cannot see all of it.
    #[error("its definition has characters that cannot be seen")]
    Invisible,
    /// The definition has another form.
    #[error("its definition is wrong: {0}")]
    Form(String),
    /// The schema is not usable.
    #[error("{0}")]
    Schema(InvalidValue),
}

impl ToolDefinition {
    /// Reads a definition.
    ///
    /// # Errors
    /// [`InvalidTool`].
    pub fn read(json: &str) -> Result<Self, InvalidTool> {
        if json.len() > MAX_BYTES {
            return Err(InvalidTool::TooLong);
        }
        let form = |problem: &str| InvalidTool::Form(text::quote(problem));
        let value: Value = json::from_str(json, BOUNDS).map_err(|error| form(&error.to_string()))?;
        let member = |name: &&str| Some(((*name).to_owned(), sorted(value.get(name)?)));
        let pinned = Value::Object(PINNED.iter().filter_map(member).collect());
        let description = match pinned.get("description") {
            None => String::new(),
            Some(Value::String(description)) => description.clone(),
            Some(_) => return Err(form("`description` is not text")),
        };
        if description.len() > MAX_DESCRIPTION {
            return Err(InvalidTool::LongDescription);
        }
        if !is_visible(&pinned) {
            return Err(InvalidTool::Invisible);
        }
        let schema = pinned.get("inputSchema").cloned().ok_or_else(|| form("there is no `inputSchema`"))?;
        schema::check(&schema).map_err(InvalidTool::Schema)?;
        let text = serde_json::to_string_pretty(&pinned).map_err(|error| form(&error.to_string()))?;
        let digest = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { description, schema, text, digest })
    }
}

fn is_visible(value: &Value) -> bool {
    match value {
        Value::String(text) => text::is_visible(text),
        Value::Array(items) => items.iter().all(is_visible),
        Value::Object(members) => {
            members.iter().all(|(name, member)| text::is_visible(name) && is_visible(member))
        }
        _ => true,
    }
}

/// Returns `value` with the members of all objects sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.iter().map(|(name, member)| (name, sorted(member))).collect();
            Value::Object(
                members.into_iter().map(|(name, member)| (name.clone(), member)).collect::<Map<_, _>>(),
            )
        }
        plain => plain.clone(),
    }
}

/// Tools that a server lists, as far as they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Each tool by its name at the server.
    pub tools: BTreeMap<String, Result<ToolDefinition, InvalidTool>>,
    /// Number of its other tools.
    pub others: usize,
}

/// Page of a list of tools.
#[derive(Deserialize)]
pub(crate) struct ToolPage<'t> {
    #[serde(borrow)]
    tools: Vec<Raw<'t>>,
    #[serde(rename = "nextCursor", default)]
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
struct NamedTool {
    name: String,
}

impl Listing {
    /// Adds the tools of a page for which `is_wanted` holds, and counts the others.
    ///
    /// # Errors
    /// If a tool has no name, or there are too many.
    pub(crate) fn add(
        &mut self,
        page: &ToolPage<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), ServerError> {
        for tool in &page.tools {
            let NamedTool { name } =
                tool.read().map_err(|_other| ServerError::protocol("a listed tool has no name"))?;
            if self.tools.len() + self.others >= MAX_TOOLS {
                return Err(ServerError::protocol(format!("it lists more than {MAX_TOOLS} tools")));
            }
            if !is_wanted(&name) {
                self.others += 1;
                continue;
            }
            let read = ToolDefinition::read(tool.get());
            self.tools.entry(name).and_modify(|known| *known = Err(InvalidTool::Twice)).or_insert(read);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::{nested, raw_nest};

    fn tool(description: &str) -> Value {
        json!({ "name": "add", "description": description, "inputSchema": { "type": "object" } })
    }

    fn digest(value: &Value) -> String {
        ToolDefinition::read(&value.to_string()).unwrap().digest
    }

    #[test]
    fn a_digest_is_of_all_that_matters() {
        let base = digest(&tool("Adds."));
        let reordered =
            r#"{"inputSchema":{"type":"object"},"description":"Adds.","name":"add","_meta":{"n":1}}"#;
        assert_eq!(ToolDefinition::read(reordered).unwrap().digest, base);
        for (member, value) in [
            ("description", json!("Adds!")),
            ("title", json!("Add")),
            ("inputSchema", json!({ "type": "object", "properties": { "a": {} } })),
            ("outputSchema", json!({ "type": "object" })),
            ("annotations", json!({ "readOnlyHint": true })),
        ] {
            let mut changed = tool("Adds.");
            changed[member] = value;
            assert_ne!(digest(&changed), base, "{member}");
        }
    }

    #[test]
    fn a_definition_is_seen_whole_and_bounded() {
        let read = |value: &Value| ToolDefinition::read(&value.to_string());
        assert!(read(&tool("Adds.\r\n\tThat is all. \u{e4}")).is_ok(), "the control");
        for hidden in [
            "Adds.\u{e0049}\u{e0067}",
            "Adds.\u{200b}",
            "Adds.\u{2800}",
            "Adds.\u{202e}sdda",
            "Adds.\u{1b}[8m",
            "\0",
        ] {
            assert_eq!(read(&tool(hidden)), Err(InvalidTool::Invisible), "{hidden:?}");
        }
        let mut hidden = tool("Adds.");
        hidden["inputSchema"]["properties"] = json!({ "a": { "description": "x\u{e0041}" } });
        assert_eq!(read(&hidden), Err(InvalidTool::Invisible));
        assert_eq!(read(&tool(&"x".repeat(17 << 10))), Err(InvalidTool::LongDescription));
        assert_eq!(read(&tool(&"x".repeat(65 << 10))), Err(InvalidTool::TooLong));
        let nest = format!(r#"{{"name":"add","inputSchema":{}}}"#, raw_nest(15));
        let deep = format!(r#"{{"name":"add","inputSchema":{}}}"#, nested(70));
        let many = json!({ "name": "add", "annotations": vec![0; 10_000] }).to_string();
        let twice = r#"{"name":"add","inputSchema":{"type":"object","type":"array"}}"#;
        for wrong in
            [&nest, &deep, &many, twice, r#"{"name":"add"}"#, r#"{"name":"add","description":1}"#, "[]"]
        {
            let read = ToolDefinition::read(wrong);
            assert!(matches!(read, Err(InvalidTool::Form(_))), "{read:?}");
        }
    }

    #[test]
    fn names_are_exact_and_occur_once() {
        let names = ["add", "Add", "\u{430}dd", "add ", "get", "get", &"x".repeat(10_000)];
        let tools: Vec<_> =
            names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
        let text = json!({ "tools": tools }).to_string();
        let page: ToolPage<'_> = json::from_str(&text, Bounds::STORED).unwrap();
        let mut listing = Listing::default();
        listing.add(&page, |name| ["add", "get"].contains(&name)).unwrap();
        assert_eq!((listing.tools.len(), listing.others), (2, 4));
        assert!(listing.tools["add"].is_ok());
        assert_eq!(listing.tools["get"], Err(InvalidTool::Twice));
        let many = |count: usize| json!({ "tools": vec![json!({ "name": "x" }); count] }).to_string();
        let add = |listing: &mut Listing, count: usize| {
            listing.add(&json::from_str(&many(count), Bounds::STORED).unwrap(), |_| false)
        };
        assert!(add(&mut Listing::default(), MAX_TOOLS).is_ok(), "the control");
        assert!(add(&mut Listing::default(), MAX_TOOLS + 1).is_err(), "of a page");
        assert!(add(&mut listing, MAX_TOOLS).is_err(), "of all pages");
    }
}
