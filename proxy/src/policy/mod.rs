//! Describes what the calls of a run may request, what is written into them, and why one may not pass.

mod default_models;
mod identification;
mod rejection;
mod rejections;

use bytes::Bytes;
use platform_core::{
    capability::Capabilities,
    grant::{RunGrant, UngrantedTools},
    litellm,
    route::{Dialect, Route},
};

pub(crate) use self::{
    default_models::DefaultModels,
    identification::Identification,
    rejection::{BARE_ID, Label, Reason, Rejection, SyntaxFault},
    rejections::{MAX_REASONS, Rejections},
};

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
    pub(crate) fn lets_through(&self, field: &[u8]) -> bool {
        let named = self.extra_fields.iter().find(|name| name.as_bytes() == field);
        named.is_some_and(|name| !litellm::is_control(name))
    }

    /// Returns Sluicegate's value for its own `field`.
    pub(crate) fn own(&self, field: &str, route: Route) -> Option<Bytes> {
        match (field, route.dialect()) {
            ("user", Dialect::OpenAi) => self.user.clone(),
            ("metadata", Dialect::OpenAi) => self.metadata.clone(),
            ("metadata", Dialect::Anthropic) => self.anthropic_metadata.clone(),
            _ => None,
        }
    }
}
