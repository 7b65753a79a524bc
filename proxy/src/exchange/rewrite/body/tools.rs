//! Checks tools. The agent runs functions and custom tools itself; everything else runs elsewhere and needs a
//! grant. A member that is not a function's is enough to make another tool of it. LiteLLM drops the `type` on
//! the way to Gemini and goes by `googleSearch` or `urlContext` beside it.
//!
//! A `namespace` groups tools and reaches as far as they do, and the agent itself runs a `tool_search` with the
//! `execution` `client`. Codex sends both. LiteLLM 1.106 offers a model the name of a namespace with those of its
//! tools, so a list of allowed tools has to name both.
//!
//! A run may be granted some tools only, by name; one that runs elsewhere is named by its type. A tool that matches
//! none of them is refused, also with the capability that it needs. This restricts only the tools that a model is
//! offered. An agent that describes a tool in its text, or acts without a model's request, is not restricted here.

use std::borrow::Cow;

use platform_core::capability::Capability;

use super::{
    json::JsonValue,
    kinds,
    members::StringMeaning,
    ungranted::HostedTool,
    walk::{Member, Walk},
};
use crate::policy::{Label, Reason, Rejection};

/// Prefix of names under which LiteLLM runs its own tools.
const RESERVED: &[u8] = b"litellm_";

#[derive(Default)]
struct ToolFacts<'a> {
    kind: Option<Cow<'a, [u8]>>,
    /// A member that is not a function's; if possible, one that is not granted as a tool.
    foreign: Option<Member<'a>>,
    /// A member by which LiteLLM makes it one of Gemini's own tools, whatever its type.
    gemini: Option<Member<'a>>,
    /// Set if it has a name, which was then checked.
    named: bool,
    name: Option<Cow<'a, [u8]>>,
    /// Tools below it, which only a namespace has.
    below: Option<Member<'a>>,
    /// Member that says that the agent runs it, which only a search for tools has.
    own: Option<Member<'a>>,
}

/// A tool, or the part of one that describes a function, which was read and checked.
struct CheckedTool<'a> {
    /// Set if the tool can be told by its name or type.
    is_identified: bool,
    /// Set if its type needs a capability that the run was not granted.
    ungranted: Option<HostedTool<'a>>,
}

impl CheckedTool<'_> {
    const IDENTIFIED: Self = Self { is_identified: true, ungranted: None };
}

impl<'a> Walk<'a, '_> {
    /// Reads a list of tools.
    pub(super) fn tools(&mut self, member: &Member<'a>) -> Result<(), Rejection> {
        match self.cursor.value()? {
            JsonValue::Null => Ok(()),
            JsonValue::Array => self.elements(|walk| {
                walk.offers_tools = true;
                walk.tool(member).map(drop)
            }),
            _ => Err(Rejection::wrong_type(&member.name, "a list of tools", member.at)),
        }
    }

    /// Reads one tool. Returns it if its type needs a capability that the run was not granted.
    pub(super) fn tool(&mut self, member: &Member<'a>) -> Result<Option<HostedTool<'a>>, Rejection> {
        let tool = self.tool_part(member)?;
        if !tool.is_identified && self.policy.tools.is_some() {
            self.refuse(Rejection::new(Reason::ToolUnnamed, member.at))?;
        }
        Ok(tool.ungranted)
    }

    /// Reads one tool, or the part of one that describes the function. Null is not a tool and needs no name.
    fn tool_part(&mut self, member: &Member<'a>) -> Result<CheckedTool<'a>, Rejection> {
        match self.cursor.value()? {
            JsonValue::Null => Ok(CheckedTool::IDENTIFIED),
            JsonValue::Object => self.tool_object(member.at),
            _ => Err(Rejection::wrong_type(&member.name, "made of objects", member.at)),
        }
    }

    fn tool_object(&mut self, at: usize) -> Result<CheckedTool<'a>, Rejection> {
        let mut facts = ToolFacts::default();
        self.members(|walk, member| walk.tool_member(member, &mut facts))?;
        let kind = facts.kind.take().unwrap_or(Cow::Borrowed(b"function"));
        match (self.tool_capability(&kind, &mut facts), facts.foreign) {
            (Some(capability), _) => {
                self.need(capability, &kind, at)?;
                if let Some(member) = facts.gemini {
                    self.need(Capability::ServerTools, &member.name, member.at)?;
                }
                if !self.may_offer(&kind) && !self.may_offer(undated(&kind)) {
                    self.refuse(Rejection::new(Reason::ToolNotGranted(Label::of(&kind)), at))?;
                }
                let is_granted = self.policy.granted.has(capability);
                let ungranted = (!is_granted).then_some(HostedTool { kind, name: facts.name });
                Ok(CheckedTool { ungranted, ..CheckedTool::IDENTIFIED })
            }
            (None, Some(foreign)) => {
                self.need(Capability::ServerTools, &foreign.name, foreign.at)?;
                self.check_offered(&foreign.name, foreign.at)?;
                Ok(CheckedTool::IDENTIFIED)
            }
            (None, None) if *kind == *kinds::TOOL_SEARCH => {
                self.check_offered(&kind, at)?;
                Ok(CheckedTool::IDENTIFIED)
            }
            (None, None) => Ok(CheckedTool { is_identified: facts.named, ungranted: None }),
        }
    }

    /// Returns the capability that a tool of this `kind` needs, if any. Members that only another kind has are foreign.
    fn tool_capability(&self, kind: &[u8], facts: &mut ToolFacts<'a>) -> Option<Capability> {
        let below = facts.below.take();
        let own = facts.own.take();
        let runs_here = kind == kinds::NAMESPACE || kind == kinds::TOOL_SEARCH && own.is_some();
        let below = below.filter(|_| kind != kinds::NAMESPACE);
        let own = own.filter(|_| kind != kinds::TOOL_SEARCH);
        [below, own].into_iter().flatten().for_each(|member| self.note_foreign(member, facts));
        if runs_here { None } else { kinds::tool(kind) }
    }

    fn tool_member(&mut self, member: Member<'a>, facts: &mut ToolFacts<'a>) -> Result<(), Rejection> {
        match &*member.name {
            b"type" => facts.kind = self.kind(member.at)?,
            b"name" => {
                facts.name = self.tool_name(member.at)?;
                facts.named |= facts.name.is_some();
            }
            b"function" | b"custom" => {
                let is_there = self.cursor.next_token() != Some(b'n');
                facts.named |= self.tool_part(&member)?.is_identified && is_there;
            }
            b"description"
            | b"parameters"
            | b"input_schema"
            | b"output_schema"
            | b"strict"
            | b"async"
            | b"format"
            | b"cache_control"
            | b"defer_loading"
            | b"allowed_callers"
            | b"input_examples"
            | b"eager_input_streaming"
            | b"annotations" => self.skip()?,
            b"tools" => {
                self.tools(&member)?;
                facts.below = Some(member);
            }
            b"execution" if self.cursor.next_is(kinds::CLIENT) => {
                self.skip()?;
                facts.own = Some(member);
            }
            // A server's address and keys mean something only beside a type that needs its own grant.
            b"server_url" | b"url" | b"headers" | b"filters" | b"user_location" => {
                self.skip()?;
                self.note_foreign(member, facts);
            }
            // A container described is new; one named by its id may belong to another client.
            b"container" if self.cursor.next_token() == Some(b'{') => {
                self.content(StringMeaning::Medium, Member { name: Cow::Borrowed(b"new"), at: member.at })?;
                self.note_foreign(member, facts);
            }
            _ => {
                let content = Member { name: member.name.clone(), at: member.at };
                if kinds::is_gemini_tool(&member.name) {
                    facts.gemini = Some(Member { name: member.name.clone(), at: member.at });
                }
                self.content(StringMeaning::Medium, content)?;
                self.note_foreign(member, facts);
            }
        }
        Ok(())
    }

    fn note_foreign(&self, member: Member<'a>, facts: &mut ToolFacts<'a>) {
        if facts.foreign.as_ref().is_none_or(|known| self.may_offer(&known.name)) {
            facts.foreign = Some(member);
        }
    }

    /// Reads a name, if there is one.
    fn tool_name(&mut self, at: usize) -> Result<Option<Cow<'a, [u8]>>, Rejection> {
        match self.cursor.value()? {
            JsonValue::Text(name) => {
                let name = name.decoded();
                self.check_offered(&name, at)?;
                Ok(Some(name))
            }
            JsonValue::Null => Ok(None),
            _ => Err(Rejection::wrong_type(b"name", "a string", at)),
        }
    }

    /// Refuses a tool of this name unless the run may offer it.
    fn check_offered(&mut self, name: &[u8], at: usize) -> Result<(), Rejection> {
        if name.starts_with(RESERVED) {
            self.need(Capability::ServerTools, name, at)?;
        }
        if self.may_offer(name) {
            Ok(())
        } else {
            self.refuse(Rejection::new(Reason::ToolNotGranted(Label::of(name)), at))
        }
    }

    fn may_offer(&self, name: &[u8]) -> bool {
        let Some(tools) = &self.policy.tools else { return true };
        tools.iter().any(|tool| tool.as_bytes() == name)
    }

    /// Reads which tool to use, and adds types and names of tools to `named`: a word, or an object that names one.
    pub(super) fn tool_choice(
        &mut self,
        member: &Member<'a>,
        named: &mut Vec<Cow<'a, [u8]>>,
    ) -> Result<(), Rejection> {
        match self.cursor.value()? {
            JsonValue::Text(_) | JsonValue::Null => Ok(()),
            JsonValue::Object => self.members(|walk, member| match &*member.name {
                b"type" => {
                    let Some(kind) = walk.kind(member.at)? else { return Ok(()) };
                    if let Some(capability) = kinds::tool_choice(&kind) {
                        walk.need(capability, &kind, member.at)?;
                    }
                    named.push(kind);
                    Ok(())
                }
                b"name" => {
                    named.extend(walk.text()?);
                    Ok(())
                }
                b"function" | b"custom" if walk.cursor.next_token() == Some(b'{') => {
                    walk.cursor.value()?;
                    walk.members(|walk, member| {
                        let text = walk.text()?;
                        named.extend(text.filter(|_| *member.name == *b"name"));
                        Ok(())
                    })
                }
                b"tools" => walk.chosen_tools(&member, named),
                b"allowed_tools" => walk.tool_choice(&member, named),
                _ => walk.skip(),
            }),
            _ => Err(Rejection::wrong_type(&member.name, "a word or an object", member.at)),
        }
    }

    /// Reads the tools of a choice among some.
    fn chosen_tools(&mut self, member: &Member<'a>, named: &mut Vec<Cow<'a, [u8]>>) -> Result<(), Rejection> {
        if self.cursor.next_token() != Some(b'[') {
            return self.tools(member);
        }
        self.cursor.value()?;
        self.elements(|walk| {
            named.extend(walk.tool(member)?.map(|tool| tool.kind));
            Ok(())
        })
    }
}

/// Returns a type without its date. Anthropic's types are a name and a date: `web_search_20250305`.
fn undated(kind: &[u8]) -> &[u8] {
    match kind.split_last_chunk::<9>() {
        Some((name, [b'_', date @ ..])) if date.iter().all(u8::is_ascii_digit) => name,
        _ => kind,
    }
}
