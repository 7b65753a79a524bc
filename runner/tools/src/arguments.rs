//! arguments reads and validates the arguments of calls. Pure.
//!
//! A text that two parsers could read differently is refused, and one nested deeper than any tool needs. Then the tool's
//! schema decides.

use std::collections::BTreeSet;

use jsonschema::Validator;
use platform_core::{
    invalid::InvalidValue,
    json::{self, Bounds},
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    patterns::{MAX_COMPILED, TextBudget, linear},
    tool::{ToolCode, ToolError},
};

/// Bounds of arguments. The size of the request bounds their length.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(16).with_values(10_000);
/// Most characters of a value in an error.
const MAX_SHOWN: usize = 200;

/// Reads arguments: an object, which is empty for an empty text.
///
/// # Errors
/// A [`ToolError`] that says what is wrong.
pub(crate) fn read(text: &str) -> Result<Value, ToolError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let invalid = |problem: String| ToolError::new(ToolCode::InvalidArguments, problem);
    let args: Value = json::from_str(text, BOUNDS).map_err(|error| invalid(format!("`args`: {error}")))?;
    if args.is_object() { Ok(args) } else { Err(invalid("`args` is not an object".to_owned())) }
}

/// Compiled schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    validator: Validator,
    /// Bound of a third party's schema.
    texts: Option<TextBudget>,
}

impl ArgumentSchema {
    /// Compiles `schema`. References to other documents are not resolved.
    ///
    /// # Errors
    /// A description of what is wrong with the schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, InvalidValue> {
        let validator = jsonschema::draft202012::new(schema).map_err(InvalidValue::of)?;
        Ok(Self { validator, texts: None })
    }

    /// Compiles the schema of a third party. Its patterns are matched in a time that grows with the text alone, and are
    /// bounded together.
    ///
    /// # Errors
    /// A description of what is wrong with the schema.
    pub(crate) fn compile_foreign(schema: &Value) -> Result<Self, InvalidValue> {
        let shown = |problem: String| InvalidValue::of(&problem[..problem.floor_char_boundary(MAX_SHOWN)]);
        let texts = TextBudget::of(schema).map_err(|error| shown(error.to_string()))?;
        let built = linear(MAX_COMPILED).build(schema);
        let validator = built.map_err(|error| shown(error.to_string()))?;
        Ok(Self { validator, texts: Some(texts) })
    }

    /// Checks `args`.
    ///
    /// # Errors
    /// A [`ToolError`] that names the path of the first value that breaks a rule, and the rule.
    pub(crate) fn check(&self, args: &Value) -> Result<(), ToolError> {
        if let Some(Err(problem)) = self.texts.map(|texts| texts.check(args)) {
            return Err(ToolError::new(ToolCode::InvalidArguments, problem.to_string()));
        }
        let Some(error) = self.validator.iter_errors(args).next() else { return Ok(()) };
        let path = error.instance_path().to_string();
        let rule = error.schema_path().to_string();
        let path = if path.is_empty() { "/" } else { &path };
        let mut problem = error.to_string();
        if problem.chars().count() > MAX_SHOWN {
            problem = problem.chars().take(MAX_SHOWN).chain(['…']).collect();
        }
        Err(ToolError::new(ToolCode::InvalidArguments, format!("`args` at {path}: {problem} (rule {rule})")))
    }
}

/// Returns a digest of a call: of the tool and its arguments, in any order of their members.
pub(crate) fn digest(tool: &str, args: &Value) -> String {
    let mut text = String::new();
    write_sorted(args, &mut text);
    let digest = Sha256::new().chain_update(tool).chain_update([0]).chain_update(text).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let names: BTreeSet<&String> = members.keys().collect();
            text.push('{');
            for name in names {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_sorted(&members[name], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    pub(crate) fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
    }

    #[test]
    fn a_text_of_two_meanings_is_refused() {
        assert_eq!(read(r#"{"a":[1,{"b":null}]}"#).unwrap(), json!({ "a": [1, { "b": null }] }));
        assert_eq!(read("").unwrap(), json!({}));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        let deeper = format!("{{\"a\":{}", "[".repeat(100_000));
        let many = format!("{{\"a\":[{}1]}}", "1,".repeat(BOUNDS.values));
        let nested = raw_nest(15);
        for (text, problem) in [
            (r#"{"a":1,"a":2}"#, "`a` occurs twice"),
            (r#"{"x":{"a":1,"\u0061":2}}"#, "`a` occurs twice"),
            (deep.as_str(), "deeper than 16"),
            (deeper.as_str(), "deeper than 16"),
            (many.as_str(), "more than 10000"),
            ("[]", "not an object"),
            ("null", "not an object"),
            ("{", "breaks off"),
            ("{} {}", "the end of the text"),
            (r#"{"a":1e999}"#, "out of range"),
            (r#"{"a":18446744073709551617}"#, "out of range"),
            (nested.as_str(), "reserved"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.code, ToolCode::InvalidArguments.word());
            assert!(error.message.contains(problem), "{problem}: {}", error.message);
        }
    }

    #[test]
    fn an_error_names_path_and_rule() {
        let schema = json!({ "type": "object", "additionalProperties": false, "required": ["n"], "properties": {
            "n": { "type": "integer", "minimum": 1 }, "l": { "type": "array", "items": { "type": "string" } } } });
        let schema = ArgumentSchema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({ "n": 1, "l": ["a"] })), Ok(()));
        for (args, path, rule) in [
            (json!({ "n": 0 }), "at /n:", "/properties/n/minimum"),
            (json!({ "n": 1, "l": ["a", 2] }), "at /l/1:", "/properties/l/items/type"),
            (json!({}), "at /:", "/required"),
            (json!({ "n": 1, "x": "y".repeat(10_000) }), "at /:", "/additionalProperties"),
        ] {
            let message = schema.check(&args).unwrap_err().message;
            assert!(message.contains(path) && message.contains(rule), "{message}");
            assert!(message.len() < 1000, "it is bounded");
        }
    }

    #[test]
    fn no_schema_reads_another_document() {
        let remote = json!({ "$ref": "http://127.0.0.1:9/schema.json" });
        assert!(ArgumentSchema::compile(&remote).is_err());
        assert!(ArgumentSchema::compile(&json!({ "$ref": "file:///etc/hostname" })).is_err());
    }

    #[test]
    fn patterns_of_third_parties_are_bounded() {
        let schema =
            |pattern: &str| json!({ "type": "object", "properties": { "a": { "pattern": pattern } } });
        let slow = ArgumentSchema::compile_foreign(&schema("^(a+)+$")).unwrap();
        // It would take longer than all tests if it tried each way to split the text.
        assert!(slow.check(&json!({ "a": format!("{}!", "a".repeat(100_000)) })).is_err());
        assert_eq!(slow.check(&json!({ "a": "aaa" })), Ok(()), "the control");
        for bad in ["(?=a)b", r"(a)\1", "((((a{1000}){1000}){1000}){1000})", "("] {
            assert!(ArgumentSchema::compile_foreign(&schema(bad)).is_err(), "{bad}");
        }
        assert!(ArgumentSchema::compile_foreign(&json!({ "$ref": "http://127.0.0.1:9/s.json" })).is_err());
    }

    #[test]
    fn a_digest_is_of_tool_and_arguments() {
        let same = digest("t", &json!({ "a": 1, "b": [1, 2] }));
        assert_eq!(digest("t", &read(r#"{"b":[1,2],"a":1}"#).unwrap()), same);
        for other in [json!({ "a": 1, "b": [2, 1] }), json!({ "a": 1 }), json!({ "a": "1", "b": [1, 2] })] {
            assert_ne!(digest("t", &other), same);
        }
        assert_ne!(digest("u", &json!({ "a": 1, "b": [1, 2] })), same);
    }
}
