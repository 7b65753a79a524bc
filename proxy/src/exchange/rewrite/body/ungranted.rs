//! Leaves hosted tools out of a body that the run was not granted, where its grant says so. Clients like Codex and Cline
//! offer some in every call.
//!
//! A tool is left out whole, and only from the top-level list, by the capability that its `type` needs. What names it
//! in `tool_choice` and `include` goes with it. A body is changed only when all of it was read, because these fields
//! come in any succession. Everything else that is not granted is refused.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use platform_core::{
    grant::UngrantedTools,
    route::{Dialect, Route},
};

use super::{
    edits::Edits,
    walk::{Member, Walk},
};
use crate::policy::{Label, Rejection};

/// A top-level member, from its name to the end of its value.
#[derive(Debug)]
pub(super) struct TopMember<'a> {
    pub(super) name: Cow<'a, [u8]>,
    pub(super) at: Range<usize>,
    pub(super) is_removed: bool,
}

/// A tool that runs elsewhere, by a capability that the run was not granted.
#[derive(Debug)]
pub(super) struct HostedTool<'a> {
    pub(super) kind: Cow<'a, [u8]>,
    pub(super) name: Option<Cow<'a, [u8]>>,
}

/// Parts of a list to remove, each with one comma, so that the rest is a list.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    ranges: Vec<Range<usize>>,
    /// Start of the elements that are removed before any that stays.
    leading: Option<usize>,
    /// End of the previous element, if one stays.
    end: Option<usize>,
}

/// The fields of a body that are about tools, if the run's hosted tools are left out.
#[derive(Debug, Default)]
pub(super) struct ToolFields<'a> {
    cuts: Cuts,
    left_out: Vec<HostedTool<'a>>,
    choice: Option<Choice<'a>>,
    include: Vec<Included<'a>>,
    forgotten: Option<Range<usize>>,
}

/// The value of `tool_choice`, and the types and names of tools in it.
#[derive(Debug)]
struct Choice<'a> {
    at: Range<usize>,
    named: Vec<Cow<'a, [u8]>>,
}

/// An element of `include`: a path in the answer, or something else.
#[derive(Debug)]
struct Included<'a> {
    at: Range<usize>,
    path: Option<Cow<'a, [u8]>>,
}

impl Cuts {
    /// Notes that the next element stays.
    pub(super) fn keep(&mut self, at: &Range<usize>) {
        if let Some(start) = self.leading.take() {
            self.ranges.push(start..at.start);
        }
        self.end = Some(at.end);
    }

    /// Notes that the next element goes: with the comma before it if another one stays before it, else with the one
    /// behind.
    pub(super) fn cut(&mut self, at: &Range<usize>) {
        match &mut self.end {
            Some(end) => {
                self.ranges.push(*end..at.end);
                *end = at.end;
            }
            None => {
                self.leading.get_or_insert(at.start);
            }
        }
    }

    /// Returns whether no element stays.
    const fn leaves_nothing(&self) -> bool {
        self.end.is_none()
    }

    /// Removes the elements from the body. At least one must stay.
    pub(super) fn apply(self, edits: &mut Edits) {
        self.ranges.into_iter().for_each(|range| edits.remove(range));
    }
}

impl<'a> ToolFields<'a> {
    /// Reads the list of tools. Faults of tools that are left out do not count.
    pub(super) fn read_tools(
        &mut self,
        walk: &mut Walk<'a, '_>,
        member: &Member<'a>,
    ) -> Result<(), Rejection> {
        if walk.policy.ungranted_tools == UngrantedTools::Refuse || walk.cursor.next_token() != Some(b'[') {
            return walk.tools(member);
        }
        walk.cursor.value()?;
        walk.elements(|walk| {
            let is_null = walk.cursor.next_token() == Some(b'n');
            let start = walk.cursor.at();
            let checkpoint = walk.findings.checkpoint();
            let media = walk.media;
            let offers_tools = walk.offers_tools;
            let hosted = walk.tool(member)?;
            let at = start..walk.cursor.at();
            match hosted {
                Some(hosted) => {
                    walk.findings.return_to(checkpoint);
                    walk.media = media;
                    walk.offers_tools = offers_tools;
                    self.left_out.push(hosted);
                    self.cuts.cut(&at);
                }
                // No tool: it would keep the list from being empty.
                None if is_null => self.cuts.cut(&at),
                None => self.cuts.keep(&at),
            }
            Ok(())
        })
    }

    /// Reads which tool to use.
    pub(super) fn read_choice(
        &mut self,
        walk: &mut Walk<'a, '_>,
        member: &Member<'a>,
    ) -> Result<(), Rejection> {
        walk.cursor.next_token();
        let start = walk.cursor.at();
        let mut named = Vec::new();
        walk.tool_choice(member, &mut named)?;
        self.choice = Some(Choice { at: start..walk.cursor.at(), named });
        Ok(())
    }

    /// Reads which parts the answer is to have.
    pub(super) fn read_include(&mut self, walk: &mut Walk<'a, '_>) -> Result<(), Rejection> {
        if walk.policy.ungranted_tools == UngrantedTools::Refuse || walk.cursor.next_token() != Some(b'[') {
            return walk.skip();
        }
        walk.cursor.value()?;
        walk.elements(|walk| {
            walk.cursor.next_token();
            let start = walk.cursor.at();
            let path = walk.text()?;
            self.include.push(Included { at: start..walk.cursor.at(), path });
            Ok(())
        })
    }

    /// Leaves the tools out, and all that names them. Returns their types.
    pub(super) fn leave_out(
        &mut self,
        walk: &Walk<'a, '_>,
        route: Route,
        members: &mut [TopMember<'a>],
        edits: &mut Edits,
    ) -> Vec<Label> {
        if self.left_out.is_empty() {
            return Vec::new();
        }
        let mut remove = |field: &[u8]| {
            members
                .iter_mut()
                .filter(|member| *member.name == *field)
                .for_each(|member| member.is_removed = true);
        };
        if self.cuts.leaves_nothing() {
            remove(b"tools");
        }
        if self.cuts.leaves_nothing() && !walk.offers_tools {
            [&b"tool_choice"[..], b"parallel_tool_calls"].into_iter().for_each(&mut remove);
            self.forgotten = self.choice.take().map(|choice| choice.at);
        } else {
            std::mem::take(&mut self.cuts).apply(edits);
            self.choose_any(route, edits);
        }
        let mut cuts = Cuts::default();
        for included in &self.include {
            if self.is_left_out(included) { cuts.cut(&included.at) } else { cuts.keep(&included.at) }
        }
        if cuts.leaves_nothing() && !self.include.is_empty() {
            remove(b"include");
        } else {
            cuts.apply(edits);
        }
        self.left_out.iter().map(|tool| Label::of(&tool.kind)).collect()
    }

    /// Returns the part of the body that is not sent, although what it asks for was noted as not granted.
    pub(super) const fn forgotten(&self) -> Option<&Range<usize>> {
        self.forgotten.as_ref()
    }

    /// Leaves the choice to the model if the body's choice names a tool that is left out.
    fn choose_any(&mut self, route: Route, edits: &mut Edits) {
        let is_left_out = |word: &Cow<'a, [u8]>| {
            self.left_out.iter().any(|tool| tool.kind == *word || tool.name.as_ref() == Some(word))
        };
        let Some(choice) = self.choice.take_if(|choice| choice.named.iter().any(is_left_out)) else { return };
        let auto: &'static [u8] = match route.dialect() {
            Dialect::OpenAi | Dialect::ToolExec | Dialect::JsonRpc => br#""auto""#,
            Dialect::Anthropic => br#"{"type":"auto"}"#,
        };
        edits.replace(choice.at.clone(), Bytes::from_static(auto));
        self.forgotten = Some(choice.at);
    }

    /// Returns whether the path begins with a call of a tool that is left out: `web_search_call.action.sources` or
    /// `computer_call_output.output.image_url`.
    fn is_left_out(&self, included: &Included<'a>) -> bool {
        let Some(path) = included.path.as_deref() else { return false };
        let item = path.split(|byte| *byte == b'.').next().unwrap_or_default();
        let call = item.strip_suffix(b"_output").unwrap_or(item);
        match call.strip_suffix(b"_call") {
            None | Some(b"") => false,
            Some(tool) => self.left_out.iter().any(|left_out| left_out.kind.starts_with(tool)),
        }
    }
}
