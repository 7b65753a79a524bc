//! Checks whether a body may request all that it requests. One pass over the whole document, no tree, nothing copied
//! but the values that are set.
//!
//! The model API is itself an egress, and LiteLLM takes orders from the body. So unknown fields do not pass, and fields
//! that reach further than the model need a grant. Reading in order: `top` (fields), `fields` (their lists), `content`,
//! `members`, `tools`, `kinds`, `ungranted`; below them `walk`, `findings`, `json`, `text`. Other modules decide how the body arrives and how
//! large it may be.

mod content;
mod edits;
mod fields;
mod findings;
mod json;
mod kinds;
mod members;
mod rejection;
mod scan;
mod sizes;
mod stream_options;
#[cfg(test)]
mod tests;
mod text;
mod tools;
mod top;
mod ungranted;
mod walk;

use std::borrow::Cow;

use bytes::Bytes;
use platform_core::{
    capability::Capabilities,
    grant::{RunGrant, UngrantedTools},
    litellm,
    route::{Dialect, Route},
};

use self::walk::Walk;
pub(crate) use self::{
    edits::Edits,
    findings::Rejections,
    rejection::{Label, Reason, Rejection},
    sizes::Sizes,
};
use crate::usage::estimate::{Letters, Media};

/// Policy of a run: the requests that its bodies may make, and the values that are set in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    /// The models, by exact name; `None` for any.
    pub(crate) models: Option<Box<[Box<str>]>>,
    /// The tools that a model may be offered, by exact name; `None` for any.
    pub(crate) tools: Option<Box<[Box<str>]>>,
    /// Capabilities beyond plain calls.
    pub(crate) granted: Capabilities,
    /// Treatment of hosted tools that need another capability.
    pub(crate) ungranted_tools: UngrantedTools,
    /// Top-level fields the operator lets through besides the listed ones, unchecked.
    pub(crate) extra_fields: Box<[Box<str>]>,
    /// The end user, as a JSON string; `None` for none.
    pub(crate) user: Option<Bytes>,
    /// The provider's notes on OpenAI routes, as a JSON object; `None` for none.
    pub(crate) metadata: Option<Bytes>,
    /// The same on Anthropic routes, where it holds the end user: `{"user_id":…}`.
    pub(crate) anthropic_metadata: Option<Bytes>,
}

impl Policy {
    /// Returns the policy of `grant`, which lets `extra_fields` pass as well.
    pub(crate) fn of(grant: &RunGrant, extra_fields: &[String]) -> Self {
        // An account's name needs no escapes in JSON.
        let account = format!("\"{}\"", grant.account);
        Self {
            models: grant
                .models
                .as_ref()
                .map(|models| models.iter().map(|model| model.as_str().into()).collect()),
            tools: grant.tools.as_ref().map(|tools| tools.iter().map(|tool| tool.as_str().into()).collect()),
            granted: grant.capabilities,
            ungranted_tools: grant.ungranted_tools,
            extra_fields: extra_fields.iter().map(|field| field.as_str().into()).collect(),
            anthropic_metadata: Some(format!("{{\"user_id\":{account}}}").into()),
            user: Some(account.into()),
            metadata: None,
        }
    }

    /// Returns whether the operator lets a field that is on no list through. LiteLLM's controls stay out always.
    fn lets_through(&self, field: &[u8]) -> bool {
        let named = self.extra_fields.iter().find(|name| name.as_bytes() == field);
        named.is_some_and(|name| !litellm::is_control(name))
    }

    /// Returns Sluicegate's value for one of its own fields.
    fn own(&self, field: &str, route: Route) -> Option<Bytes> {
        match (field, route.dialect()) {
            ("user", Dialect::OpenAi) => self.user.clone(),
            ("metadata", Dialect::OpenAi) => self.metadata.clone(),
            ("metadata", Dialect::Anthropic) => self.anthropic_metadata.clone(),
            _ => None,
        }
    }
}

/// A body that may pass.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    /// The model it names.
    pub(crate) model: Cow<'a, str>,
    /// Set if the answer is to stream.
    pub(crate) stream: bool,
    /// Set if the agent itself requested the usage at a stream's end.
    pub(crate) usage_asked: bool,
    /// The sizes it asks for.
    pub(crate) sizes: Sizes,
    /// Parts of it that are not text.
    pub(crate) media: Media,
    /// Letters of its text.
    pub(crate) letters: Letters,
    /// Types of tools that are left out, because the run was not granted them.
    pub(crate) tools_left_out: Vec<Label>,
    /// Changes to make in it.
    pub(crate) edits: Edits,
}

/// Checks the body of a call to `route`.
///
/// # Errors
///
/// The faults in the body, in the order of its bytes.
pub(crate) fn check<'a>(route: Route, body: &'a [u8], policy: &Policy) -> Result<Checked<'a>, Rejections> {
    if route == Route::Unknown {
        return Err(Rejection::new(Reason::NoRoute, 0).into());
    }
    Walk::new(body, policy).document(route)
}
