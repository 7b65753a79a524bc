//! Reads JSON objects as lists: every member is kept, also if its name occurs twice, and values are the text itself.

use std::collections::HashSet;

use serde::de::IgnoredAny;

/// Members of one object, in their order.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// Returns the members of `text`, if it is an object.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let members = parts(text, ['{', '}'])?.into_iter().map(|member| {
            let (name, value) = member.split_at(end_of_text(member));
            Some((text_of(name)?, value.trim_start_matches(SPACE).strip_prefix(':')?.trim_matches(SPACE)))
        });
        members.collect::<Option<_>>().map(Self)
    }

    /// Returns a name that occurs twice.
    pub(crate) fn twice(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        self.0.iter().map(|(name, _)| name.as_str()).find(|name| !seen.insert(*name))
    }

    /// Returns the text of the value of `name`, unless it is `null`.
    pub(crate) fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|value| *value != "null")
    }

    /// Returns the text of the value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }
}

/// Characters that may stand between the parts of JSON.
const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

/// Returns the elements of `text`; none if it is not an array.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    parts(text, ['[', ']']).unwrap_or_default()
}

/// Returns what commas separate in `text`, if it is JSON in these brackets.
fn parts(text: &str, [open, close]: [char; 2]) -> Option<Vec<&str>> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let inside = text.trim_matches(SPACE).strip_prefix(open)?.strip_suffix(close)?;
    if inside.trim_matches(SPACE).is_empty() {
        return Some(Vec::new());
    }
    let (mut parts, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    while let Some(byte) = inside.as_bytes().get(at) {
        match byte {
            b'"' => at += end_of_text(&inside[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(inside[start..at].trim_matches(SPACE));
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(inside[start..].trim_matches(SPACE));
    Some(parts)
}

/// Returns the length of the string that `json` begins with, with its quotes.
fn end_of_text(json: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    };
    json.bytes().skip(1).position(is_end).map_or(json.len(), |at| at + 2)
}

/// Returns the text that `json` is, if it is one.
pub(crate) fn text_of(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Returns whether no part of `json` is nested in more than 64 objects and lists.
pub(crate) fn is_shallow(json: &str) -> bool {
    depth(json) <= 64
}

/// Returns in how many objects and lists the deepest part of `json` is nested.
pub(crate) fn depth(json: &str) -> i32 {
    let plain = json.replace(r"\\", "").replace(r#"\""#, "");
    let outside = plain.split('"').step_by(2).flat_map(str::chars);
    let mut depth = 0_i32;
    outside
        .map(|char| {
            depth += i32::from(matches!(char, '{' | '[')) - i32::from(matches!(char, '}' | ']'));
            depth
        })
        .max()
        .unwrap_or_default()
}
