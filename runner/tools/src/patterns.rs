//! patterns bounds the patterns in a third party's schema: together, and with the texts that they are matched with. Pure.
//!
//! Patterns are matched in a time that grows with the text and with the compiled pattern. A schema may have many of them, and
//! refer to each often.

use std::collections::BTreeMap;

use jsonschema::{Draft, PatternOptions};
use platform_core::invalid::InvalidValue;
use serde_json::{Map, Value, json};

/// Most bytes of all compiled patterns of a schema, each as often as it is referred to.
pub(crate) const MAX_COMPILED: usize = 1 << 20;
/// Sizes by which a compiled pattern is measured: the first one that it fits in counts.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_COMPILED];
/// Most different patterns.
const MAX_PATTERNS: usize = 64;
/// Most parts that are visited, with all references written out.
const MAX_VISITED: usize = 20_000;
/// Deepest nesting, with all references written out.
const MAX_DEPTH: usize = 200;
/// Most bytes of text times bytes of patterns: some seconds of the slowest way to match.
const MAX_WORK: usize = 1 << 34;
/// Keywords with members that are schemas by name.
const NAMED: [&str; 2] = ["properties", "dependentSchemas"];
/// Keywords with values that are data, or schemas that only references lead to.
const SKIPPED: [&str; 6] = ["default", "const", "enum", "examples", "$defs", "definitions"];

/// Bytes of text that a schema's patterns may be matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextBudget(Option<usize>);

impl TextBudget {
    /// Measures the patterns of `schema`.
    ///
    /// # Errors
    /// A description that names the path of the pattern which is too much.
    pub(crate) fn of(schema: &Value) -> Result<Self, InvalidValue> {
        let mut measure = PatternMeasure { root: schema, sizes: BTreeMap::new(), total: 0, visited: 0 };
        measure.visit(schema, "", 0)?;
        let total = measure.total;
        Ok(Self((total > 0).then(|| MAX_WORK / total)))
    }

    /// Checks that the texts of `args` are not too long for the patterns.
    ///
    /// # Errors
    /// A description of what is too long.
    pub(crate) fn check(self, args: &Value) -> Result<(), InvalidValue> {
        let bytes = text_bytes(args);
        match self.0 {
            Some(most) if bytes > most => Err(format!(
                "`args` has {bytes} bytes of text, at most {most} are checked with the patterns of this tool"
            )
            .into()),
            _ => Ok(()),
        }
    }
}

struct PatternMeasure<'s> {
    root: &'s Value,
    sizes: BTreeMap<&'s str, usize>,
    total: usize,
    visited: usize,
}

impl<'s> PatternMeasure<'s> {
    fn visit(&mut self, schema: &'s Value, path: &str, depth: usize) -> Result<(), InvalidValue> {
        self.visited += 1;
        if self.visited > MAX_VISITED || depth > MAX_DEPTH {
            return Err(format!("its schema at {path} is too large, written out").into());
        }
        match schema {
            Value::Object(members) => {
                members.iter().try_for_each(|(name, member)| self.keyword(name, member, path, depth))
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(at, item)| self.visit(item, &format!("{path}/{at}"), depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        name: &'s str,
        value: &'s Value,
        path: &str,
        depth: usize,
    ) -> Result<(), InvalidValue> {
        let at = format!("{path}/{name}");
        match value {
            Value::String(pattern) if name == "pattern" => self.add(pattern, &at),
            Value::String(reference) if name == "$ref" => {
                let pointer = reference.strip_prefix('#').unwrap_or_default();
                match self.root.pointer(pointer) {
                    Some(part) => self.visit(part, pointer, depth + 1),
                    // The compiler refuses it.
                    None => Ok(()),
                }
            }
            Value::Object(members) if name == "patternProperties" => {
                members.keys().try_for_each(|pattern| self.add(pattern, &format!("{at}/{pattern}")))?;
                self.named(members, &at, depth)
            }
            Value::Object(members) if NAMED.contains(&name) => self.named(members, &at, depth),
            _ if SKIPPED.contains(&name) => Ok(()),
            value => self.visit(value, &at, depth + 1),
        }
    }

    fn named(
        &mut self,
        members: &'s Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), InvalidValue> {
        members.iter().try_for_each(|(name, schema)| self.visit(schema, &format!("{path}/{name}"), depth + 1))
    }

    fn add(&mut self, pattern: &'s str, path: &str) -> Result<(), InvalidValue> {
        let size = match self.sizes.get(pattern) {
            Some(size) => *size,
            None if self.sizes.len() == MAX_PATTERNS => {
                return Err(
                    format!("its schema at {path} has more than {MAX_PATTERNS} different patterns").into()
                );
            }
            None => {
                let fits = SIZES.into_iter().find(|size| compiles(pattern, *size));
                let size = fits.ok_or_else(|| format!("its pattern at {path} is none, or too large"))?;
                self.sizes.insert(pattern, size);
                size
            }
        };
        self.total += size;
        if self.total > MAX_COMPILED {
            return Err(
                format!("its patterns take more than {MAX_COMPILED} bytes, with that at {path}").into()
            );
        }
        Ok(())
    }
}

/// Returns options by which patterns are matched in a time that grows with the text alone.
pub(crate) fn linear(size: usize) -> jsonschema::ValidationOptions<'static> {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    options.with_pattern_options(PatternOptions::regex().size_limit(size))
}

fn compiles(pattern: &str, size: usize) -> bool {
    linear(size).build(&json!({ "pattern": pattern })).is_ok()
}

/// Returns the bytes of all texts in a value, names of members included.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.iter().map(|(name, member)| name.len() + text_bytes(member)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(properties: &Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    #[test]
    fn patterns_are_bounded_together() {
        // Each of them alone is small enough.
        let large = |number: usize| json!({ "pattern": format!("^x{number}[a-z]{{2000}}$") });
        let many = |count: usize, schema: &dyn Fn(usize) -> Value| {
            with(&Value::from((0..count).map(|at| (format!("p{at}"), schema(at))).collect::<Map<_, _>>()))
        };
        let small = |number: usize| json!({ "pattern": format!("^{number}$") });
        let mut referred = many(60, &|_| json!({ "$ref": "#/$defs/large" }));
        referred["$defs"] = json!({ "large": large(0) });
        for (schema, path) in [
            (many(60, &large), "/properties/p"),
            (referred, "/$defs/large/pattern"),
            (many(65, &small), "/pattern has more than 64"),
            (with(&json!({ "a": { "items": [{ "pattern": "(" }] } })), "/properties/a/items/0/pattern"),
            (with(&json!({ "a": { "patternProperties": { "(?=x)": {} } } })), "/patternProperties/(?=x)"),
            (json!({ "$ref": "#" }), "too large, written out"),
        ] {
            let error = TextBudget::of(&schema).unwrap_err().to_string();
            assert!(error.contains(path), "{path}: {error}");
        }
        for schema in [
            many(2, &large),
            many(60, &small),
            with(&json!({ "pattern": { "default": { "pattern": "(" }, "enum": [{ "pattern": "(" }] } })),
        ] {
            assert!(TextBudget::of(&schema).is_ok(), "the control");
        }
    }

    #[test]
    fn texts_are_bounded_by_what_patterns_cost() {
        let args = |bytes: usize| json!({ "a": ["x".repeat(bytes)] });
        let costly = TextBudget::of(&with(&json!({ "a": { "pattern": "^(x[a-z]){2000}$" } }))).unwrap();
        let error = costly.check(&args(1 << 20)).unwrap_err().to_string();
        assert!(error.contains("1048577 bytes of text"), "{error}");
        assert_eq!(costly.check(&args(1000)), Ok(()), "the control");
        for cheap in [json!({ "pattern": "^[a-z]+$" }), json!({ "type": "string" })] {
            let budget = TextBudget::of(&with(&json!({ "a": cheap }))).unwrap();
            assert_eq!(budget.check(&args(1 << 20)), Ok(()), "the control");
        }
    }
}
