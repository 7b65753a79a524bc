//! Parses texts with placeholders, for arguments and variables of an agent, and fills them in for each run. No shell
//! ever reads them: a filled-in value stays part of its one argument.

use std::{fmt, str::FromStr};

use platform_core::{id::RunId, invalid::InvalidValue};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::environment::secret_value;
use crate::config::{Section, Value};

const ARGV: &str = "argv";

/// A text with placeholders, which are filled in for each run. `{{` and `}}` are literal braces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Template(Vec<TemplatePiece>);

/// Part of a template: text that is the same in every run, or a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TemplatePiece {
    Text(String),
    Value(Placeholder),
}

/// Kind of value that is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Placeholder {
    RunId,
    Model,
}

/// Stored form of a template. A text without placeholders is stored as the plain text, braces included, as in the first
/// rows.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Pieces(Vec<TemplatePiece>),
}

/// Values of a run for the placeholders.
#[derive(Debug, Clone, Copy)]
pub struct Filling<'r> {
    /// `{run_id}`
    pub run_id: &'r RunId,
    /// `{model}`
    pub model: &'r str,
}

/// Error in the text of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// The text has a brace that neither begins nor ends a known placeholder.
    #[error(
        "`{found}` is not a placeholder: there are {}; for a brace itself write `{{{{` or `}}}}`",
        list_placeholders()
    )]
    Unknown {
        /// The text that was found.
        found: String,
    },
    /// The text has a NUL, which no program can be given.
    #[error("a NUL character cannot be passed to a program")]
    Nul,
}

impl Placeholder {
    const ALL: [Self; 2] = [Self::RunId, Self::Model];

    const fn name(self) -> &'static str {
        match self {
            Self::RunId => "run_id",
            Self::Model => "model",
        }
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placeholder| placeholder.name() == name)
    }
}

fn list_placeholders() -> String {
    Placeholder::ALL.map(|placeholder| format!("`{{{}}}`", placeholder.name())).join(" and ")
}

/// Reads program and arguments of an agent's entry.
pub(super) fn read(section: &Section<'_>) -> Vec<Template> {
    let doc = "Program and arguments; no shell is involved. `{run_id}` and `{model}` are filled in, `{{` and `}}` are braces.";
    let default = ["node", "/agent/run.mjs"].map(Template::literal).into();
    let argv: Vec<Template> = section.field(ARGV, doc).at_least(&1u64).list_or(default);
    if argv.first().is_some_and(|program| program.to_string().is_empty()) {
        section.reject(ARGV, "the program has no name".to_owned());
    }
    let secret = argv.iter().flat_map(Template::literals).find_map(secret_value);
    if let Some(kind) = secret {
        let problem =
            format!("there is what looks like {kind}, and an agent is given no secret: leave it out");
        section.reject(ARGV, problem);
    }
    argv
}

impl Template {
    /// Creates a template of `text`, taken literally, without placeholders.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![TemplatePiece::Text(text.into())])
    }

    /// Returns the text for a run.
    #[must_use]
    pub fn fill(&self, filling: Filling<'_>) -> String {
        let fill = |piece: &TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Value(Placeholder::RunId) => filling.run_id.to_string(),
            TemplatePiece::Value(Placeholder::Model) => filling.model.to_owned(),
        };
        self.0.iter().map(fill).collect()
    }

    /// Returns the text, if nothing in it is filled in.
    pub(super) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplatePiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the pieces that are the same in every run.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePiece::Text(text) => Some(text.as_str()),
            TemplatePiece::Value(_) => None,
        })
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        if text.contains('\0') {
            return Err(InvalidTemplate::Nul);
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            literal.push_str(before);
            if let Some(doubled) = ["{{", "}}"].into_iter().find(|doubled| after.starts_with(doubled)) {
                literal.push_str(&doubled[1..]);
                rest = &after[2..];
                continue;
            }
            let (placeholder, remainder) = parse_placeholder(after)?;
            if !literal.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(TemplatePiece::Value(placeholder));
            rest = remainder;
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(TemplatePiece::Text(literal));
        }
        Ok(Self(pieces))
    }
}

/// Returns the placeholder at the beginning of `text`, and the rest of the text.
fn parse_placeholder(text: &str) -> Result<(Placeholder, &str), InvalidTemplate> {
    let braced = text.strip_prefix('{').and_then(|inner| inner.split_once('}'));
    let is_word = |name: &str| {
        name.len() <= 40 && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    let found = match braced {
        Some((name, remainder)) => match Placeholder::find(name) {
            Some(placeholder) => return Ok((placeholder, remainder)),
            None if is_word(name) => format!("{{{name}}}"),
            None => text[..1].to_owned(),
        },
        None => text[..1].to_owned(),
    };
    Err(InvalidTemplate::Unknown { found })
}

/// Writes the template as it is written in the configuration.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            TemplatePiece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            TemplatePiece::Value(placeholder) => write!(f, "{{{}}}", placeholder.name()),
        })
    }
}

impl From<Stored> for Template {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self::literal(text),
            Stored::Pieces(pieces) => Self(pieces),
        }
    }
}

impl From<Template> for Stored {
    fn from(Template(mut pieces): Template) -> Self {
        match pieces.as_mut_slice() {
            [TemplatePiece::Text(text)] => Self::Text(std::mem::take(text)),
            _ => Self::Pieces(pieces),
        }
    }
}

impl Value for Template {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(InvalidValue::of)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string" })
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> Result<String, InvalidTemplate> {
        let run_id = RunId::parse("run-1").unwrap();
        Ok(text.parse::<Template>()?.fill(Filling { run_id: &run_id, model: "{gpt}; $(x) '" }))
    }

    #[test]
    fn only_placeholders_are_filled_in() {
        for (text, expected) in [
            ("", ""),
            ("--all", "--all"),
            ("{run_id}", "run-1"),
            ("/out/{run_id}.{run_id}/{model}", "/out/run-1.run-1/{gpt}; $(x) '"),
            ("{{run_id}} ${{HOME}} }}{{", "{run_id} ${HOME} }{"),
            ("{{{run_id}}}", "{run-1}"),
            ("$RUN_ID `x` \\{{", "$RUN_ID `x` \\{"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_unknown_placeholder_is_named() {
        for (text, found) in [
            ("{runid}", "`{runid}`"),
            ("a {} b", "`{}`"),
            ("x() { echo sk-canary; }", "`{`"),
            ("{run_id", "`{`"),
            ("run_id}", "`}`"),
            ("{{{run_id}}", "`}`"),
        ] {
            let error = filled(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!(
                    "{found} is not a placeholder: there are `{{run_id}}` and `{{model}}`"
                )),
                "{text}: {error}"
            );
            assert!(error.ends_with("write `{{` or `}}`") && !error.contains("canary"), "{error}");
        }
        assert_eq!(filled("a\0b"), Err(InvalidTemplate::Nul));
    }

    proptest! {
        #[test]
        fn a_template_is_the_same_written_and_stored(text in "([a{}]|\\{run_id\\}|\\{model\\}|\\{\\{|\\}\\}){0,12}") {
            if let Ok(template) = text.parse::<Template>() {
                prop_assert_eq!(&template.to_string().parse::<Template>().unwrap(), &template);
                let stored = serde_json::to_string(&template).unwrap();
                prop_assert_eq!(serde_json::from_str::<Template>(&stored).unwrap(), template);
            }
            // Rows from before there were templates hold plain text.
            let literal: Template = serde_json::from_str(&json!(text).to_string()).unwrap();
            prop_assert_eq!(literal, Template::literal(text));
        }
    }
}
