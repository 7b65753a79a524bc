//! Defines why an answer ends early.

use platform_core::record::Timeout;

use crate::journal;

/// Reason why an answer ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenOff {
    /// The upstream broke off.
    #[error("the upstream closed the connection")]
    Upstream(#[source] hyper::Error),
    /// A timeout of the call passed.
    #[error("the limit {} of the call passed", .0.word())]
    Late(Timeout),
    /// The document so far is not an answer, and some of it has passed.
    #[error("the upstream reported an error in the middle of its answer")]
    NoAnswer,
    /// The call's record cannot be made durable. Without it the end of the answer is not sent.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}
