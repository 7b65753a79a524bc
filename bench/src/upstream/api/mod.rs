//! Defines the upstream's APIs: their paths, and the shape that each gives to an answer.
//!
//! OpenAI and Anthropic publish the shapes. The outermost fields are in the published order, because a reader of
//! streams may depend on it.

mod chat;
mod completions;
mod embeddings;
mod event;
mod messages;
mod refusal;
mod responses;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use super::{answer::Answer, ask::Ask};

pub(super) use event::{Event, Kind};

/// An API that takes a model and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
    Responses,
    /// The same, in which a model shortens a conversation.
    Compact,
    Messages,
    Embeddings,
}

/// A serialized body. Its error never occurs: every shape is a plain structure with text keys.
pub(super) type Written = serde_json::Result<Bytes>;

impl Api {
    /// Returns the API of a path without `/v1`, which LiteLLM may or may not add.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/chat/completions" => Some(Self::Chat),
            "/completions" => Some(Self::Completions),
            "/responses" => Some(Self::Responses),
            "/responses/compact" => Some(Self::Compact),
            "/messages" => Some(Self::Messages),
            "/embeddings" => Some(Self::Embeddings),
            _ => None,
        }
    }

    /// Returns the body of an answer that is not streamed.
    pub(super) fn whole(self, ask: &Ask, answer: &Answer) -> Written {
        match self {
            Self::Chat => chat::whole(answer),
            Self::Completions => completions::whole(answer),
            Self::Responses => responses::whole(answer),
            Self::Compact => responses::compaction(answer),
            Self::Messages => messages::whole(answer),
            Self::Embeddings => embeddings::whole(ask, answer),
        }
    }

    /// Returns the events of a streamed answer.
    pub(super) fn events(self, ask: &Ask, answer: &Answer) -> serde_json::Result<Vec<Event>> {
        match self {
            Self::Chat => chat::events(ask, answer),
            Self::Completions => completions::events(ask, answer),
            Self::Responses => responses::events(answer),
            Self::Messages => messages::events(answer),
            Self::Compact | Self::Embeddings => Ok(Vec::new()),
        }
    }

    /// Returns the body of an error. `api` is `None` if the path was unknown.
    pub(super) fn refusal(api: Option<Self>, status: StatusCode, message: &str) -> Written {
        json(&refusal::object(api, status, message))
    }

    /// Returns the event that reports an error in the middle of a stream.
    pub(super) fn error_event(self, message: &str) -> serde_json::Result<Event> {
        let object = refusal::object(Some(self), StatusCode::INTERNAL_SERVER_ERROR, message);
        match self {
            Self::Chat | Self::Completions | Self::Compact | Self::Embeddings => Event::data(&object),
            Self::Messages => Event::named("error", &object),
            Self::Responses => Event::typed("error", object),
        }
    }
}

fn json(shape: &impl Serialize) -> Written {
    serde_json::to_vec(shape).map(Bytes::from)
}
