//! Builds the request headers: an allow-list, then exactly one of each of our own. No header of a client can accompany
//! or override ours.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use platform_core::{
    grant::RunGrant,
    id::CallId,
    name::{header as own, metadata},
};
use serde_json::{Map, Value, json};

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

/// Headers that are the same in every call of a run, written once.
#[derive(Debug)]
pub(crate) struct Identification {
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The metadata object up to the call id's opening quote.
    metadata_start: String,
}

impl Identification {
    /// Returns the identification of a run that was granted `grant`.
    pub(crate) fn of(grant: &RunGrant) -> Result<Self, http::Error> {
        let account = HeaderValue::from_str(grant.account.as_str())?;
        let run = HeaderValue::from_str(grant.run_id.as_str())?;
        let seconds = HeaderValue::from(grant.limits.times.first_byte_ms.0.div_ceil(1000));
        let named = |name, value| (HeaderName::from_static(name), value);
        let headers = vec![
            named(own::LITELLM_END_USER, account.clone()),
            named(own::LITELLM_CUSTOMER, account),
            named(own::LITELLM_SESSION, run.clone()),
            named(own::LITELLM_TIMEOUT, seconds),
            named(own::COGNI_RUN_ID, run),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
            // Ours, too: LiteLLM reads a form where a client says it is one, and we read JSON.
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ];
        Ok(Self { headers, metadata_start: metadata_start(grant) })
    }

    /// Adds it to the `headers` of `call`, with the current credential.
    pub(super) fn add_to(
        &self,
        headers: &mut HeaderMap,
        authorization: Option<&HeaderValue>,
        call: CallId,
    ) -> Result<(), http::Error> {
        if let Some(authorization) = authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let id = call.to_ascii();
        headers.insert(own::LITELLM_CALL_ID, HeaderValue::from_bytes(&id)?);
        let metadata = [self.metadata_start.as_bytes(), &id, b"\"}"].concat();
        headers.insert(own::LITELLM_METADATA, HeaderValue::from_maybe_shared(Bytes::from(metadata))?);
        Ok(())
    }
}

/// Writes the metadata object up to the call id. It is ASCII, because LiteLLM decodes headers as Latin-1. It is always
/// valid JSON, because LiteLLM falls back to the body's metadata otherwise.
fn metadata_start(grant: &RunGrant) -> String {
    let mut object = Map::new();
    object.insert(metadata::RUN_ID.to_owned(), json!(grant.run_id));
    object.insert(metadata::ATTEMPT.to_owned(), json!(grant.attempt));
    object.insert(metadata::GRAPH_ID.to_owned(), json!(grant.graph));
    let correlation = &grant.correlation;
    let optional = [
        (metadata::USER_ID, &correlation.user),
        (metadata::SESSION_ID, &correlation.session),
        (metadata::EXISTING_TRACE_ID, &correlation.existing_trace),
        (metadata::TRACE_USER_ID, &correlation.trace_user),
    ];
    for (key, id) in optional {
        if let Some(id) = id {
            object.insert(key.to_owned(), json!(id));
        }
    }
    let mut text = ascii(&Value::Object(object).to_string());
    text.truncate(text.len() - 1);
    text + ",\"" + metadata::CALL_ID + "\":\""
}

/// Returns `json` with everything beyond ASCII as `\uXXXX`.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

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
    use super::*;

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
