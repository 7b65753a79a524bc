//! Reads paths, queries and bodies of requests, and names what is wrong in them.

use std::{error::Error as StdError, iter};

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
use platform_core::json::{self, Bounds, Raw, RawBuf, read_member};
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::{error::Error, observed_body::BodyError};

/// Deepest nesting of a body. The hash of an order takes time in proportion to it.
const MAX_DEPTH: usize = 32;

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
pub(crate) async fn read_json<T: DeserializeOwned>(request: Request, most: usize) -> Result<T, Error> {
    parse(&read_json_bytes(request, most).await?, most)
}

/// Reads a JSON body of at most `most` bytes, if there is one.
pub(crate) async fn read_optional_json<T: DeserializeOwned>(
    request: Request,
    most: usize,
) -> Result<Option<T>, Error> {
    let has_type = is_json(request.headers());
    let bytes = read_bytes(request, most).await?;
    match (bytes.is_empty(), has_type) {
        (true, _) => Ok(None),
        (false, true) => parse(&bytes, most).map(Some),
        (false, false) => Err(Error::MediaType),
    }
}

/// Reads a body of at most `most` bytes that is JSON according to its content type.
pub(crate) async fn read_json_bytes(request: Request, most: usize) -> Result<Bytes, Error> {
    if !is_json(request.headers()) {
        return Err(Error::MediaType);
    }
    read_bytes(request, most).await
}

/// Parses a body of at most `most` bytes.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b [u8], most: usize) -> Result<T, Error> {
    json::from_slice(body, Bounds::of(most).with_depth(MAX_DEPTH)).map_err(|error| invalid_body(&error))
}

/// Part of a message, of which the type decides what else it has.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct MessagePart(RawBuf);

impl PartialSchema for MessagePart {
    fn schema() -> RefOr<Schema> {
        serde_json::Value::schema()
    }
}

impl ToSchema for MessagePart {}

impl MessagePart {
    /// Returns its text.
    ///
    /// # Errors
    /// If the part is not text.
    pub(crate) fn text(&self) -> Result<String, OtherPart> {
        #[derive(Default, Deserialize)]
        struct PartFields<'p> {
            #[serde(borrow)]
            r#type: Option<Raw<'p>>,
            #[serde(borrow)]
            text: Option<Raw<'p>>,
        }
        let PartFields { r#type: kind, text } = self.0.read().unwrap_or_default();
        match (read_member::<String>(kind), read_member::<String>(text)) {
            (Some(kind), Some(text)) if kind == "text" => Ok(text),
            (kind, _) => Err(OtherPart { kind: kind.unwrap_or_default() }),
        }
    }
}

/// Part of a message that is not text.
#[derive(Debug)]
pub(crate) struct OtherPart {
    /// Type of the part, as the client names it.
    pub(crate) kind: String,
}

/// Reads a body of at most `most` bytes.
pub(crate) async fn read_bytes(request: Request, most: usize) -> Result<Bytes, Error> {
    if declared_length(request.headers()).is_some_and(|length| length > most as u64) {
        return Err(Error::TooLarge { most });
    }
    to_bytes(request.into_body(), most).await.map_err(|error| {
        let causes =
            || iter::successors(error.source(), |error: &&(dyn StdError + 'static)| (*error).source());
        let is_slow =
            |cause: &(dyn StdError + 'static)| matches!(cause.downcast_ref(), Some(BodyError::Slow));
        if causes().any(|cause| cause.is::<LengthLimitError>()) {
            Error::TooLarge { most }
        } else if causes().any(is_slow) {
            Error::SlowBody
        } else {
            Error::Invalid("the body breaks off".to_owned())
        }
    })
}

/// Returns the error for a body that is not the expected JSON.
pub(crate) fn invalid_body(error: &json::Error) -> Error {
    Error::Invalid(format!("the body: {error}"))
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
