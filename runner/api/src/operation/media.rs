//! Describes further media types of an answer.

use serde_json::json;
use utoipa::ToSchema;

use super::{AnswerSpec, Reference};

impl AnswerSpec {
    /// Adds a text of this media type, for clients that accept it.
    pub(crate) fn or_text(self, media_type: &str) -> Self {
        self.with_content(media_type, json!({ "schema": { "type": "string" } }))
    }

    /// Adds a stream of items of the type `T`, in each of these media types.
    pub(crate) fn or_stream<T: ToSchema>(mut self, media_types: &[&str]) -> Self {
        // OpenAPI 3.1 has no schema for the items of a stream. 3.2 calls it `itemSchema`.
        let item = self.schemas.reference::<T>();
        for media_type in media_types {
            let content = json!({ "schema": { "type": "string" }, "x-item-schema": item });
            self = self.with_content(media_type, content);
        }
        self
    }
}
