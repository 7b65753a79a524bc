//! Answers `GET /v1/models` and `GET /v1/models/{id}` with the models that the run was granted. The upstream is not
//! queried: its list would name models that this run may not name.
//!
//! One shape for both dialects: platform.openai.com/docs/api-reference/models and docs.anthropic.com/en/api/models-list
//! have no field of the same name with another meaning.

use http::{Method, Response, request::Parts};
use platform_core::{grant::RunGrant, id::ModelName, record::Outcome, refusal::Refusal, route::Route};
use serde_json::{Value, json};

use super::{Body, settle::Exchange};
use crate::refusal::Refused;

const LIST: &str = "/v1/models";

/// Returns whether the call asks for models. As on all routes, the target must not name another server.
pub(super) fn is_models_request(head: &Parts, path: &str) -> bool {
    head.method == Method::GET
        && head.uri.authority().is_none()
        && path.strip_prefix(LIST).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers the call, and records it.
pub(super) fn respond(exchange: &mut Exchange, path: &str) -> Result<Response<Body>, Refused> {
    let grant = &exchange.run().grant;
    let answer = match path.strip_prefix(LIST).and_then(|rest| rest.strip_prefix('/')) {
        None => Some(list(grant)),
        Some(id) => granted(grant).iter().find(|model| model.as_str() == id).map(model),
    };
    let answer = answer.ok_or(Refusal::RouteUnknown)?;
    exchange.admit(Route::Models)?;
    let text = answer.to_string();
    exchange.answered_locally(text.len());
    // Nothing was sent upstream, so the answer need not wait for the record.
    drop(exchange.settle(Outcome::Complete));
    Ok(Body::json(text))
}

fn granted(grant: &RunGrant) -> &[ModelName] {
    grant.models.as_deref().unwrap_or_default()
}

fn list(grant: &RunGrant) -> Value {
    let models = granted(grant);
    json!({
        "object": "list",
        "data": models.iter().map(model).collect::<Vec<_>>(),
        "has_more": false,
        "first_id": models.first(),
        "last_id": models.last(),
    })
}

fn model(name: &ModelName) -> Value {
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
}
