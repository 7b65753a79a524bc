//! redaction writes the arguments of a call for people: whole for the one who decides about it, short for those who follow
//! its run. Pure.
//!
//! Values of properties are replaced if the tool's schema marks them `writeOnly`, or their name is that of a secret.

use serde_json::{Map, Value};

/// Text in place of a value.
const REDACTED: &str = "[redacted]";
/// Most bytes of arguments: a person reads them all.
const MAX_BYTES: usize = 32 << 10;
/// Most bytes of short arguments. A run makes a thousand calls, and each has them in its row and in an event.
const MAX_SHORT_BYTES: usize = 1 << 10;
/// Most bytes of one text in short arguments.
const MAX_SHORT_TEXT: usize = 200;
/// Most members and items of one value in short arguments.
const MAX_SHORT_MEMBERS: usize = 16;
/// Most references and combinations that are followed from one schema.
const MAX_SCHEMAS: usize = 64;
/// Ends of words, or of two of them without what is between, that name a secret. What counts tokens has none: `max_tokens`.
const SECRETS: &str = "secret secrets token password passwords passwd passphrase apikey apikeys privatekey privatekeys \
    secretkey secretkeys accesskey accesskeys credential credentials authorization cookie cookies accesstokens apitokens \
    authtokens bearertokens csrftokens refreshtokens sessiontokens";

/// Returns `args`, which follow `schema`, as JSON without secrets; `None` if they are longer than 32 KiB. They are not cut:
/// the rest could be what matters.
pub(crate) fn for_person(schema: &Value, args: &Value) -> Option<String> {
    let root = schema;
    let text = redacted(root, &applicable(root, vec![schema]), args).to_string();
    (text.len() <= MAX_BYTES).then_some(text)
}

/// Returns `args`, which follow `schema`, as JSON without secrets, of at most 1 KiB: long texts and lists are cut, and say
/// so.
pub(crate) fn in_short(schema: &Value, args: &Value) -> String {
    let whole = redacted(schema, &applicable(schema, vec![schema]), args);
    let text = whole.to_string();
    if text.len() <= MAX_SHORT_BYTES {
        return text;
    }
    let short = shortened(&whole).to_string();
    if short.len() <= MAX_SHORT_BYTES {
        return short;
    }
    Value::String(format!("[{} bytes]", text.len())).to_string()
}

/// Returns `value` without the ends of long texts, lists and objects.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > MAX_SHORT_TEXT => {
            let kept = &text[..text.floor_char_boundary(MAX_SHORT_TEXT)];
            format!("{kept}… [{} more bytes]", text.len() - kept.len()).into()
        }
        Value::Array(items) => {
            let more = items.len().saturating_sub(MAX_SHORT_MEMBERS);
            let more = (more > 0).then(|| format!("[{more} more]").into());
            items.iter().take(MAX_SHORT_MEMBERS).map(shortened).chain(more).collect()
        }
        Value::Object(members) => {
            let more = members.len().saturating_sub(MAX_SHORT_MEMBERS);
            let more = (more > 0).then(|| ("…".to_owned(), format!("[{more} more]").into()));
            let kept = members.iter().take(MAX_SHORT_MEMBERS);
            kept.map(|(name, member)| (name.clone(), shortened(member)))
                .chain(more)
                .collect::<Map<_, _>>()
                .into()
        }
        plain => plain.clone(),
    }
}

fn redacted(root: &Value, schemas: &[&Value], value: &Value) -> Value {
    if schemas.iter().any(|schema| schema.get("writeOnly") == Some(&Value::Bool(true))) {
        return REDACTED.into();
    }
    match value {
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| {
                let shown = match is_secret(name) {
                    true => REDACTED.into(),
                    false => redacted(root, &applicable(root, of_member(schemas, name)), member),
                };
                (name.clone(), shown)
            };
            members.iter().map(member).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            let of_items = applicable(root, of_items(schemas));
            items.iter().map(|item| redacted(root, &of_items, item)).collect::<Vec<_>>().into()
        }
        plain => plain.clone(),
    }
}

/// Returns whether `name` is that of a secret. The end of a word counts, as in `PGPASSWORD`: any other part of one would hide
/// `secretary` from the person who decides.
fn is_secret(name: &str) -> bool {
    let words = words(name);
    let is_listed = |found: &[String]| {
        let found = found.concat();
        SECRETS.split(' ').any(|secret| found.ends_with(secret))
    };
    words.windows(1).chain(words.windows(2)).any(is_listed)
}

/// Returns the words of a name in lower case: `apiKey`, `API-Key` and `api_key` have the same.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        // A capital begins a word behind another letter, or as the last of a row: `myToken`, `HTTPToken`.
        let is_first = c.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            });
        if is_first || !c.is_alphabetic() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the schemas of the member `name`. Those of all patterns count: one too many hides a value, and shows none.
fn of_member<'s>(schemas: &[&'s Value], name: &str) -> Vec<&'s Value> {
    let of_one = |schema: &&'s Value| {
        let named = schema.get("properties").and_then(|properties| properties.get(name));
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let patterns = patterns.into_iter().flat_map(Map::values);
        named.into_iter().chain(schema.get("additionalProperties")).chain(patterns).collect::<Vec<_>>()
    };
    schemas.iter().flat_map(of_one).collect()
}

fn of_items<'s>(schemas: &[&'s Value]) -> Vec<&'s Value> {
    let of_one = |schema: &&'s Value| {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        first.into_iter().flatten().chain(schema.get("items")).collect::<Vec<_>>()
    };
    schemas.iter().flat_map(of_one).collect()
}

/// Returns `schemas` with those that they combine and refer to.
fn applicable<'s>(root: &'s Value, mut schemas: Vec<&'s Value>) -> Vec<&'s Value> {
    let mut at = 0;
    while let Some(schema) = schemas.get(at).copied().filter(|_| at < MAX_SCHEMAS) {
        let combined = ["allOf", "anyOf", "oneOf"].map(|name| schema.get(name).and_then(Value::as_array));
        schemas.extend(combined.into_iter().flatten().flatten());
        schemas.extend(["then", "else"].into_iter().filter_map(|name| schema.get(name)));
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        schemas.extend(reference.and_then(|pointer| root.pointer(pointer)));
        at += 1;
    }
    schemas
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_replaced() {
        let schema = json!({ "type": "object", "$defs": { "hidden": { "writeOnly": true } }, "properties": {
            "pin": { "type": "string", "writeOnly": true },
            "by_reference": { "$ref": "#/$defs/hidden" },
            "list": { "type": "array", "items": { "allOf": [{ "writeOnly": true }] } },
            "inner": { "type": "object", "properties": { "pin": { "writeOnly": true } } },
        } });
        let canary = "canary-5f2e";
        let args = json!({ "pin": canary, "by_reference": { "x": canary }, "list": [canary],
            "inner": { "pin": canary, "API-Key": canary, "note": "shown" }, "accessToken": [canary], "body": "shown" });
        let text = for_person(&schema, &args).unwrap();
        assert!(!text.contains(canary), "{text}");
        assert_eq!(text.matches("shown").count(), 2, "{text}");
        let plain = for_person(&json!({}), &json!({ "pin": canary })).unwrap();
        assert!(plain.contains(canary), "the schema hides it");
    }

    #[test]
    fn names_of_secrets_are_known_by_their_words() {
        let hidden = "github_token clientSecret api-key Authorization password apiKey API_KEY APIKey X-Api-Key apikey \
            access_token accessTokens OAuthToken HTTPToken token2 GITHUB_TOKEN PASSWORD db.password set-cookie cookies \
            secret secrets awsSecretAccessKey private_key privatekey credentials passwd passphrase clientsecret \
            PGPASSWORD dbpassword sessiontoken bearertoken webhooksecret aws_secretaccesskey csrf_tokens";
        let shown = "max_tokens total_tokens maxTokens tokens secretary tokenizer tokenize detokenized passwordless \
            cookiecutter author authority key keys keyboard apiary monkey undersecretary accessible body";
        let shown_with_blank = ["api monkey", "the keys", ""];
        for name in hidden.split_whitespace().chain(["my token", "client secret"]) {
            assert!(is_secret(name), "{name} is shown");
        }
        for name in shown.split_whitespace().chain(shown_with_blank) {
            assert!(!is_secret(name), "{name} is hidden");
        }
    }

    #[test]
    fn long_arguments_are_not_shown_in_part() {
        let of = |bytes: usize| for_person(&json!({}), &json!({ "body": "b".repeat(bytes), "number": 7 }));
        assert_eq!(of(MAX_BYTES), None);
        assert!(of(MAX_BYTES / 2).unwrap().contains("\"number\":7"), "the control");
    }

    #[test]
    fn short_arguments_stay_json_without_secrets() {
        let canary = "canary-5f2e";
        let args = json!({ "number": 7, "token": canary, "body": "ä".repeat(5000), "list": vec![1; 100] });
        let text = in_short(&json!({}), &args);
        assert!(text.len() <= MAX_SHORT_BYTES && !text.contains(canary), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&read["number"], &read["list"][MAX_SHORT_MEMBERS]), (&json!(7), &json!("[84 more]")));
        assert!(read["body"].as_str().unwrap().ends_with("… [9800 more bytes]"), "{read}");
        let small = json!({ "number": 7, "body": "whole" });
        assert_eq!(in_short(&json!({}), &small), small.to_string());
        let wide: Map<_, _> = (0..16).map(|at| (at.to_string(), json!("b".repeat(500)))).collect();
        let wide = Value::from(wide);
        assert_eq!(in_short(&json!({}), &wide), format!("\"[{} bytes]\"", wide.to_string().len()));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#", "allOf": [{ "$ref": "#" }] });
        assert_eq!(for_person(&schema, &json!({ "a": 1 })).as_deref(), Some(r#"{"a":1}"#));
    }
}
