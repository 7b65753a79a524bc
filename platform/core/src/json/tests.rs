//! Tests the reader beside serde_json, and with texts that are written to break a reader.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

const BOUNDS: Bounds = Bounds::of(1 << 20);

fn read(text: &str) -> Result<Value, Error> {
    from_str(text, BOUNDS)
}

#[test]
fn a_text_reads_as_serde_json_reads_it() {
    for text in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "-1",
        "1.5e-3",
        "18446744073709551615",
        "-9223372036854775808",
        r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#,
        "[]",
        "[ 1 , [ ] , { } ]",
        "{}",
        r#"{"a":1,"b":[{"c":null}],"\u0061b":2}"#,
        "\t{\r\n\"a\" : 1 }\n",
    ] {
        assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn a_text_of_no_meaning_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{1:2}",
        "[1}",
        r#"{"a":1]"#,
        "1 2",
        "{} {}",
        "nul",
        "nulll",
        "truefalse",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x1",
        "NaN",
        "'a'",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\u{1}\"",
        "\"\n\"",
        "]",
        ",",
        ":",
        "\u{feff}1",
    ] {
        assert!(read(text).is_err(), "{text}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "the control: {text}");
    }
    let error = from_slice::<Value>(b"[\"\xff\"]", BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), "the text is not UTF-8 at line 1 column 3");
}

#[test]
fn a_text_of_two_meanings_is_refused() {
    for (text, problem) in [
        (r#"{"a":1,"a":2}"#, "the member `a` occurs twice at line 1 column 13"),
        (r#"[{"x":{"b":1,"a":1,"\u0061":2}}]"#, "the member `a` occurs twice"),
        ("{\"é\":1,\"\\u00E9\":2}", "the member `\\u{e9}` occurs twice"),
        (r#"{"\ud83d\ude00":1,"😀":2}"#, "occurs twice"),
        (r#"{"$serde_json::private::RawValue":"1"}"#, "the name of a member is reserved"),
        (r#"{"a":{"\u0024serde_json::private::Number":"1"}}"#, "the name of a member is reserved"),
        ("18446744073709551616", "a number is out of range"),
        ("-9223372036854775809", "a number is out of range"),
        ("1e999", "a number is out of range"),
        (r#""\ud800""#, "an unpaired surrogate"),
        (r#"["\udc00\ud800"]"#, "an unpaired surrogate"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
    let part = r#"{"a":1,"a":{"$serde_json::private::RawValue":"1"}}"#;
    let [kept]: [RawBuf; 1] = from_str(&format!("[{part}]"), BOUNDS).unwrap();
    assert_eq!(kept.get(), part, "a part that is not read spoils nothing");
    assert!(kept.read::<Value>().is_err());
    assert_eq!(read(r#"[{"a":1},{"a":{"a":2}}]"#).unwrap(), json!([{ "a": 1 }, { "a": { "a": 2 } }]));
}

#[test]
fn a_bound_is_exact() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(&nested(Bounds::DEPTH)).is_ok());
    let too_deep = read(&nested(Bounds::DEPTH + 1)).unwrap_err();
    assert_eq!((too_deep.kind(), too_deep.is_bound()), (&ErrorKind::Depth(64), true));
    let bounds = Bounds { bytes: 7, ..BOUNDS.with_values(4) };
    assert!(from_str::<Value>("[1,2,3]", bounds).is_ok());
    assert_eq!(from_str::<Value>("[1,2,3 ]", bounds).unwrap_err().kind(), &ErrorKind::Bytes(7));
    assert_eq!(
        from_str::<Value>("[1,2,3]", bounds.with_values(3)).unwrap_err().kind(),
        &ErrorKind::Values(3)
    );
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order<'t> {
    name: &'t str,
    #[serde(default)]
    count: Option<u8>,
    #[serde(borrow)]
    args: Option<Raw<'t>>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Plain,
    Sized(u8),
    Named {
        name: String,
    },
}

#[test]
fn a_type_takes_one_form_only() {
    let order = |text| from_str::<Order<'_>>(text, BOUNDS);
    let args = order(r#"{"name":"a","args": { "b" : [1, "x]"] } ,"kind":"plain"}"#).unwrap().args;
    assert_eq!(args.map(Raw::get), Some(r#"{ "b" : [1, "x]"] }"#));
    assert_eq!(args.unwrap().read::<BTreeMap<String, Value>>().unwrap()["b"], json!([1, "x]"]));
    assert_eq!(order(r#"{"name":"a","kind":{"sized":7}}"#).unwrap().kind, Kind::Sized(7));
    let named = Kind::Named { name: "x".to_owned() };
    assert_eq!(order(r#"{"kind":{"named":{"name":"x"}},"count":null,"name":"a"}"#).unwrap().kind, named);
    assert!(from_str::<serde_json::Map<String, Value>>("null", BOUNDS).is_err());
    assert!(from_str::<Vec<u8>>("null", BOUNDS).is_err());
    for (text, problem) in [
        (r#"["a",null,null,"plain"]"#, "invalid type: sequence, expected an object"),
        (r#"{"name":"a","kind":{"plain":null}}"#, "invalid type: map, expected a string"),
        (r#"{"name":"a","kind":{"sized":1,"plain":2}}"#, "more parts"),
        (r#"{"name":"a","count":256}"#, "invalid value: integer `256`, expected u8"),
        (r#"{"name":"a","count":"sk-1"}"#, "invalid type: a string, expected u8"),
        (r#"{"name":"a","count":1.0}"#, "invalid type: a number with a fraction, expected u8"),
        (r#"{"name":"a","more":1}"#, "unknown field `more`"),
        (r#"{"count":1}"#, "missing field `name` at line 1 column 11"),
        ("7", "invalid type: a number, expected an object"),
    ] {
        let error = order(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn only_this_reader_hands_out_a_part() {
    let error = serde_json::from_str::<Raw<'_>>("1").unwrap_err().to_string();
    assert!(error.contains("only `json::from_str`"), "{error}");
    let pair: [RawBuf; 2] = from_str(r#"[ {"a":[]} , "b" ]"#, BOUNDS).unwrap();
    assert_eq!(pair.each_ref().map(RawBuf::get), [r#"{"a":[]}"#, "\"b\""]);
    assert!(from_str::<[u8; 1]>("[1,2]", BOUNDS).is_err(), "a rest is left");
}

fn sorted(text: &str) -> String {
    let raw: Raw<'_> = from_str(text, BOUNDS).unwrap();
    let mut written = String::new();
    write_sorted(raw, &mut |piece| written.push_str(piece)).unwrap();
    written
}

#[test]
fn a_wide_number_is_read_where_it_fits() {
    let wide = |text| from_str::<u128>(text, BOUNDS);
    assert_eq!(wide("340282366920938463463374607431768211455").unwrap(), u128::MAX);
    assert_eq!(from_str::<i128>(" -18446744073709551616 ", BOUNDS).unwrap(), -(1 << 64));
    for bad in ["340282366920938463463374607431768211456", "-1", "1.5", "\"1\"", "null"] {
        assert!(wide(bad).is_err(), "{bad}");
    }
}

/// Returns any value without what two readers understand differently.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn every_value_is_read_as_it_is(value in any_value()) {
        prop_assert_eq!(&read(&value.to_string()).unwrap(), &value);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(&read(&pretty).unwrap(), &value);
        prop_assert_eq!(sorted(&pretty), value.to_string());
    }

    #[test]
    fn an_edited_text_is_read_the_same_or_refused(
        value in any_value(),
        place in any::<prop::sample::Index>(),
        put in prop::sample::select(vec!["", "\"", "\\", "{", "}", "[", "]", ",", ":", "1", "e", "-", " ", "\\u0061", "null"]),
        cut in 0..3_usize,
    ) {
        let text = value.to_string();
        let at = text.floor_char_boundary(place.index(text.len()));
        let end = text.ceil_char_boundary((at + cut).min(text.len()));
        let edited = format!("{}{put}{}", &text[..at], &text[end..]);
        match (read(&edited), serde_json::from_str::<Value>(&edited)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
            (Ok(_), Err(error)) => prop_assert!(false, "{}: {}", edited, error),
            (Err(error), Ok(_)) => prop_assert!(
                matches!(error.kind(), ErrorKind::Twice(_) | ErrorKind::Number), "{}: {}", edited, error
            ),
            (Err(_), Err(_)) => {}
        }
    }
}
