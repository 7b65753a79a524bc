//! Takes callbacks of LiteLLM, which report calls soon after their end.
//!
//! A callback is answered before anything is done with it: LiteLLM drops events that come while it waits for an answer.
//! Nothing is believed of it. It only leads to the next look into LiteLLM's ledger, so losing one is harmless.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
};
use platform_core::{limit::ByteSize, secret::Secret};
use platform_runtime::{file, report, trust::Trusted};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{
    body::read_bytes,
    context::ApiContext,
    credentials::bearer,
    error::Error,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

pub(crate) const INGEST: &str = "/api/internal/billing/ingest";

/// Largest callback: LiteLLM sends at most 512 events of some 13 kB.
const MAX_CALLBACK: usize = 16 << 20;
/// Largest file of a token.
const MAX_TOKEN_FILE: ByteSize = ByteSize(4096);

/// Takes a callback.
pub(crate) async fn ingest(State(context): State<ApiContext>, request: Request) -> Result<StatusCode, Error> {
    // Without a token the route does not exist.
    let token = token(&context)?.ok_or(Error::Route)?;
    if !has_token(request.headers(), token.expose().trim()) {
        return Err(Error::Unauthenticated);
    }
    let body = read_bytes(request, MAX_CALLBACK).await?;
    context.callbacks().add(body);
    Ok(StatusCode::ACCEPTED)
}

/// Returns the token of callbacks: from its file if there is one, else from the environment.
fn token(context: &ApiContext) -> Result<Option<Arc<Secret>>, Error> {
    let settings = context.settings().get();
    let Some(path) = &settings.billing.ingest_token_file else { return Ok(context.ingest_token()) };
    let token = file::secret(path, MAX_TOKEN_FILE, &Trusted::own()).map_err(|error| {
        tracing::error!(
            error = report::chain(&error),
            "callback refused: billing.ingest_token_file cannot be read"
        );
        Error::Internal
    })?;
    Ok(Some(Arc::new(token)))
}

/// Returns whether `headers` have `token`, in a time that does not depend on where they differ. An empty token never matches.
fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let sent = match (values.next(), values.next()) {
        (Some(value), None) => bearer(value),
        _ => None,
    };
    let hash = |text: &str| Sha256::digest(text.as_bytes());
    !token.is_empty() && sent.is_some_and(|sent| hash(sent).ct_eq(&hash(token)).into())
}

pub(crate) fn ingest_operation() -> Operation {
    let accepted = AnswerSpec::empty(StatusCode::ACCEPTED, "The callback was taken, and is only a hint.");
    Operation::new("ingestCallback", "Takes a callback of LiteLLM.", accepted)
        .described(
            "For LiteLLM's `generic_api` callback alone, with the token in `billing.ingest_token_file`, else \
             `BILLING_INGEST_TOKEN`; without both the route does not exist. A callback changes no receipt: what LiteLLM's \
             ledger says is read soon afterwards.",
        )
        .refuses([
            Problem::NOT_FOUND,
            Problem::UNAUTHENTICATED,
            Problem::TOO_LARGE,
            Problem::BODY_TIMEOUT,
            Problem::INVALID_REQUEST,
        ])
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_whole_token_is_accepted() {
        let with = |values: &[&str]| {
            let authorizations = values.iter().map(|value| HeaderValue::from_str(value).unwrap());
            authorizations.map(|value| (AUTHORIZATION, value)).collect::<HeaderMap>()
        };
        assert!(has_token(&with(&["Bearer sink-secret"]), "sink-secret"));
        for wrong in
            [&["Bearer sink-secre"][..], &["Bearer sink-secret2"], &["Basic sink-secret"], &["Bearer "], &[]]
        {
            assert!(!has_token(&with(wrong), "sink-secret"), "{wrong:?}");
        }
        let twice = with(&["Bearer sink-secret", "Bearer sink-secret"]);
        assert!(!has_token(&twice, "sink-secret"));
        assert!(!has_token(&with(&["Bearer "]), ""), "an empty file opens nothing");
    }
}
