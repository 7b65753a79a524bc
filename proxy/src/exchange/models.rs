//! Answers `GET /v1/models` and `GET /v1/models/{id}` with the models that the run was granted. The upstream is not
//! queried: its list would name models that this run may not name.
//!
//! A run that may name any model is told its default and all that have a price. `GET /v1/models/{id}` then says yes to
//! any name that a call may have, because clients look before they call.
//!
//! One shape for both dialects: platform.openai.com/docs/api-reference/models and docs.anthropic.com/en/api/models-list
//! have no field of the same name with another meaning.

use bytes::Bytes;
use http::{Method, Response, StatusCode, request::Parts};
use platform_core::{
    grant::RunGrant, id::ModelName, percent, record::Outcome, refusal::Refusal, route::Route,
};
use serde_json::{Value, json};

use super::{call::Exchange, context::Snapshot, json_response};
use crate::refusal::Refused;

const LIST: &str = "/v1/models";

/// Returns whether the call asks for models. As on all routes, the target must not name another server.
pub(super) fn is_models_request(head: &Parts, path: &str) -> bool {
    head.method == Method::GET
        && head.uri.authority().is_none()
        && path.strip_prefix(LIST).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers the call, and records it.
pub(super) fn respond(exchange: &mut Exchange, path: &str) -> Result<Response<Bytes>, Refused> {
    let grant = &exchange.run().grant;
    let answer = match path.strip_prefix(LIST).and_then(|rest| rest.strip_prefix('/')) {
        None => Some(list(&listed(grant, &exchange.context().snapshot.load()))),
        Some(id) => decoded(id).filter(|id| may_name(grant, id)).map(|id| model(&id)),
    };
    let answer = answer.ok_or(Refusal::RouteUnknown)?;
    exchange.admit(Route::Models)?;
    let text = answer.to_string();
    exchange.answered_locally(text.len());
    // Nothing was sent upstream, so the answer need not wait for the record.
    drop(exchange.settle(Outcome::Complete));
    Ok(json_response(text))
}

impl Exchange {
    /// Notes that Sluicegate itself answers with success, in so many bytes.
    fn answered_locally(&mut self, bytes: usize) {
        self.note(|record| record.status = StatusCode::OK.as_u16());
        self.forwarded(bytes);
    }
}

/// Returns the models that the run is told: those that it was granted, or its default and those with a price.
fn listed(grant: &RunGrant, snapshot: &Snapshot) -> Vec<String> {
    if let Some(granted) = &grant.models {
        return granted.iter().map(ToString::to_string).collect();
    }
    let default = snapshot.default_models.of_run(grant);
    let priced = snapshot.prices.names().filter(|name| Some(*name) != default);
    default.into_iter().chain(priced).map(str::to_owned).collect()
}

/// Returns whether a call of the run may name the model `id`.
fn may_name(grant: &RunGrant, id: &str) -> bool {
    let is_path = || id.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    match &grant.models {
        Some(granted) => granted.iter().any(|model| model.as_str() == id),
        None => ModelName::accepts(id) && !is_path(),
    }
}

/// Returns `id` without percent-encoding: SDKs write `openai%2Fgpt-4o`.
fn decoded(id: &str) -> Option<String> {
    String::from_utf8(percent::decode(id)?).ok()
}

fn list(models: &[String]) -> Value {
    json!({
        "object": "list",
        "data": models.iter().map(|name| model(name)).collect::<Vec<_>>(),
        "has_more": false,
        "first_id": models.first(),
        "last_id": models.last(),
    })
}

fn model(name: &str) -> Value {
    json!({
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "sluicegate",
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    })
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn models_are_listed_at_their_exact_path() {
        let asked = |method: &str, uri: &str| {
            let head = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
            is_models_request(&head, head.uri.path())
        };
        assert!(asked("GET", "/v1/models"));
        assert!(asked("GET", "/v1/models/gpt-4o?x=1"));
        for (method, uri) in [
            ("POST", "/v1/models"),
            ("GET", "/v1/modelsx"),
            ("GET", "/V1/models"),
            ("GET", "//v1/models"),
            ("GET", "http://other/v1/models"),
        ] {
            assert!(!asked(method, uri), "{method} {uri}");
        }
    }

    #[test]
    fn a_run_without_a_list_may_name_any_model() {
        let grant = |models: &str| -> RunGrant {
            let json = format!(r#"{{"run_id":"r1","account":"a","graph":"sandbox:agent"{models}}}"#);
            serde_json::from_str(&json).unwrap()
        };
        let (any, some) = (grant(""), grant(r#","models":["openai/gpt-4o"]"#));
        let may = |grant: &RunGrant, id: &str| decoded(id).is_some_and(|id| may_name(grant, &id));
        for id in ["gpt-4o", "openai/gpt-4o", "openai%2Fgpt-4o", "openai%2fgpt-4o", "a:b@eu", "a..b"] {
            assert!(may(&any, id), "{id}");
            assert_eq!(may(&some, id), id.ends_with("gpt-4o") && id.starts_with("openai"), "{id}");
        }
        for id in [
            "",
            "/",
            "a/",
            "../files",
            "a/../b",
            "%2e%2e/files",
            "%2e%2e%2ffiles",
            "a//b",
            "a,b",
            "a%20b",
            "a%",
            "a%4",
            "a%zz",
            "a%+f",
            "a%-f",
            "%00",
            "%c3%a9",
        ] {
            assert!(!may(&any, id) && !may(&some, id), "{id}");
        }
    }
}
