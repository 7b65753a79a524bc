//! rewrite: what of a request goes on, and what Sluicegate adds.
//!
//! Headers pass by an allow-list. Then exactly one of each of our own is added, so nothing a client sends
//! can stand beside it or win over it. The body passes as it came; it is read whole, bounded, because who
//! may ask for what is in there.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use platform_core::{
    grant::RunGrant,
    id::CallId,
    name::{header as own, metadata},
    refusal::Refusal,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settle::Exchange;

/// Request headers that pass, besides `x-stainless-*`.
const PASSED: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
];
/// Prefix of the headers in which official SDKs describe themselves.
const PASSED_PREFIX: &str = "x-stainless-";

/// What is the same in every call of a run, written once.
#[derive(Debug)]
pub(crate) struct Identification {
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The metadata object up to the call id's opening quote.
    metadata_start: String,
}

impl Identification {
    /// The identification of a run that was granted `grant`.
    pub(crate) fn of(grant: &RunGrant, authorization: Option<HeaderValue>) -> Result<Self, http::Error> {
        let account = HeaderValue::from_str(grant.account.as_str())?;
        let run = HeaderValue::from_str(grant.run_id.as_str())?;
        let seconds = HeaderValue::from(grant.limits.call_ms.0.div_ceil(1000));
        let named = |name, value| (HeaderName::from_static(name), value);
        let mut headers = vec![
            named(own::LITELLM_END_USER, account.clone()),
            named(own::LITELLM_CUSTOMER, account),
            named(own::LITELLM_SESSION, run.clone()),
            named(own::LITELLM_TIMEOUT, seconds),
            named(own::COGNI_RUN_ID, run),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        ];
        headers.extend(authorization.map(|value| (header::AUTHORIZATION, value)));
        Ok(Self { headers, metadata_start: metadata_start(grant) })
    }

    fn add_to(&self, headers: &mut HeaderMap, call: CallId) -> Result<(), http::Error> {
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

/// ASCII, because LiteLLM decodes headers as Latin-1; always valid JSON, because LiteLLM falls back to the
/// body's metadata when it is not.
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

/// `json` with everything beyond ASCII as `\uXXXX`.
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

/// Reads the body whole. Not cancel safe, and need not be: the call ends with it.
pub(super) async fn read_body(exchange: &mut Exchange, body: Incoming) -> Result<Bytes, Refusal> {
    let mut body = Limited::new(body, exchange.run().grant.limits.request_body.as_usize());
    let (mut whole, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
            true => Refusal::BodyTooLarge,
            false => Refusal::BodyInvalid,
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        exchange.received(piece.len());
        // A small body comes in one piece, which is then not copied.
        if whole.is_empty() && rest.is_empty() {
            whole = piece;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut whole));
            }
            rest.extend_from_slice(&piece);
        }
    }
    Ok(if rest.is_empty() { whole } else { rest.freeze() })
}

/// What the body asks for.
#[derive(Deserialize)]
pub(super) struct Asked<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
}

/// Reads the body. serde would take an array for a struct, so the first byte decides.
fn asked(body: &[u8]) -> Result<Asked<'_>, Refusal> {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    let parsed = is_object.then(|| serde_json::from_slice(body).ok()).flatten();
    parsed.ok_or(Refusal::BodyInvalid)
}

/// The request that goes to the upstream.
pub(super) fn request(
    exchange: &mut Exchange,
    from: &HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Refusal> {
    let asked = asked(&body)?;
    exchange.asked(&asked);
    let path = exchange.route().upstream_path().ok_or(Refusal::RouteUnknown)?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    *request.headers_mut() = passed(from);
    let identified = exchange.run().identification.add_to(request.headers_mut(), exchange.call_id());
    identified.map_err(|_error| Refusal::BodyInvalid)?;
    Ok(request)
}

fn passed(from: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(24);
    for name in &PASSED {
        if let Some(value) = from.get(name) {
            headers.insert(name, value.clone());
        }
    }
    for (name, value) in from.iter().filter(|(name, _)| name.as_str().starts_with(PASSED_PREFIX)) {
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
        let identification = Identification::of(grant, Some(HeaderValue::from_static("Bearer key"))).unwrap();
        identification.add_to(&mut headers, CallId::new(1, 2)).unwrap();
        headers
    }

    #[test]
    fn what_a_client_claims_is_dropped_and_ours_is_there_once() {
        let mut from = HeaderMap::new();
        let spoofed = [
            "authorization",
            "x-api-key",
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
        from.insert("content-type", HeaderValue::from_static("application/json"));
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
    fn only_one_whole_object_is_a_body() {
        assert_eq!(asked(b" \n{\"stream\":true,\"model\":\"m\"}").unwrap().stream, Some(true));
        let bad: [&[u8]; 9] = [
            b"",
            b"[]",
            b"[\"m\",true]",
            b"null",
            b"\"m\"",
            b"{",
            b"{}{}",
            b"{\"model\":1}",
            b"{\"model\":\"a\",\"model\":\"b\"}",
        ];
        for body in bad {
            assert!(matches!(asked(body), Err(Refusal::BodyInvalid)), "{}", String::from_utf8_lossy(body));
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
