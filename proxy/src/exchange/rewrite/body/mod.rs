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

use platform_core::{route::Route, tariff::Service};

use self::walk::Walk;
pub(crate) use self::{edits::Edits, sizes::Sizes};
use crate::{
    policy::{Label, Policy, Reason, Rejection, Rejections},
    usage::estimate::{Letters, Media},
};

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
    /// Service that it asks for.
    pub(crate) service: Service,
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
