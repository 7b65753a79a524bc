//! Writes a text that serde_json, with its feature `raw_value`, nests deeper than its limit.

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
pub(crate) fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}
