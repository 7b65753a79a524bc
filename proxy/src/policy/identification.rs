//! Writes the headers that tell the upstream who made a call.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use platform_core::{
    grant::RunGrant,
    id::CallId,
    name::{header as own, metadata},
};
use serde_json::{Map, Value, json};

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
    pub(crate) fn add_to(
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
