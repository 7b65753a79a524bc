//! Checks content at any depth: messages, items, parts, results of tools. Names decide, not shapes, so that an
//! unexpected nesting or type hides nothing. LiteLLM is lenient in what it accepts as an image.
//!
//! Text is never inspected, nor are arguments of tools and JSON schemas: they reach only the model.

use std::borrow::Cow;

use platform_core::capability::Capability;

use super::{
    json::JsonValue,
    kinds,
    members::{MemberRule, StringMeaning, holds_data, is_medium, member_rule, names_a_url},
    text::JsonText,
    walk::{Member, Walk},
};
use crate::policy::{BARE_ID, Rejection};

/// Facts about an object before all its members are read.
#[derive(Default)]
struct ObjectFacts<'a> {
    kind: Option<Cow<'a, [u8]>>,
    has_role: bool,
    /// Set if the agent itself ran what it describes.
    is_own: bool,
    /// A string that points elsewhere, in a member of this name, at this byte.
    remote: Option<Member<'a>>,
    /// Bytes of images in it, unless its type says that they are text.
    image_bytes: u64,
}

impl<'a> Walk<'a, '_> {
    /// Reads a list of messages or items. Only the Responses API takes plain text instead.
    pub(super) fn items(&mut self, member: &Member<'a>, meaning: StringMeaning) -> Result<(), Rejection> {
        match self.cursor.value()? {
            JsonValue::Null => Ok(()),
            JsonValue::Text(_) if meaning == StringMeaning::Item => Ok(()),
            JsonValue::Array => self.elements(|walk| match walk.cursor.value()? {
                JsonValue::Object => walk.content_object(meaning, member.at),
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
        let mut texts = 0;
        let mut tokens = 0;
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
            JsonValue::Object => {
                Err(Rejection::wrong_type(&member.name, "text, tokens, or lists of them", member.at))
            }
            JsonValue::Array => self.elements(|walk| walk.prompt(member)),
            _ => Ok(()),
        }
    }

    /// Reads the value of `member`; its strings have this `meaning`.
    pub(super) fn content(&mut self, meaning: StringMeaning, member: Member<'a>) -> Result<(), Rejection> {
        let mut facts = ObjectFacts::default();
        self.content_member(meaning, member, &mut facts)?;
        match facts.remote {
            Some(remote) => self.need(Capability::MediaUrls, &remote.name, remote.at),
            None => Ok(()),
        }
    }

    fn content_value(
        &mut self,
        meaning: StringMeaning,
        member: Member<'a>,
        facts: &mut ObjectFacts<'a>,
    ) -> Result<(), Rejection> {
        match self.cursor.value()? {
            JsonValue::Text(text) => {
                let remote = match meaning {
                    StringMeaning::Text | StringMeaning::Item => false,
                    StringMeaning::Medium => text.has_url(),
                    StringMeaning::Locator => !text.is_data_url(),
                };
                if meaning == StringMeaning::Locator || is_medium(meaning) && holds_data(&member.name) {
                    self.medium(text, &member.name, facts);
                }
                if remote { self.remote(member, facts) } else { Ok(()) }
            }
            JsonValue::Array => self.elements(|walk| {
                let element = Member { name: member.name.clone(), at: member.at };
                walk.content_value(meaning, element, facts)
            }),
            JsonValue::Object => self.content_object(meaning, member.at),
            JsonValue::Null | JsonValue::True | JsonValue::False | JsonValue::Number(_) => Ok(()),
        }
    }

    fn content_object(&mut self, meaning: StringMeaning, at: usize) -> Result<(), Rejection> {
        let mut facts = ObjectFacts::default();
        self.members(|walk, member| walk.content_member(meaning, member, &mut facts))?;
        if meaning == StringMeaning::Item && facts.kind.is_none() && !facts.has_role {
            self.need(Capability::StoredResponses, BARE_ID.as_bytes(), at)?;
        }
        // The place of execution may come behind the type.
        if let Some(kind) = facts.kind.as_deref().filter(|kind| may_be_own(meaning, kind))
            && !facts.is_own
        {
            self.need(Capability::ServerTools, kind, at)?;
        }
        if facts.kind.as_deref() == Some(b"base64") {
            self.media.image_bytes += facts.image_bytes;
        }
        match facts.remote {
            Some(remote) if !is_harmless(&remote.name, facts.kind.as_deref()) => {
                self.need(Capability::MediaUrls, &remote.name, remote.at)
            }
            _ => Ok(()),
        }
    }

    fn content_member(
        &mut self,
        meaning: StringMeaning,
        member: Member<'a>,
        facts: &mut ObjectFacts<'a>,
    ) -> Result<(), Rejection> {
        match member_rule(meaning, &member.name) {
            MemberRule::Kind => {
                facts.kind = self.kind(member.at)?;
                let kind = facts.kind.as_deref().unwrap_or_default();
                match facts.kind.as_deref().and_then(|kind| kind_capability(meaning, kind)) {
                    Some(capability) => self.need(capability, kind, member.at),
                    None => Ok(()),
                }
            }
            MemberRule::Role => {
                facts.has_role = matches!(self.cursor.value()?, JsonValue::Text(_));
                if facts.has_role {
                    Ok(())
                } else {
                    Err(Rejection::wrong_type(b"role", "a string", member.at))
                }
            }
            MemberRule::Opaque => self.skip(),
            MemberRule::Stored(capability) => self.gated(capability, &member),
            MemberRule::Tools => self.tools(&member),
            MemberRule::Tool => self.tool(&member).map(drop),
            MemberRule::Execution => {
                facts.is_own = self.cursor.next_is(kinds::CLIENT);
                self.content_value(StringMeaning::Text, member, facts)
            }
            MemberRule::Walk(meaning) => self.content_value(meaning, member, facts),
        }
    }

    /// Counts a medium that `text` contains, in a member of this name.
    fn medium(&mut self, text: JsonText<'a>, name: &[u8], facts: &mut ObjectFacts<'a>) {
        let bytes = text.raw.len() as u64;
        self.media.parts += 1;
        self.media.bytes += bytes;
        if holds_data(name) && text.is_image() {
            // It may be a plain-text document that only begins like one.
            facts.image_bytes += bytes;
        } else if names_a_url(name) && text.is_image_url() {
            self.media.image_bytes += bytes;
        }
    }

    /// Notes a string that points elsewhere. The object's type, which may come later, can make one of them
    /// harmless, but not two.
    fn remote(&mut self, member: Member<'a>, facts: &mut ObjectFacts<'a>) -> Result<(), Rejection> {
        match &facts.remote {
            Some(other) if other.name != member.name => {
                self.need(Capability::MediaUrls, &member.name, member.at)
            }
            _ => {
                facts.remote = Some(member);
                Ok(())
            }
        }
    }
}

/// Returns the capability that an object of this `kind` needs at once, if any.
fn kind_capability(meaning: StringMeaning, kind: &[u8]) -> Option<Capability> {
    match meaning {
        StringMeaning::Medium | StringMeaning::Locator => None,
        StringMeaning::Item if kinds::is_tool_search(kind) => None,
        StringMeaning::Item => kinds::item(kind),
        StringMeaning::Text => kinds::content(kind),
    }
}

/// Returns whether the place of its execution decides what an object of this `kind` needs.
fn may_be_own(meaning: StringMeaning, kind: &[u8]) -> bool {
    meaning == StringMeaning::Item && kinds::is_tool_search(kind)
}

/// Returns whether a string only looks like something to fetch: a plain-text document's text, the origin of a search
/// result that is itself in the body.
fn is_harmless(name: &[u8], kind: Option<&[u8]>) -> bool {
    matches!(
        (name, kind),
        (b"data", Some(b"text"))
            | (b"source", Some(b"search_result"))
            | (b"url", Some(b"web_search_result" | b"web_fetch_result"))
    )
}
