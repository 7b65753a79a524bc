//! Finds the run that a call belongs to.
//!
//! On a run's own socket that is the run, and nothing that the caller says matters. On the shared listener
//! the caller has to prove its run. The proof is a signed run token, in its own header or as the API key
//! of any SDK. Where gateways are served, it may also be a W3C trace id (w3.org/TR/trace-context) or a slot
//! in the path. Control registers these two for a live run. Two proofs that disagree are refused. A gateway's
//! own socket is such a listener, and a proof is bound to the listener that it was granted for. A trace id of
//! one gateway's run proves nothing at another gateway.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use platform_core::{
    control::Correlation,
    name::header as own,
    record::Identity,
    refusal::Refusal,
    token::{SignedToken, TokenError, UnixSeconds, looks_like_token},
    traceparent::Traceparent,
};
use platform_runtime::settings::Serves;

use super::context::ServeContext;
use crate::{
    clock,
    refusal::Refused,
    run::Run,
    server::{Ingress, ListenerKind},
};

/// Beginning of a path that names a slot: `/slot/<32 hexadecimal digits>/v1/…`
const SLOT_PREFIX: &str = "/slot/";

/// Run that a call belongs to, and its proof.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) run: Arc<Run>,
    pub(super) identity: Identity,
}

impl Caller {
    /// Returns the caller on a socket of `run`.
    pub(super) fn on_socket(run: &Arc<Run>) -> Self {
        Self { run: Arc::clone(run), identity: Identity::Socket }
    }

    /// Returns the caller of a call without proof of its run.
    pub(super) fn unattributed(context: &ServeContext) -> Self {
        Self { run: Arc::clone(&context.unattributed_run), identity: Identity::None }
    }
}

/// Returns the caller, and the path without the part that named the caller.
pub(super) fn identify<'h>(
    context: &ServeContext,
    ingress: &Ingress,
    head: &'h Parts,
) -> Result<(Caller, &'h str), Refused> {
    let path = head.uri.path();
    match &ingress.listener {
        ListenerKind::Run(run) => Ok((Caller::on_socket(run), path)),
        ListenerKind::Shared(Serves::Clients) => {
            let run =
                find_by_token(context, &ingress.listener, &head.headers)?.ok_or(Refusal::TokenMissing)?;
            Ok((Caller { run, identity: Identity::Token }, path))
        }
        ListenerKind::Shared(Serves::Gateways) | ListenerKind::Gateway(_) => {
            find_by_any(context, &ingress.listener, head)
        }
    }
}

fn find_by_any<'h>(
    context: &ServeContext,
    listener: &ListenerKind,
    head: &'h Parts,
) -> Result<(Caller, &'h str), Refused> {
    let (slot, path) = split_slot(head.uri.path());
    let correlated =
        |correlation| context.registry.correlated(&correlation).filter(|run| listener.is_for(run));
    let by_slot = slot.map(|slot| correlated(slot).ok_or(Refusal::Unattributed)).transpose()?;
    let found = [
        (find_by_token(context, listener, &head.headers)?, Identity::Token),
        (find_trace(&head.headers).and_then(correlated), Identity::Trace),
        (by_slot, Identity::Slot),
    ];
    let mut found = found.into_iter().filter_map(|(run, identity)| Some(Caller { run: run?, identity }));
    let first = found.next().ok_or(Refusal::Unattributed)?;
    if found.any(|other| !Arc::ptr_eq(&other.run, &first.run)) {
        return Err(Refusal::IdentityConflict.into());
    }
    Ok((first, path))
}

/// Returns the run of the tokens that were sent, if there are any.
fn find_by_token(
    context: &ServeContext,
    listener: &ListenerKind,
    headers: &HeaderMap,
) -> Result<Option<Arc<Run>>, Refused> {
    let mut found: Option<Arc<Run>> = None;
    for text in tokens(headers)? {
        let run = verify(context, listener, text)?;
        if found.replace(Arc::clone(&run)).is_some_and(|other| !Arc::ptr_eq(&other, &run)) {
            return Err(Refusal::IdentityConflict.into());
        }
    }
    Ok(found)
}

fn verify(context: &ServeContext, listener: &ListenerKind, text: &str) -> Result<Arc<Run>, Refused> {
    let token = SignedToken::parse(text).map_err(|_malformed| Refusal::TokenMalformed)?;
    let snapshot = context.snapshot.load();
    let now = UnixSeconds(clock::now().as_secs());
    let verified =
        token.verify(&snapshot.secrets, now, snapshot.token_leeway).map_err(|failure| match failure {
            TokenError::Malformed(_) => Refused::from(Refusal::TokenMalformed),
            TokenError::Invalid => Refusal::TokenInvalid.into(),
            TokenError::Expired => expired(token.claims().expiry()),
        })?;
    let claims = verified.claims();
    let run = context.registry.run(claims.run()).filter(|run| listener.is_for(run));
    let run = run.ok_or(Refusal::RunUnknown)?;
    if run.is_revoked() {
        return Err(Refusal::TokenRevoked.into());
    }
    if run.grant.attempt != claims.attempt() {
        return Err(Refusal::TokenInvalid.into());
    }
    Ok(run)
}

/// Returns the refusal of a token that has expired.
fn expired(UnixSeconds(expiry): UnixSeconds) -> Refused {
    let expiry = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(expiry));
    Refused::from(Refusal::TokenExpired)
        .saying(format!("the run token has run out at {expiry}; mint a new one"))
}

/// Returns the run tokens that were sent, in the header of their own or as keys of their shape. OpenClaw
/// always sends a key; one of another shape does not count.
fn tokens(headers: &HeaderMap) -> Result<impl Iterator<Item = &str>, Refusal> {
    let mut own = headers.get_all(own::RUN_TOKEN).iter();
    let token =
        own.next().map(|token| token.to_str().map_err(|_error| Refusal::TokenMalformed)).transpose()?;
    if own.next().is_some() {
        return Err(Refusal::TokenMalformed);
    }
    let values = |name| headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
    let bearers = values(header::AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
    let keys = bearers
        .chain(API_KEYS.into_iter().flat_map(values))
        .map(str::trim)
        .filter(|key| looks_like_token(key));
    Ok(token.into_iter().chain(keys))
}

/// Headers in which SDKs send their key: Anthropic's, and Google's. The model API has no route of Google's, and a client
/// of Google's learns just that.
const API_KEYS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("x-goog-api-key")];

/// Returns the trace id of the one `traceparent`, if it is whole and of version 00. Several headers name none.
fn find_trace(headers: &HeaderMap) -> Option<Correlation> {
    let mut all = headers.get_all("traceparent").iter();
    let text = all.next().filter(|_| all.next().is_none())?.to_str().ok()?;
    let _whole: Traceparent = text.parse().ok()?;
    Correlation::trace(text.get(3..35)?)
}

/// Returns the slot that a path begins with, and the rest of the path.
pub(super) fn split_slot(path: &str) -> (Option<Correlation>, &str) {
    let Some((slot, rest)) = path.strip_prefix(SLOT_PREFIX).and_then(|rest| rest.split_at_checked(32)) else {
        return (None, path);
    };
    match Correlation::slot(slot) {
        Some(slot) if rest.starts_with('/') => (Some(slot), rest),
        _ => (None, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_32_digits_before_the_path() {
        let digits = "0123456789abcdef0123456789abcdef";
        let good = format!("/slot/{digits}/v1/messages");
        assert_eq!(split_slot(&good), (Correlation::slot(digits), "/v1/messages"));
        for bad in [
            "/slot/0123/v1/messages".to_owned(),
            format!("/slot/{digits}"),
            format!("/slot/{digits}0/v1/messages"),
            format!("/slot/{}/v1/messages", digits.to_uppercase()),
            format!("/slot//{digits}/v1/messages"),
            format!("/v1/slot/{digits}/messages"),
            "/slot/ééééééééééééééééé/v1".to_owned(),
        ] {
            assert_eq!(split_slot(&bad), (None, bad.as_str()));
        }
    }

    #[test]
    fn tokens_are_found_in_the_keys_of_sdks() {
        let token = "r1|0|9.s";
        let found = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]);
            tokens(&headers).unwrap().map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(looks_like_token(token));
        for name in ["x-run-token", "x-api-key", "x-goog-api-key"] {
            assert_eq!(found(name, token), [token], "{name}");
        }
        assert_eq!(found("authorization", &format!("Bearer {token}")), [token]);
        for name in ["x-api-key", "x-goog-api-key"] {
            assert!(found(name, "sk-other").is_empty(), "{name}: a key of another shape does not count");
        }
        assert!(found("x-goog-key", token).is_empty(), "the control");
    }

    #[test]
    fn a_trace_is_what_the_recommendation_calls_one() {
        let of = |text: &str| {
            find_trace(&HeaderMap::from_iter([("traceparent".parse().unwrap(), text.parse().unwrap())]))
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(of(&format!("00-{id}-00f067aa0ba902b7-01")), Correlation::trace(id));
        let zero = "0".repeat(32);
        for bad in [
            format!("00-{zero}-00f067aa0ba902b7-01"),
            format!("01-{id}-00f067aa0ba902b7-01"),
            id.to_owned(),
            format!("00-{id}"),
            format!("00-{id}-0000000000000000-01"),
            format!("00-{id}-00f067aa0ba902b7-0x"),
            format!("00-{id}-00f067aa0ba902b7-01-01"),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
    }
}
