//! Parses the bodies and query strings of control requests.

use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use platform_core::json::{self, Bounds};
use serde::de::DeserializeOwned;

use super::answer::Error;

/// Largest body of a control request.
const MAX_BODY: usize = 64 << 10;

/// Returns the parameter `name` of the query, in milliseconds.
pub(super) fn milliseconds(uri: &Uri, name: &str) -> Result<Option<Duration>, Error> {
    Ok(number(uri, name)?.map(Duration::from_millis))
}

/// Returns the parameter `name` of the query, a number.
pub(super) fn number(uri: &Uri, name: &str) -> Result<Option<u64>, Error> {
    let parse =
        |text: &str| text.parse().map_err(|_error| Error::Invalid(format!("{name} is not a number: {text}")));
    query(uri, name).map(parse).transpose()
}

/// Returns the parameter `name` of the query. Control's values need no percent-decoding.
pub(super) fn query<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// Returns the names of all parameters of the query.
pub(super) fn names(uri: &Uri) -> impl Iterator<Item = &str> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
}

/// Parses the body of a request. `what` names its type in the error.
pub(super) async fn parse_body<T: DeserializeOwned>(body: Incoming, what: &str) -> Result<T, Error> {
    let body = read(body, MAX_BODY).await?;
    json::from_slice(&body, Bounds::of(MAX_BODY))
        .map_err(|error| Error::Invalid(format!("not {what}: {error}")))
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, Error> {
    let mut body = Limited::new(body, limit);
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(|error| Error::Invalid(error.to_string()))?.into_data() {
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole.into())
}
