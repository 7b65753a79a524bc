//! Defines what each refusal looks like over HTTP: one table, because clients act on it.
//!
//! Measured: SDKs repeat 429 and 5xx unless `x-should-retry: false` forbids it; OpenClaw locks a provider
//! for everyone on 401, 402 and 403. The table is the only place that turns a refusal into a status.

mod answer;
mod limits;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::{borrow::Cow, time::Duration};

use http::StatusCode;
use platform_core::{record::Timeout, refusal::Refusal, untrusted::JournalText};

pub(crate) use self::{
    answer::{error_event, error_json, raw, respond},
    table::status,
    words::Late,
};
use self::{table::row, words::message};
use crate::{
    freezes::Stop,
    policy::{Label, Reason, Rejection, Rejections},
};

/// A refusal, with its message to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Refusal,
    /// Rule that decided it, for the record: a limit, a field, a model, a capability.
    pub(crate) rule: Option<JournalText>,
    /// Timeout that has passed, if the refusal is for one.
    pub(crate) timeout: Option<Timeout>,
    message: Cow<'static, str>,
    /// Seconds after which the call may pass, if they are known better than by the reason alone.
    wait: Option<u64>,
    audience: Audience,
    /// Id of the JSON-RPC message that is refused, as its sender wrote it.
    rpc_id: Option<Box<str>>,
}

/// Audience of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// A client that called for itself.
    Client,
    /// A gateway that serves many, and would lock its provider for all of them.
    Gateway,
}

impl From<Refusal> for Refused {
    fn from(reason: Refusal) -> Self {
        Self {
            reason,
            rule: None,
            timeout: None,
            message: Cow::Borrowed(message(reason)),
            wait: None,
            audience: Audience::Client,
            rpc_id: None,
        }
    }
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        Self { rule: Some(JournalText::of(stop.word())), ..Refusal::Frozen.into() }
    }
}

impl Refused {
    /// Creates a refusal for a `reason` that ends after `wait`.
    pub(crate) fn until(reason: Refusal, wait: Duration) -> Self {
        Self { wait: Some(wait.as_secs() + 1), ..reason.into() }
    }

    /// Creates a refusal that `rule` decided.
    pub(crate) fn by_rule(reason: Refusal, rule: &str) -> Self {
        Self { rule: Some(JournalText::of(rule)), ..reason.into() }
    }

    /// Returns the refusal with another message.
    pub(crate) fn saying(self, message: String) -> Self {
        Self { message: Cow::Owned(message), ..self }
    }

    /// Returns the refusal as the answer to the JSON-RPC message with `id`.
    pub(crate) fn answering(self, id: Option<String>) -> Self {
        Self { rpc_id: id.map(String::into_boxed_str), ..self }
    }

    /// Creates a refusal because a timeout has passed.
    pub(crate) fn late(reason: Refusal, late: Late) -> Self {
        Self { timeout: Some(late.timeout), message: Cow::Owned(late.message()), ..reason.into() }
    }

    /// Creates a refusal because this proxy stops. It will have stopped after `left`: until then another call makes no
    /// sense.
    pub(crate) fn draining(left: Duration) -> Self {
        Self { wait: Some(left.as_secs() + 1), ..Refusal::Draining.into() }
    }

    /// Returns the refusal for a gateway that serves many. It never contains words of an agent, because a gateway sorts
    /// errors by their words. All failures to attribute a call become one.
    pub(crate) fn for_gateway(&self) -> Self {
        let reason = match self.reason {
            Refusal::TokenMissing
            | Refusal::TokenMalformed
            | Refusal::TokenExpired
            | Refusal::TokenInvalid
            | Refusal::TokenRevoked
            | Refusal::RunUnknown
            | Refusal::IdentityConflict => Refusal::Unattributed,
            other => other,
        };
        let rpc_id = self.rpc_id.clone();
        Self { wait: self.wait, audience: Audience::Gateway, rpc_id, ..reason.into() }
    }

    /// Returns the status it is sent with.
    pub(crate) fn status(&self) -> StatusCode {
        match (row(self.reason).0, self.audience) {
            // OpenClaw 2026.9.6 locks its profile at the provider on 429, and on 503 tries again.
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, Audience::Gateway) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            // Only tool calls get it, and the whole gateway is not to lose its provider by one of them.
            (StatusCode::FORBIDDEN, Audience::Gateway) => StatusCode::BAD_REQUEST,
            (status, _) => status,
        }
    }
}

impl From<Rejections> for Refused {
    fn from(rejections: Rejections) -> Self {
        // Code and rule are those of the first reason; the message names all.
        let first = &rejections.first;
        let reason = match first.reason {
            Reason::UnknownField(_) => Refusal::FieldUnknown,
            Reason::NotGranted { .. } | Reason::ToolNotGranted(_) | Reason::ToolUnnamed => {
                Refusal::NotGranted
            }
            Reason::ModelNotGranted(_) => Refusal::ModelNotGranted,
            Reason::NoRoute => Refusal::RouteUnknown,
            Reason::Syntax(_)
            | Reason::Duplicate(_)
            | Reason::Crowded
            | Reason::WrongType { .. }
            | Reason::ModelMissing
            | Reason::ModelMalformed => Refusal::BodyInvalid,
        };
        Self { rule: rule(first), message: Cow::Owned(rejections.to_string()), ..reason.into() }
    }
}

/// Returns the rules of all reasons of a refusal in one line, as a record would name each.
pub(crate) fn rules(rejections: &Rejections) -> String {
    let all = std::iter::once(&rejections.first).chain(&rejections.others);
    let rules = all.map(|rejection| rule(rejection).map_or_else(|| "-".to_owned(), |rule| rule.to_string()));
    rules.collect::<Vec<_>>().join(", ")
}

/// Returns the part of a body that caused its refusal. Names come from an agent: they are written as the journal may
/// contain them.
fn rule(rejection: &Rejection) -> Option<JournalText> {
    let field = |name: &Label| format!("field:{}", name.as_str());
    let named = match &rejection.reason {
        Reason::UnknownField(name) | Reason::Duplicate(name) | Reason::WrongType { what: name, .. } => {
            Some(field(name))
        }
        Reason::NotGranted { capability, .. } => Some(format!("capability:{capability}")),
        Reason::ModelNotGranted(name) => Some(format!("model:{}", name.as_str())),
        Reason::ToolNotGranted(name) => Some(format!("tool:{}", name.as_str())),
        Reason::ToolUnnamed => Some("tool:-".to_owned()),
        Reason::ModelMissing | Reason::ModelMalformed => Some("field:model".to_owned()),
        Reason::Syntax(_) | Reason::Crowded | Reason::NoRoute => rejection.field.as_ref().map(field),
    };
    named.map(|named| JournalText::of(&named))
}
