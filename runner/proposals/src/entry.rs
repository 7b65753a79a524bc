//! Writes an entry of an agent in TOML, and puts it into the text of a configuration file.

use platform_core::{id::AgentId, invalid::InvalidValue};
use serde_json::{Map, Value};

/// Returns the entry in TOML.
///
/// # Errors
/// A setting with a name or value that TOML has no form for, in words.
pub fn entry_text(agent: &AgentId, settings: &Map<String, Value>) -> Result<String, InvalidValue> {
    let mut text = format!("[agents.\"{agent}\"]\n");
    for (key, value) in settings {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if key.is_empty() || !key.bytes().all(is_name) {
            return Err(format!(
                "`settings`: {key:?} is not the name of a setting: names are of a-z, 0-9 and `_`"
            )
            .into());
        }
        let value = literal(value).map_err(|problem| format!("`settings.{key}`: {problem}"))?;
        text += &format!("{key} = {value}\n");
    }
    Ok(text)
}

/// Returns a value in TOML. JSON and TOML write these values alike, except for what is refused here.
fn literal(value: &Value) -> Result<String, InvalidValue> {
    match value {
        Value::Bool(_) => Ok(value.to_string()),
        Value::Number(number) if number.is_i64() => Ok(value.to_string()),
        Value::String(text) if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') => {
            Err("a text has a control character".into())
        }
        Value::String(_) => Ok(value.to_string()),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(literal).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        _ => Err("expected a text, a whole number, a truth value or a list of these".into()),
    }
}

/// Returns the file's text with the entry: in place of the agent's, else at the end; and whether there was one.
#[must_use]
pub fn with_entry(file: &str, agent: &AgentId, entry: &str) -> (String, bool) {
    let Some((start, end)) = find_entry(file, agent) else {
        let gap = match file {
            "" => "",
            file if file.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        return (format!("{file}{gap}{entry}"), false);
    };
    let gap = if end < file.len() { "\n" } else { "" };
    (format!("{}{entry}{gap}{}", &file[..start], &file[end..]), true)
}

/// Returns whether the file's entry of the agent is this one.
pub(crate) fn has_entry(file: &str, agent: &AgentId, entry: &str) -> bool {
    find_entry(file, agent).is_some_and(|(start, end)| file[start..end].trim_end() == entry.trim_end())
}

/// Returns where the agent's entry begins, and where that of the next section begins, or the comments before it.
fn find_entry(file: &str, agent: &AgentId) -> Option<(usize, usize)> {
    let is_own = |line: &str| {
        let heading = line.split('#').next().unwrap_or_default().trim_end();
        [format!("[agents.\"{agent}\"]"), format!("[agents.'{agent}']")].contains(&heading.to_owned())
    };
    let mut offset = 0;
    let mut start = None;
    // End of the last line that belongs to the entry.
    let mut end = 0;
    for line in file.split_inclusive('\n') {
        match start {
            None if is_own(line) => {
                start = Some(offset);
                end = offset + line.len();
            }
            Some(_) if line.starts_with('[') => break,
            Some(_) if !line.trim().is_empty() && !line.starts_with('#') => end = offset + line.len(),
            _ => {}
        }
        offset += line.len();
    }
    let rest = |end: usize| file[end..].len() - file[end..].trim_start_matches('\n').len();
    start.map(|start| (start, end + rest(end)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent() -> AgentId {
        AgentId::parse("team:a").unwrap()
    }

    fn settings(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_entry_is_toml() {
        let given = settings(json!({ "image": "a\"b\\", "argv": ["x", "é\n"], "disk": 7, "warm": true }));
        let text = entry_text(&agent(), &given).unwrap();
        for line in [
            "[agents.\"team:a\"]",
            "image = \"a\\\"b\\\\\"",
            "argv = [\"x\", \"é\\n\"]",
            "disk = 7",
            "warm = true",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }

    #[test]
    fn no_value_leaves_its_entry() {
        for wrong in [
            json!({ "a = 1\n[api]\nb": 1 }),
            json!({ "": 1 }),
            json!({ "a": null }),
            json!({ "a": { "b": 1 } }),
            json!({ "a": 1.5 }),
            json!({ "a": ["\u{1b}"] }),
            json!({ "a": "\u{7f}" }),
        ] {
            assert!(entry_text(&agent(), &settings(wrong.clone())).is_err(), "{wrong}");
        }
        let text =
            entry_text(&agent(), &settings(json!({ "a": "\"\n[api]\nlisten = '0.0.0.0:1'" }))).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn an_entry_replaces_the_earlier_one_alone() {
        let entry = "[agents.\"team:a\"]\nimage = \"new\"\n";
        let file = "[api]\nx = 1\n\n[agents.'team:a'] # ours\nimage = \"old\"\nargv = ['a']\n\n# The other one.\n[agents.'team:b']\ny = 1\n";
        let expected = "[api]\nx = 1\n\n[agents.\"team:a\"]\nimage = \"new\"\n\n# The other one.\n[agents.'team:b']\ny = 1\n";
        assert_eq!(with_entry(file, &agent(), entry), (expected.to_owned(), true));
        assert_eq!(with_entry("[api]", &agent(), entry), (format!("[api]\n\n{entry}"), false));
        assert_eq!(with_entry("", &agent(), entry), (entry.to_owned(), false));
        let last = with_entry("[agents.'team:a']\nimage = \"old\"\n", &agent(), entry);
        assert_eq!(last, (entry.to_owned(), true));
    }
}
