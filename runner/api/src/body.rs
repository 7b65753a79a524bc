//! Reads paths, queries and bodies of requests, and names what is wrong in them.

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequestParts, Path, Query, Request},
    http::{
        HeaderMap, Uri,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
        request::Parts,
    },
};
use http_body_util::LengthLimitError;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::Error;

/// Id in the path of a request. A text that can be no id names no object.
#[derive(Debug)]
pub(crate) struct ObjectId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for ObjectId {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(id)| Self(id)).map_err(|_invalid| Error::Route)
    }
}

/// Reads a JSON body of at most `most` bytes.
pub(crate) async fn read_json(request: Request, most: usize) -> Result<Value, Error> {
    if !is_json(request.headers()) {
        return Err(Error::MediaType);
    }
    let bytes = read_bytes(request, most).await?;
    serde_json::from_slice(&bytes).map_err(|error| invalid_body(&error))
}

/// Reads a JSON body of at most `most` bytes, if there is one.
pub(crate) async fn read_optional_json(request: Request, most: usize) -> Result<Option<Value>, Error> {
    let has_type = is_json(request.headers());
    let bytes = read_bytes(request, most).await?;
    match (bytes.is_empty(), has_type) {
        (true, _) => Ok(None),
        (false, true) => serde_json::from_slice(&bytes).map(Some).map_err(|error| invalid_body(&error)),
        (false, false) => Err(Error::MediaType),
    }
}

async fn read_bytes(request: Request, most: usize) -> Result<Bytes, Error> {
    if declared_length(request.headers()).is_some_and(|length| length > most as u64) {
        return Err(Error::TooLarge { most });
    }
    to_bytes(request.into_body(), most).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<LengthLimitError>()) {
            Error::TooLarge { most }
        } else {
            Error::Invalid("the body breaks off".to_owned())
        }
    })
}

/// Returns the error for a body that is not the expected JSON.
pub(crate) fn invalid_body(error: &serde_json::Error) -> Error {
    Error::Invalid(format!("the body: {error}"))
}

/// Refuses lists in place of the body, its members `objects` and its messages. Serde would read a list as the fields of
/// an object, in their order.
pub(crate) fn refuse_lists(body: &Value, objects: &[&str]) -> Result<(), Error> {
    let list = if body.is_array() {
        Some("the body".to_owned())
    } else if let Some(name) = objects.iter().find(|name| body[**name].is_array()) {
        Some(format!("`{name}`"))
    } else {
        let messages = body["messages"].as_array();
        let has_list = messages.is_some_and(|messages| messages.iter().any(Value::is_array));
        has_list.then(|| "an element of `messages`".to_owned())
    };
    list.map_or(Ok(()), |name| Err(Error::Invalid(format!("{name} is a list, and should be an object"))))
}

/// Reads the query of `uri`.
pub(crate) fn read_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Error> {
    let read = Query::try_from_uri(uri).map(|Query(query)| query);
    read.map_err(|rejection| Error::Invalid(rejection.body_text()))
}

/// Refuses every parameter in the query of `uri`.
pub(crate) fn refuse_query(uri: &Uri) -> Result<(), Error> {
    /// Query without a parameter.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoQuery {}
    read_query::<NoQuery>(uri).map(drop)
}

/// Returns whether the body is JSON, according to its content type.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
