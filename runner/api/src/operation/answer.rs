//! Describes an answer of a route.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{Reference, Schemas};

/// Answer of a route that succeeds.
#[derive(Clone)]
pub(crate) struct AnswerSpec {
    pub(crate) status: StatusCode,
    description: &'static str,
    content: Map<String, Value>,
    headers: Map<String, Value>,
    pub(crate) schemas: Schemas,
}

impl AnswerSpec {
    /// Describes an answer without a body.
    pub(crate) fn empty(status: StatusCode, description: &'static str) -> Self {
        let schemas = Schemas::new();
        Self { status, description, content: Map::new(), headers: Map::new(), schemas }
    }

    /// Describes a JSON document of the type `T`.
    pub(crate) fn json<T: ToSchema>(status: StatusCode, description: &'static str) -> Self {
        let mut answer = Self::empty(status, description);
        let schema = answer.schemas.reference::<T>();
        answer.with_content("application/json", json!({ "schema": schema }))
    }

    /// Describes a JSON object with fields that another specification defines.
    pub(crate) fn object(description: &'static str) -> Self {
        let content = json!({ "schema": { "type": "object" } });
        Self::empty(StatusCode::OK, description).with_content("application/json", content)
    }

    /// Describes a text of this media type.
    pub(crate) fn text(media_type: &str, description: &'static str) -> Self {
        Self::empty(StatusCode::OK, description).or_text(media_type)
    }

    /// Describes bytes of any form.
    pub(crate) fn bytes(description: &'static str) -> Self {
        Self::empty(StatusCode::OK, description).with_content("application/octet-stream", json!({}))
    }

    /// Describes a stream of items of the type `T`, in each of these media types.
    pub(crate) fn stream<T: ToSchema>(media_types: &[&str], description: &'static str) -> Self {
        Self::empty(StatusCode::OK, description).or_stream::<T>(media_types)
    }

    /// Adds a header that the answer has.
    pub(crate) fn with_header(mut self, name: &str, description: &str) -> Self {
        let header = json!({ "description": description, "required": true, "schema": { "type": "string" } });
        self.headers.insert(name.to_owned(), header);
        self
    }

    pub(super) fn with_content(mut self, media_type: &str, content: Value) -> Self {
        self.content.insert(media_type.to_owned(), content);
        self
    }

    /// Returns the answer as the document has it.
    pub(crate) fn to_json(&self) -> Value {
        let mut answer = json!({ "description": self.description });
        if !self.content.is_empty() {
            answer["content"] = self.content.clone().into();
        }
        if !self.headers.is_empty() {
            answer["headers"] = self.headers.clone().into();
        }
        answer
    }
}
