//! Provides the oracle of the properties, serde_json, and bodies for it.

use std::collections::HashSet;

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value as Json;

use super::*;

pub(super) const ROUTES: [Route; 8] = [
    Route::ChatCompletions,
    Route::Completions,
    Route::Responses,
    Route::InputTokens,
    Route::Compact,
    Route::Messages,
    Route::CountTokens,
    Route::Embeddings,
];

/// Checks the grammar alone: `value` under a field that passes.
pub(super) fn grammar(value: &[u8]) -> Result<(), Rejection> {
    let body = [br#"{"model":"m","stop":"#, value, b"}"].concat();
    check(Route::ChatCompletions, &body, &Policy::default()).map(drop).map_err(|rejections| rejections.first)
}

pub(super) fn oracle(value: &[u8]) -> bool {
    // In the same place, so that nothing but the whole value closes it.
    serde_json::from_slice::<Json>(&[br#"{"model":"m","stop":"#, value, b"}"].concat()).is_ok()
}

/// Returns a policy for whole documents, under names of fields that pass unchecked.
pub(super) fn everything() -> Policy {
    Policy {
        granted: Capability::ALL.into_iter().collect(),
        extra_fields: ["a", "b", "", "é", "\u{1f600}"].map(Into::into).into(),
        ..Policy::default()
    }
}

pub(super) fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,80}".prop_map(Json::from),
        r#"["\\\u{0}-\u{1f}é😀/:]{0,100}"#.prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::from),
            vec((".{0,4}", inner), 0..6).prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Without commas and colons, which would open their own field.
pub(super) const TOKENS: [&str; 28] = [
    "[",
    "]",
    "[",
    "]",
    "{",
    "}",
    "{}",
    "[1,2]",
    "{\"a\":[]}",
    "\"",
    "\"a\"",
    "0",
    "1",
    "-",
    ".",
    "e",
    "E+",
    "true",
    "null",
    " ",
    "\n",
    "\r",
    "\t",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{feff}",
    "\u{0}",
];

/// Returns a change to the text of a document.
pub(super) fn mutation() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let token = select(vec![
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "0",
        "-",
        ".",
        "e",
        "1e999",
        "-0",
        "01",
        "1.",
        "\n",
        "\u{1}",
        "\u{7f}",
        "\\u",
        "\\ud800",
        "\\udc00",
        "\\ud83d\\ude00",
        "\\ud800\\u0041",
        "\\u00e9",
        "true",
        "nul",
        "é",
        " ",
        "\\/",
        "\\x",
        "",
    ]);
    let bytes =
        prop_oneof![9 => token.prop_map(|token| token.as_bytes().to_vec()), 1 => vec(any::<u8>(), 1..3)];
    (any::<prop::sample::Index>(), 0..3usize, bytes)
}

pub(super) fn mutate(text: &mut Vec<u8>, (at, drop, put): (prop::sample::Index, usize, Vec<u8>)) {
    let at = at.index(text.len() + 1);
    let end = (at + drop).min(text.len());
    text.splice(at..end, put);
}

/// Documents out of a small vocabulary, so that names meet.
#[expect(clippy::too_many_lines, reason = "a vocabulary")]
pub(super) fn body() -> impl Strategy<Value = (Route, String)> {
    let value = prop_oneof![
        Just("null"),
        Just("true"),
        Just("false"),
        Just("7"),
        Just("{}"),
        Just("[]"),
        Just("\"x\""),
        Just(r#"{"include_usage":false}"#),
        Just(r#"{"include_obfuscation":true}"#),
        Just(r#"{"include_usage":true, "include_obfuscation":true}"#),
        Just(r#"[{"role":"user","content":"a"}]"#),
        Just(r#"[{"role":"user","ro\u006ce":"a"}]"#),
        Just(r#" [{"content":[{"type":"text"}] }]"#),
        Just(r#"[{"type":"function","function":{"name":"a"}}]"#),
        Just(r#"[{"name":"a","name":"b"}]"#),
        Just(r#"[{"content":[{"text":{"a":1,"\u0061":2}}]}]"#),
        Just(r#"{"a":1,"a":2}"#),
    ];
    let name = select(vec![
        "user",
        "us\\u0065r",
        "metadata",
        "safety_identifier",
        "client_metadata",
        "stream",
        "stream_options",
        "store",
        "n",
        "stop",
        "max_tokens",
        "messages",
        "input",
        "tools",
        "prompt",
        "temperature",
        "model",
        "system",
    ]);
    let fitting = select(vec![
        r#""stream":true"#,
        r#""stream" : true "#,
        r#""stream_options":{"include_usage":false}"#,
        r#""stream_options":{"include_obfuscation":true}"#,
        r#""stream_options":{}"#,
        r#""store":true"#,
        r#""store":null"#,
        r#""user":"v""#,
        r#" "metadata":{"a":1}"#,
        r#""safety_identifier":"v" "#,
        r#""client_metadata":{"a":1,"a":2}"#,
    ]);
    let space = select(vec!["", "", " ", "\n\t"]);
    let member = (name, value, space)
        .prop_map(|(name, value, space)| format!("{space}\"{name}\"{space}:{space}{value}{space}"));
    let member = prop_oneof![1 => member, 3 => fitting.prop_map(str::to_owned)];
    (select(ROUTES.to_vec()), vec(member, 0..8), any::<prop::sample::Index>()).prop_map(
        |(route, mut members, at)| {
            let at = at.index(members.len() + 1);
            members.insert(at, " \"model\":\"m\"".into());
            (route, format!("{{{}}}", members.join(",")))
        },
    )
}

/// Returns whether any object that is checked has a name twice, by serde's own reading.
pub(super) fn twice(text: &str) -> bool {
    struct Seeker;
    impl<'de> serde::de::DeserializeSeed<'de> for Seeker {
        type Value = bool;
        fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
            from.deserialize_any(self)
        }
    }
    impl<'de> serde::de::Visitor<'de> for Seeker {
        type Value = bool;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("anything")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let (mut names, mut found) = (HashSet::new(), false);
            while let Some(name) = map.next_key::<String>()? {
                // Under this one nothing is checked.
                let opaque = name == "stop"
                    || name == "metadata"
                    || name == "user"
                    || name == "temperature"
                    || name == "safety_identifier"
                    || name == "client_metadata";
                found |= map.next_value_seed(Seeker)? && !opaque;
                found |= !names.insert(name);
            }
            Ok(found)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
            let mut found = false;
            while let Some(inner) = seq.next_element_seed(Seeker)? {
                found |= inner;
            }
            Ok(found)
        }
        fn visit_unit<E>(self) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_str<E>(self, _: &str) -> Result<bool, E> {
            Ok(false)
        }
    }
    use serde::de::DeserializeSeed;
    Seeker.deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap()
}

/// Returns what the edits should make of a body, computed on the tree.
pub(super) fn expected(route: Route, body: &str, policy: &Policy) -> Json {
    let Json::Object(mut tree) = serde_json::from_str(body).unwrap() else { panic!("{body}") };
    let parse = |value: Bytes| serde_json::from_slice::<Json>(&value).unwrap();
    for (name, on) in [("user", "u"), ("metadata", "m"), ("safety_identifier", "s"), ("client_metadata", "s")]
    {
        let was_there = tree.remove(name).is_some();
        let takes = match (on, route) {
            ("u", route) => {
                !matches!(route, Route::Messages | Route::CountTokens | Route::InputTokens | Route::Compact)
            }
            ("m", route) => matches!(route, Route::ChatCompletions | Route::Responses | Route::Messages),
            _ => false,
        };
        if let Some(value) = policy.own(name, route).filter(|_| takes && was_there) {
            tree.insert(name.into(), parse(value));
        }
    }
    if route == Route::Responses
        || (route == Route::ChatCompletions && tree.get("store") == Some(&true.into()))
    {
        tree.insert("store".into(), false.into());
    }
    if matches!(route, Route::ChatCompletions | Route::Completions)
        && tree.get("stream") == Some(&true.into())
    {
        let options = tree.entry("stream_options").or_insert(Json::Null);
        if options.is_null() {
            *options = serde_json::json!({});
        }
        options["include_usage"] = true.into();
    }
    tree.into()
}
