//! Checks content at any depth: messages, items, parts, what tools answered. It goes by names, not by shapes,
//! so that an unexpected nesting or type hides nothing. LiteLLM is lenient in what it takes for an image.
//!
//! Text is never looked into, nor are arguments of tools and JSON schemas: they reach only the model.

use std::borrow::Cow;

use platform_core::capability::Capability;

use super::{
    json::Value,
    kinds,
    rejection::Rejection,
    text::Text,
    walk::{Member, Walk},
};

/// Meaning of strings at a place in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Words for the model.
    Text,
    /// The inside of an image, file or other medium: no string may hold a URL.
    Medium,
    /// Position where a URL is expected: a string must be a `data:` URL.
    Locator,
    /// An item of the Responses API: as text, but a bare id means a stored item.
    Item,
}

/// Kind of a member of content.
enum Part {
    Kind,
    Role,
    Opaque,
    Stored(Capability),
    Tools,
    Tool,
    Walk(Place),
}

/// Facts about an object whose members are not all read yet.
#[derive(Default)]
struct Seen<'a> {
    kind: Option<Cow<'a, [u8]>>,
    role: bool,
    /// A string that points elsewhere, in a member of this name, at this byte.
    remote: Option<Member<'a>>,
    /// Bytes of images in it, unless its type says that they are text.
    image_bytes: u64,
}

impl<'a> Walk<'a, '_> {
    /// Reads a list of messages or items. Only the Responses API takes plain text instead.
    pub(super) fn items(&mut self, member: &Member<'a>, place: Place) -> Result<(), Rejection> {
        match self.cursor.value()? {
            Value::Null => Ok(()),
            Value::Text(_) if place == Place::Item => Ok(()),
            Value::Array => self.elements(|walk| match walk.cursor.value()? {
                Value::Object => walk.content_object(place, member.at),
                _ => Err(Rejection::wrong_type(&member.name, "a list of objects", walk.cursor.at())),
            }),
            _ => Err(Rejection::wrong_type(&member.name, "a list of objects", member.at)),
        }
    }

    /// Reads one prompt or a list of them, and counts them. A list of numbers is one.
    pub(super) fn prompts(&mut self, member: &Member<'a>) -> Result<u64, Rejection> {
        if self.cursor.next_token() != Some(b'[') {
            return self.prompt(member).map(|()| 1);
        }
        let (mut texts, mut tokens) = (0, 0);
        self.cursor.value()?;
        self.elements(|walk| {
            match walk.cursor.next_token() {
                Some(b'-' | b'0'..=b'9') => tokens = 1,
                _ => texts += 1,
            }
            walk.prompt(member)
        })?;
        Ok(texts + tokens)
    }

    /// Reads text or lists of text and numbers: nothing that has members.
    pub(super) fn prompt(&mut self, member: &Member<'a>) -> Result<(), Rejection> {
        match self.cursor.value()? {
            Value::Object => {
                Err(Rejection::wrong_type(&member.name, "text, tokens, or lists of them", member.at))
            }
            Value::Array => self.elements(|walk| walk.prompt(member)),
            _ => Ok(()),
        }
    }

    /// Reads the value of `member` as one that stands at `place`.
    pub(super) fn content(&mut self, place: Place, member: Member<'a>) -> Result<(), Rejection> {
        let mut seen = Seen::default();
        self.content_member(place, member, &mut seen)?;
        match seen.remote {
            Some(remote) => self.need(Capability::MediaUrls, &remote.name, remote.at),
            None => Ok(()),
        }
    }

    fn content_value(
        &mut self,
        place: Place,
        member: Member<'a>,
        seen: &mut Seen<'a>,
    ) -> Result<(), Rejection> {
        match self.cursor.value()? {
            Value::Text(text) => {
                let remote = match place {
                    Place::Text | Place::Item => false,
                    Place::Medium => text.has_url(),
                    Place::Locator => !text.is_data_url(),
                };
                if place == Place::Locator || is_medium(place) && holds_data(&member.name) {
                    self.medium(text, &member.name, seen);
                }
                if remote { self.remote(member, seen) } else { Ok(()) }
            }
            Value::Array => self.elements(|walk| {
                let element = Member { name: member.name.clone(), at: member.at };
                walk.content_value(place, element, seen)
            }),
            Value::Object => self.content_object(place, member.at),
            Value::Null | Value::True | Value::False | Value::Number(_) => Ok(()),
        }
    }

    fn content_object(&mut self, place: Place, at: usize) -> Result<(), Rejection> {
        let mut seen = Seen::default();
        self.members(|walk, member| walk.content_member(place, member, &mut seen))?;
        if place == Place::Item && seen.kind.is_none() && !seen.role {
            self.need(Capability::StoredResponses, b"an item without type and role", at)?;
        }
        if seen.kind.as_deref() == Some(b"base64") {
            self.media.image_bytes += seen.image_bytes;
        }
        match seen.remote {
            Some(remote) if !is_harmless(&remote.name, seen.kind.as_deref()) => {
                self.need(Capability::MediaUrls, &remote.name, remote.at)
            }
            _ => Ok(()),
        }
    }

    fn content_member(
        &mut self,
        place: Place,
        member: Member<'a>,
        seen: &mut Seen<'a>,
    ) -> Result<(), Rejection> {
        match part(place, &member.name) {
            Part::Kind => {
                seen.kind = self.kind(member.at)?;
                match seen.kind.as_deref().filter(|_| !is_medium(place)).and_then(kinds::content) {
                    Some(capability) => {
                        self.need(capability, seen.kind.as_deref().unwrap_or_default(), member.at)
                    }
                    None => Ok(()),
                }
            }
            Part::Role => {
                seen.role = matches!(self.cursor.value()?, Value::Text(_));
                if seen.role { Ok(()) } else { Err(Rejection::wrong_type(b"role", "a string", member.at)) }
            }
            Part::Opaque => self.skip(),
            Part::Stored(capability) => self.gated(capability, &member),
            Part::Tools => self.tools(&member),
            Part::Tool => self.tool(&member),
            Part::Walk(place) => self.content_value(place, member, seen),
        }
    }

    /// Counts a medium that `text` holds, in a member of this name.
    fn medium(&mut self, text: Text<'a>, name: &[u8], seen: &mut Seen<'a>) {
        let bytes = text.raw.len() as u64;
        self.media.parts += 1;
        self.media.bytes += bytes;
        if holds_data(name) && text.is_image() {
            // It may be a plain-text document that only begins like one.
            seen.image_bytes += bytes;
        } else if names_a_url(name) && text.is_image_url() {
            self.media.image_bytes += bytes;
        }
    }

    /// Notes a string that points elsewhere. The object's type, which may come later, can make one of them
    /// harmless, but not two.
    fn remote(&self, member: Member<'a>, seen: &mut Seen<'a>) -> Result<(), Rejection> {
        match &seen.remote {
            Some(other) if other.name != member.name => {
                self.need(Capability::MediaUrls, &member.name, member.at)
            }
            _ => {
                seen.remote = Some(member);
                Ok(())
            }
        }
    }
}

fn is_medium(place: Place) -> bool {
    matches!(place, Place::Medium | Place::Locator)
}

/// Strings that only look like something to fetch: a plain-text document's text, the origin of a search
/// result that is itself in the body.
fn is_harmless(name: &[u8], kind: Option<&[u8]>) -> bool {
    matches!(
        (name, kind),
        (b"data", Some(b"text"))
            | (b"source", Some(b"search_result"))
            | (b"url", Some(b"web_search_result" | b"web_fetch_result"))
    )
}

/// Returns the kind of a member with this name. The names are compared one after the other, so the frequent
/// ones are first.
fn part(place: Place, name: &[u8]) -> Part {
    match name {
        b"type" => Part::Kind,
        b"content" | b"text" => Part::Walk(Place::Text),
        b"arguments" if !is_medium(place) => Part::Opaque,
        b"role" if !is_medium(place) => Part::Role,
        b"function" | b"name" | b"tool_calls" | b"tool_call_id" | b"tool_use_id" if !is_medium(place) => {
            Part::Walk(Place::Text)
        }
        b"file_id" | b"file_ids" | b"fileId" | b"vector_store_id" | b"vector_store_ids" | b"container"
        | b"container_id" => Part::Stored(Capability::StoredFiles),
        b"previous_response_id" | b"comparison_response_id" => Part::Stored(Capability::StoredResponses),
        b"source" | b"image" | b"images" | b"file" | b"files" | b"audio" | b"video" | b"document"
        | b"media" | b"input_audio" | b"input_image" | b"input_file" | b"input_video" => {
            Part::Walk(Place::Locator)
        }
        _ if holds_data(name) => Part::Walk(Place::Medium),
        _ if names_a_url(name) => Part::Walk(Place::Locator),
        _ if is_medium(place) => inside_medium(name),
        _ => inside_text(name),
    }
}

/// The medium itself, in base64.
fn holds_data(name: &[u8]) -> bool {
    matches!(name, b"data" | b"file_data" | b"fileData" | b"base64" | b"bytes")
}

fn inside_medium(name: &[u8]) -> Part {
    match name {
        // `"audio": {"id": …}` is an earlier spoken answer.
        b"id" => Part::Stored(Capability::StoredFiles),
        b"title" | b"filename" => Part::Walk(Place::Text),
        _ => Part::Walk(Place::Medium),
    }
}

fn inside_text(name: &[u8]) -> Part {
    match name {
        b"tools" => Part::Tools,
        b"definition" => Part::Tool,
        // What a tool is called with (so are `arguments`), and its schema: the agent's own business.
        b"input" | b"parameters" | b"input_schema" | b"output_schema" => Part::Opaque,
        // Notes that have no effect and that hold URLs or types of their own.
        b"annotations"
        | b"citations"
        | b"logprobs"
        | b"cache_control"
        | b"prompt_cache_breakpoint"
        | b"caller"
        | b"reasoning_details"
        | b"transformations" => Part::Opaque,
        // What a granted kind of call did.
        b"action" | b"actions" | b"operation" | b"environment" => Part::Opaque,
        _ => Part::Walk(Place::Text),
    }
}

/// `url`, `image_url`, `fileUri`, `video_urls` …
fn names_a_url(name: &[u8]) -> bool {
    let singular = name.strip_suffix(b"s").unwrap_or(name);
    let tail = singular.len().checked_sub(3).map_or(singular, |start| &singular[start..]);
    tail.eq_ignore_ascii_case(b"url") || tail.eq_ignore_ascii_case(b"uri")
}
