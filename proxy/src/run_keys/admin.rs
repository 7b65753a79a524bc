//! Mints and deletes keys through the admin routes of LiteLLM, `POST /key/generate` and `POST /key/delete`
//! (docs.litellm.ai, "Virtual keys").

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri};
use platform_core::{
    budget::Limit,
    json::{self, Bounds},
    money::NanoDollars,
    route::Route,
    secret::Secret,
};
use platform_runtime::report;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use super::alias::{Deletion, KeyAlias};
use crate::{clock, run::Run, upstream::Upstream};

const GENERATE: &str = "/key/generate";
const DELETE: &str = "/key/delete";
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 << 10;
/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reason that a key was not minted or deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The upstream gave no answer.
    #[error("no answer of the upstream to {path}: {reason}")]
    NoAnswer {
        /// Route that was asked.
        path: &'static str,
        /// Description of the failure.
        reason: String,
    },
    /// The upstream refused.
    #[error("the upstream answered {path} with {status}: check upstream.admin_key_file")]
    Refused {
        /// Route that was asked.
        path: &'static str,
        /// Status of the answer.
        status: StatusCode,
    },
    /// The answer to a mint has no key that a header can carry.
    #[error("the upstream answered {GENERATE} without a key")]
    NoKey,
    /// The alias is not on the disk, so the key was not minted.
    #[error("cannot store the alias of a run's key")]
    NotStored(#[source] std::io::Error),
}

/// Access to the admin routes.
#[derive(Debug)]
pub(super) struct AdminApi<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) authorization: HeaderValue,
}

#[derive(Deserialize)]
struct Minted {
    key: String,
}

impl AdminApi<'_> {
    /// Mints a key. If the future is dropped, the key may exist.
    pub(super) async fn mint(&self, request: &Value) -> Result<Secret, Error> {
        let (status, body) = self.post(GENERATE, request).await?;
        if !status.is_success() {
            return Err(Error::Refused { path: GENERATE, status });
        }
        let minted: Minted =
            json::from_slice(&body, Bounds::of(MAX_ANSWER)).map_err(|_error| Error::NoKey)?;
        Ok(Secret::new(minted.key))
    }

    /// Deletes the key `alias`.
    pub(super) async fn delete(&self, alias: &KeyAlias) -> Result<Deletion, Error> {
        let (status, _) = self.post(DELETE, &json!({ "key_aliases": [alias.as_str()] })).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(Deletion::Unknown),
            status if status.is_success() => Ok(Deletion::Deleted),
            status => Err(Error::Refused { path: DELETE, status }),
        }
    }

    async fn post(&self, path: &'static str, body: &Value) -> Result<(StatusCode, Bytes), Error> {
        let uri = Uri::from_static(path);
        let answered = self.upstream.post(uri, &self.authorization, body.to_string(), MAX_ANSWER);
        let no_answer = |reason| Error::NoAnswer { path, reason };
        match tokio::time::timeout(TIMEOUT, answered).await {
            Ok(answered) => answered.map_err(|error| no_answer(report::chain(&error))),
            Err(_elapsed) => Err(no_answer(format!("not within {} s", TIMEOUT.as_secs()))),
        }
    }
}

/// Returns the request for a key with which `run` can do what its grant allows, and nothing else.
pub(super) fn mint_request(run: &Run, alias: &KeyAlias) -> Value {
    let grant = &run.grant;
    let mut request = Map::new();
    let mut set = |name: &str, value: Value| request.insert(name.to_owned(), value);
    set("key_alias", alias.as_str().into());
    set("allowed_routes", Route::ALL.iter().filter_map(|route| route.upstream_path()).collect());
    set("metadata", json!({ "run_id": grant.run_id, "attempt": grant.attempt, "account": grant.account }));
    if let Some(models) = &grant.models {
        set("models", json!(models));
    }
    let left = run.spending.view().into_iter().find(|view| view.limit == Limit::CostNanodollars);
    if let Some(allowed) = left.and_then(|view| Some(view.allowed?.saturating_sub(view.used))) {
        set("max_budget", Value::Number(dollars(NanoDollars(allowed))));
    }
    if let Some(expires) = grant.expires {
        let left = expires.0.saturating_sub(clock::now().as_secs()).max(1);
        set("duration", format!("{left}s").into());
    }
    Value::Object(request)
}

/// Returns an amount as a JSON number of dollars.
fn dollars(amount: NanoDollars) -> Number {
    amount.to_plain_text().parse().ok().and_then(Number::from_f64).unwrap_or_else(|| 0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_in_dollars() {
        for (amount, text) in [(0, "0.0"), (60_000, "0.00006"), (2_500_000_000, "2.5"), (1, "1e-9")] {
            let number: f64 = text.parse().unwrap();
            assert_eq!(dollars(NanoDollars(amount)).as_f64(), Some(number), "{amount}");
        }
    }
}
