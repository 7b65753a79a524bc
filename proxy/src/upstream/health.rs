//! Asks the upstream for its health. That needs the key, which never leaves this process: callers only get the result.

use std::time::Duration;

use http::{HeaderValue, StatusCode, Uri};
use platform_core::{
    control::UpstreamHealth,
    json::{self, Bounds},
};
use platform_runtime::report;
use serde::{Deserialize, de::DeserializeOwned};

use super::{QueryError, Upstream};

/// Largest answer that is read.
const MAX_ANSWER: usize = 4 << 20;
/// Longest wait for all answers.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Paths at which LiteLLM shows its version: to holders of the key since 1.100 or so, to every client before.
const VERSION_PATHS: [&str; 2] = ["/health/readiness/details", "/health/readiness"];
/// Type of LiteLLM's error for a key that it cannot look up.
const NO_DATABASE: &str = "no_db_connection";

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

#[derive(Deserialize)]
struct KeyRefusal {
    error: KeyRefusalDetail,
}

#[derive(Deserialize)]
struct KeyRefusalDetail {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Readiness {
    litellm_version: Option<String>,
}

impl Upstream {
    /// Returns the health of the upstream, which is asked with `authorization`.
    pub(crate) async fn health(&self, authorization: Option<&HeaderValue>) -> UpstreamHealth {
        match tokio::time::timeout(HEALTH_TIMEOUT, self.query_health(authorization)).await {
            Ok(Ok(health)) => health,
            Ok(Err(error)) => UpstreamHealth::Unreachable { reason: report::chain(&error) },
            Err(_elapsed) => UpstreamHealth::Unreachable {
                reason: format!("no answer within {} s", HEALTH_TIMEOUT.as_secs()),
            },
        }
    }

    async fn query_health(&self, authorization: Option<&HeaderValue>) -> Result<UpstreamHealth, QueryError> {
        let (status, body) = self.get(Uri::from_static("/v1/models"), authorization, MAX_ANSWER).await?;
        if !status.is_success() {
            return Ok(refused(status, &body));
        }
        let list: Models = parse(&body).ok_or_else(|| {
            QueryError::Unanswered("its answer to GET /v1/models is not a list of models".to_owned())
        })?;
        let models = list.data.into_iter().map(|model| model.id).collect();
        for path in VERSION_PATHS {
            let (_, body) = self.get(Uri::from_static(path), authorization, MAX_ANSWER).await?;
            if let Some(Readiness { litellm_version: Some(version) }) = parse(&body) {
                return Ok(UpstreamHealth::Ready { version: Some(version), models });
            }
        }
        Ok(UpstreamHealth::Ready { version: None, models })
    }
}

/// Returns what an answer with an error says of the upstream. LiteLLM looks keys up in its database. Without one, it
/// answers 400 to a key that is not its master key.
fn refused(status: StatusCode, body: &[u8]) -> UpstreamHealth {
    let kind = parse::<KeyRefusal>(body).and_then(|refusal| refusal.error.kind);
    match kind.as_deref() {
        Some(NO_DATABASE) => UpstreamHealth::KeyUnknown,
        _ => UpstreamHealth::Refused { status: status.as_u16() },
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    json::from_slice(body, Bounds::of(MAX_ANSWER)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_nest::raw_nest;

    #[test]
    fn a_key_without_a_database_is_told() {
        let measured =
            br#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#;
        assert_eq!(refused(StatusCode::BAD_REQUEST, measured), UpstreamHealth::KeyUnknown);
        for other in [&br#"{"error":{"type":null}}"#[..], b"{}", b""] {
            let health = refused(StatusCode::BAD_REQUEST, other);
            assert_eq!(health, UpstreamHealth::Refused { status: 400 }, "control");
        }
    }

    #[test]
    fn an_answer_beyond_its_bounds_is_no_list() {
        let list =
            |more: &str| parse::<Models>(format!(r#"{{"data":[{{"id":"m","x":{more}}}]}}"#).as_bytes());
        assert!(list("1").is_some() && list(&raw_nest(15)).is_some());
        for more in ["[".repeat(100_000), "[".repeat(64) + &"]".repeat(64)] {
            assert!(list(&more).is_none(), "{more:.100}");
        }
    }
}
