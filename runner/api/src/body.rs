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
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

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

/// Object of a body, which no array replaces: serde also reads a struct from an array of its fields.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        T::deserialize(fields).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Deserializes a field whose value is an object.
pub(crate) fn object<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Deserializes a field whose value is an object or null.
pub(crate) fn optional_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    Option::<Object<T>>::deserialize(deserializer).map(|value| value.map(|Object(value)| value))
}

/// Deserializes a field whose value is a list of objects.
pub(crate) fn objects<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let values = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|Object(value)| value).collect())
}

/// Reads a JSON body of at most `most` bytes: an object.
pub(crate) async fn read_json(request: Request, most: usize) -> Result<Value, Error> {
    if !is_json(request.headers()) {
        return Err(Error::MediaType);
    }
    let bytes = read_bytes(request, most).await?;
    read_fields(&bytes)
}

/// Reads a JSON body of at most `most` bytes, if there is one: an object.
pub(crate) async fn read_optional_json(request: Request, most: usize) -> Result<Option<Value>, Error> {
    let has_type = is_json(request.headers());
    let bytes = read_bytes(request, most).await?;
    match (bytes.is_empty(), has_type) {
        (true, _) => Ok(None),
        (false, true) => read_fields(&bytes).map(Some),
        (false, false) => Err(Error::MediaType),
    }
}

/// Reads an object.
pub(crate) fn read_fields(bytes: &[u8]) -> Result<Value, Error> {
    let fields = serde_json::from_slice::<Map<String, Value>>(bytes);
    fields.map(Value::Object).map_err(|error| invalid_body(&error))
}

/// Reads a body of at most `most` bytes.
pub(crate) async fn read_bytes(request: Request, most: usize) -> Result<Bytes, Error> {
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
