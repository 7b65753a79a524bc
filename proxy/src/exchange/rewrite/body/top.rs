//! Checks the top level of a body: applies each field's rule, and at the end sets Sluicegate's own values.

use std::{borrow::Cow, mem};

use bytes::Bytes;
use platform_core::route::Route;

use super::{
    Checked,
    edits::Edits,
    fields::{self, Rule},
    json::JsonValue,
    members::StringMeaning,
    sizes::{Count, Sizes},
    stream_options::StreamOptions,
    ungranted::{Cuts, ToolFields, TopMember},
    walk::{Member, Walk},
};
use crate::policy::{Label, Policy, Reason, Rejection, Rejections};

/// Longest name of a model.
const MAX_MODEL_NAME: usize = 256;

/// Findings so far, and the changes that follow from them.
#[derive(Debug)]
pub(super) struct TopLevel<'a> {
    route: Route,
    model: Option<Cow<'a, str>>,
    stream: bool,
    options: Option<StreamOptions>,
    /// Set if `store` is there.
    store: bool,
    sizes: Sizes,
    edits: Edits,
    /// The members that were read.
    members: Vec<TopMember<'a>>,
    tool_fields: ToolFields<'a>,
}

impl<'a> Walk<'a, '_> {
    /// Reads the whole document.
    pub(super) fn document(mut self, route: Route) -> Result<Checked<'a>, Rejections> {
        let checked = self.top_level(route);
        mem::take(&mut self.findings).conclude(checked)
    }

    fn top_level(&mut self, route: Route) -> Result<Checked<'a>, Rejection> {
        let JsonValue::Object = self.cursor.value()? else {
            return Err(Rejection::new(Reason::Syntax("it is something else"), 0));
        };
        let mut top = TopLevel::new(route, self.cursor.at());
        self.members(|walk, member| {
            walk.field = Some(member.name.clone());
            top.member(walk, member).map_err(|rejection| walk.in_field(rejection))?;
            walk.field = None;
            Ok(())
        })?;
        self.cursor.end()?;
        top.finish(self)
    }

    fn model(&mut self, at: usize) -> Result<Cow<'a, str>, Rejection> {
        let JsonValue::Text(text) = self.cursor.value()? else {
            return Err(Rejection::wrong_type(b"model", "a string", at));
        };
        let model = text.to_str();
        // The same rule as that of `ModelName`.
        let plain = |character: char| character.is_ascii_graphic() && !matches!(character, ',' | '"' | '\\');
        if model.is_empty() || model.len() > MAX_MODEL_NAME || !model.chars().all(plain) {
            self.refuse(Rejection::new(Reason::ModelMalformed, at))?;
            return Ok(model);
        }
        match &self.policy.models {
            Some(granted) if !granted.iter().any(|name| **name == *model) => {
                self.refuse(Rejection::new(Reason::ModelNotGranted(Label::of(model.as_bytes())), at))?;
                Ok(model)
            }
            _ => Ok(model),
        }
    }

    /// Reads true, false or null. LiteLLM would take `"true"` and 1 for true.
    pub(super) fn flag(&mut self, member: &Member<'a>) -> Result<Option<bool>, Rejection> {
        match self.cursor.value()? {
            JsonValue::True => Ok(Some(true)),
            JsonValue::False => Ok(Some(false)),
            JsonValue::Null => Ok(None),
            _ => Err(Rejection::wrong_type(&member.name, "true or false", member.at)),
        }
    }

    fn count(&mut self, member: &Member<'a>) -> Result<Count, Rejection> {
        self.cursor.next_token();
        let start = self.cursor.at();
        let value = match self.cursor.value()? {
            JsonValue::Null => Some(None),
            JsonValue::Number(digits) => {
                str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).map(Some)
            }
            _ => None,
        };
        let value = value.ok_or(Rejection::wrong_type(&member.name, "a whole number", member.at))?;
        Ok(Count { value, at: start..self.cursor.at() })
    }

    /// Reads the budget for thinking, if the value is an object that has one.
    fn thinking(&mut self) -> Result<Option<Count>, Rejection> {
        if self.cursor.next_token() != Some(b'{') {
            return self.skip().map(|()| None);
        }
        self.cursor.value()?;
        let mut budget = None;
        self.members(|walk, member| match &*member.name {
            b"budget_tokens" => walk.count(&member).map(|count| budget = Some(count)),
            _ => walk.skip(),
        })?;
        Ok(budget)
    }
}

impl<'a> TopLevel<'a> {
    fn new(route: Route, start: usize) -> Self {
        Self {
            route,
            model: None,
            stream: false,
            options: None,
            store: false,
            sizes: Sizes::default(),
            edits: Edits::new(start),
            members: Vec::with_capacity(16),
            tool_fields: ToolFields::default(),
        }
    }

    fn member(&mut self, walk: &mut Walk<'a, '_>, member: Member<'a>) -> Result<(), Rejection> {
        let extra = || walk.policy.lets_through(&member.name);
        let rule = fields::rule(self.route, &member.name).or_else(|| extra().then_some(Rule::Pass));
        let name = member.name.clone();
        let start = member.at;
        match rule {
            None => {
                walk.refuse(Rejection::new(Reason::UnknownField(Label::of(&member.name)), member.at))?;
                walk.skip()
            }
            Some(rule) => self.apply(rule, walk, member),
        }?;
        let is_removed = rule.is_some_and(|rule| self.removes(rule, walk.policy));
        self.members.push(TopMember { name, at: start..walk.cursor.at(), is_removed });
        Ok(())
    }

    fn apply(&mut self, rule: Rule, walk: &mut Walk<'a, '_>, member: Member<'a>) -> Result<(), Rejection> {
        match rule {
            Rule::Pass => walk.skip(),
            Rule::Content => walk.content(StringMeaning::Text, member),
            Rule::Items if self.route.takes_items() => walk.items(&member, StringMeaning::Item),
            Rule::Items => walk.items(&member, StringMeaning::Text),
            Rule::Prompt => walk.prompts(&member).map(|prompts| self.sizes.prompts = prompts),
            Rule::Tools => self.tool_fields.read_tools(walk, &member),
            Rule::Functions => walk.tools(&member),
            Rule::ToolChoice => self.tool_fields.read_choice(walk, &member),
            Rule::Include => self.tool_fields.read_include(walk),
            Rule::Needs(capability) => walk.gated(capability, &member),
            Rule::Among(words, capability) => walk.among(words, capability, &member),
            Rule::Model => walk.model(member.at).map(|model| self.model = Some(model)),
            Rule::Stream => walk.flag(&member).map(|stream| self.stream = stream == Some(true)),
            Rule::StreamOptions => walk.stream_options(&member).map(|options| self.options = Some(options)),
            Rule::Count(size) => walk.count(&member).map(|count| self.sizes.note(size, count)),
            Rule::Thinking => walk.thinking().map(|count| self.sizes.thinking = count),
            Rule::Store => self.store(walk, &member),
            Rule::User => self.overwrite(walk, "user"),
            Rule::Metadata => self.overwrite(walk, "metadata"),
            Rule::Drop => walk.skip(),
        }
    }

    /// Returns whether a member with this rule is removed, whatever its value is.
    fn removes(&self, rule: Rule, policy: &Policy) -> bool {
        match rule {
            Rule::Drop => true,
            Rule::User => policy.own("user", self.route).is_none(),
            Rule::Metadata => policy.own("metadata", self.route).is_none(),
            _ => false,
        }
    }

    fn store(&mut self, walk: &mut Walk<'a, '_>, member: &Member<'a>) -> Result<(), Rejection> {
        walk.cursor.next_token();
        let start = walk.cursor.at();
        let kept = match walk.flag(member)? {
            Some(store) => store,
            // Null is the default, which for responses means yes.
            None => self.route == Route::Responses,
        };
        if kept {
            self.edits.replace(start..walk.cursor.at(), Bytes::from_static(b"false"));
        }
        self.store = true;
        Ok(())
    }

    /// Puts Sluicegate's value in the place of the agent's, if there is one.
    fn overwrite(&mut self, walk: &mut Walk<'a, '_>, name: &'static str) -> Result<(), Rejection> {
        let Some(value) = walk.policy.own(name, self.route) else { return walk.skip() };
        walk.cursor.next_token();
        let start = walk.cursor.at();
        walk.skip()?;
        self.edits.replace(start..walk.cursor.at(), value);
        Ok(())
    }

    fn finish(mut self, walk: &mut Walk<'a, '_>) -> Result<Checked<'a>, Rejection> {
        let Some(model) = self.model.take() else {
            return Err(Rejection::new(Reason::ModelMissing, walk.cursor.at()));
        };
        let tools_left_out = self.tool_fields.leave_out(walk, self.route, &mut self.members, &mut self.edits);
        if let Some(part) = self.tool_fields.forgotten() {
            walk.findings.forget_grants_in(part);
        }
        self.remove_members();
        // On chat, `store` would be an error for all models that do not know it (measured with LiteLLM 1.106.2).
        if self.route == Route::Responses && !self.store {
            self.edits.insert("store", b"false");
        }
        let usage_asked = self.options.as_ref().is_some_and(|options| options.usage_asked);
        if self.stream && matches!(self.route, Route::ChatCompletions | Route::Completions) {
            StreamOptions::force_usage(self.options.as_ref(), &mut self.edits);
        }
        Ok(Checked {
            model,
            stream: self.stream,
            usage_asked,
            sizes: self.sizes,
            media: walk.media,
            letters: walk.cursor.letters(),
            service: walk.service,
            tools_left_out,
            edits: self.edits,
        })
    }

    /// Removes members, each with one comma. The model stays.
    fn remove_members(&mut self) {
        if self.members.iter().all(|member| !member.is_removed) {
            return;
        }
        let mut cuts = Cuts::default();
        for member in &self.members {
            if member.is_removed { cuts.cut(&member.at) } else { cuts.keep(&member.at) }
        }
        cuts.apply(&mut self.edits);
    }
}
