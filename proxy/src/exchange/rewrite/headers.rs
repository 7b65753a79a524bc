//! Builds the request headers: an allow-list, then exactly one of each of our own. No header of a client can accompany
//! or override ours.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Request headers that pass, besides `x-stainless-*`.
const PASSED: [HeaderName; 5] = [
    header::ACCEPT,
    header::USER_AGENT,
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
];
/// Prefix of the headers in which official SDKs describe themselves.
const PASSED_PREFIX: &str = "x-stainless-";

/// Returns the client's headers that pass. Only ASCII values do: how others are read depends on the reader.
pub(super) fn passed(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(24);
    let plain = |value: &&HeaderValue| value.to_str().is_ok();
    for name in &PASSED {
        if let Some(value) = from.get(name).filter(plain) {
            headers.insert(name, value.clone());
        }
    }
    let described = from.iter().filter(|(name, _)| name.as_str().starts_with(PASSED_PREFIX));
    for (name, value) in described.filter(|(_, value)| plain(value)) {
        headers.insert(name, value.clone());
    }
    headers
}

#[cfg(test)]
mod tests {
    use platform_core::{grant::RunGrant, id::CallId};
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::policy::Identification;

    fn grant(extra: &str) -> RunGrant {
        let json =
            format!(r#"{{"run_id":"r1","attempt":2,"account":"acct","graph":"sandbox:agent"{extra}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn identified(grant: &RunGrant, from: &HeaderMap) -> HeaderMap {
        let mut headers = passed(from);
        let identification = Identification::of(grant).unwrap();
        let key = HeaderValue::from_static("Bearer key");
        identification.add_to(&mut headers, Some(&key), CallId::new(1, 2)).unwrap();
        headers
    }

    #[test]
    fn claimed_headers_are_dropped_and_ours_unique() {
        let mut from = HeaderMap::new();
        let spoofed = [
            "authorization",
            "x-api-key",
            "x-goog-api-key",
            "api-key",
            "x-litellm-api-key",
            "x-litellm-end-user-id",
            "x-litellm-customer-id",
            "x-litellm-call-id",
            "x-litellm-tags",
            "x-litellm-spend-logs-metadata",
            "x-litellm-num-retries",
            "x-cogni-run-id",
            "x-run-token",
            "cookie",
            "traceparent",
            "accept-encoding",
            "x-forwarded-for",
            "host",
            "x-vendor-session-id",
        ];
        for name in spoofed {
            from.append(name, HeaderValue::from_static("victim"));
            from.append(name, HeaderValue::from_static("victim, too"));
        }
        from.insert("x-stainless-lang", HeaderValue::from_static("python"));
        from.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
        let headers = identified(&grant(""), &from);
        assert!(headers.values().all(|value| !value.to_str().unwrap().contains("victim")), "{headers:?}");
        let expected = [
            ("authorization", "Bearer key"),
            ("x-litellm-end-user-id", "acct"),
            ("x-litellm-customer-id", "acct"),
            ("x-litellm-session-id", "r1"),
            ("x-cogni-run-id", "r1"),
            ("accept-encoding", "identity"),
            ("x-litellm-timeout", "3600"),
            ("x-stainless-lang", "python"),
            ("content-type", "application/json"),
        ];
        for (name, value) in expected {
            assert_eq!(headers.get_all(name).iter().collect::<Vec<_>>(), [value], "{name}");
        }
        assert_eq!(headers.len(), expected.len() + 2);
    }

    #[test]
    fn only_ascii_passes() {
        for name in ["user-agent", "x-stainless-os"] {
            let with = |value: &'static [u8]| {
                let name = HeaderName::from_static(name);
                passed(&HeaderMap::from_iter([(name, HeaderValue::from_bytes(value).unwrap())])).len()
            };
            assert_eq!((with(b"M\xc3\xbcller"), with(b"Muller/1.0 (x\ty)")), (0, 1), "{name}");
        }
    }

    #[test]
    fn metadata_is_ascii_json_whatever_the_ids_hold() {
        let nasty =
            r#","correlation":{"user":"Zoë \"}{\\ 👋","session":"s","existing_trace":"t","trace_user":"u"}"#;
        let headers = identified(&grant(nasty), &HeaderMap::new());
        let text = headers["x-litellm-spend-logs-metadata"].to_str().unwrap();
        let json: Value = serde_json::from_str(text).unwrap();
        let call_id = headers["x-litellm-call-id"].to_str().unwrap();
        let expected = json!({
            "run_id": "r1", "attempt": 2, "graph_id": "sandbox:agent", "call_id": call_id, "user_id": "Zoë \"}{\\ 👋",
            "session_id": "s", "existing_trace_id": "t", "trace_user_id": "u",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn absent_ids_are_left_out_of_the_metadata() {
        let headers = identified(&grant(""), &HeaderMap::new());
        let json: Map<String, Value> =
            serde_json::from_str(headers["x-litellm-spend-logs-metadata"].to_str().unwrap()).unwrap();
        assert_eq!(json.keys().collect::<Vec<_>>(), ["attempt", "call_id", "graph_id", "run_id"]);
    }
}
