//! Defines the reasons why a request has no answer.

use std::io;

/// Reason why a request has no whole answer. Most are the cause alone: callers say what they asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection: nothing was sent.
    #[error(transparent)]
    Unconnected(io::Error),
    /// The server has no certificate that is trusted: no later try changes that.
    #[error(transparent)]
    Untrusted(io::Error),
    /// The server does not speak HTTP, or ended the connection.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// The answer is longer than its limit.
    #[error("the answer has more than {max} bytes")]
    TooLong {
        /// Most bytes of the answer.
        max: usize,
    },
    /// The time for the answer is over.
    #[error("the answer did not come in time")]
    TimedOut,
}

impl Error {
    /// Returns the error of a connection that failed with `source`.
    pub(crate) fn unconnected(source: io::Error) -> Self {
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(rustls::Error::InvalidCertificate(_)) => Self::Untrusted(source),
            _ => Self::Unconnected(source),
        }
    }
}
