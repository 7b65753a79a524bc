//! error defines the reasons why GitHub gave no credential and made no pull request.

use std::{path::PathBuf, time::Duration};

use platform_runtime::{file::Unread, retry::Transient};

/// Words, in lower case, by which GitHub says that a branch has an open pull request.
const EXISTS: &str = "already exists";
/// Words, in lower case, by which GitHub says that a repository has no drafts.
const NO_DRAFTS: &str = "draft pull requests are not supported";
/// Status of a request without a valid credential.
const UNAUTHENTICATED: u16 = 401;
/// Status of a request that GitHub understands and does not accept.
const UNPROCESSABLE: u16 = 422;

/// Reason why GitHub did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or one that broke.
    #[error("cannot {action}: no connection with {host}")]
    Unreachable {
        /// Operation that failed, as a verb and its object.
        action: &'static str,
        /// Host and port.
        host: String,
        /// Cause of the failure.
        #[source]
        source: platform_outbound::Error,
    },
    /// The host has no certificate that this system trusts.
    #[error("cannot {action}: the certificate of {host} is not trusted: install its CA on this host")]
    Untrusted {
        /// Operation that failed.
        action: &'static str,
        /// Host and port.
        host: String,
        /// Cause of the failure.
        #[source]
        source: platform_outbound::Error,
    },
    /// GitHub took too long.
    #[error("cannot {action}: {host} did not answer within {} s", max.as_secs_f32())]
    Slow {
        /// Operation that failed.
        action: &'static str,
        /// Host and port.
        host: String,
        /// Longest time.
        max: Duration,
    },
    /// GitHub answered with an error.
    #[error("cannot {action}: GitHub answered {status} ({message}): {advice}")]
    Refused {
        /// Operation that failed.
        action: &'static str,
        /// Status of the answer.
        status: u16,
        /// GitHub's message, bounded and safe to print.
        message: String,
        /// Advice for an operator.
        advice: &'static str,
        /// Prospect of another try.
        retry: Retry,
    },
    /// GitHub sends the request elsewhere. The token is not sent there.
    #[error("cannot {action}: {host} redirects to another place: set github.url and github.api_url to it")]
    Redirected {
        /// Operation that failed.
        action: &'static str,
        /// Host and port that redirects.
        host: String,
    },
    /// The answer is not in the form of the API.
    #[error("cannot {action}: the answer of {host} {problem}: is github.api_url the REST API of a GitHub?")]
    Unexpected {
        /// Operation that failed.
        action: &'static str,
        /// Host and port.
        host: String,
        /// Problem of the answer, as a verb and its object.
        problem: &'static str,
    },
    /// The repository is on another host, for which no credential is configured.
    #[error("{repository} is not at {host}, so no pull request can be made: set github.url")]
    OtherHost {
        /// Address of the repository.
        repository: String,
        /// Host of `github.url`.
        host: String,
    },
    /// No credential is configured.
    #[error(
        "there is no credential for {host}: `export GITHUB_TOKEN=TOKEN` where `sluice up` and `sluice run` run, \
         or set github.token_file, or a GitHub App"
    )]
    NoCredential {
        /// Host of `github.url`.
        host: String,
    },
    /// A file with a secret cannot be read.
    #[error("cannot read {setting} {}", path.display())]
    SecretFile {
        /// Setting that names the file.
        setting: &'static str,
        /// Its path.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: Unread,
    },
    /// A secret is not of the kind that it should be.
    #[error("{setting} {problem}")]
    BadSecret {
        /// Setting or variable that has the secret.
        setting: &'static str,
        /// Problem of the secret, as a verb and its object.
        problem: &'static str,
    },
    /// A token for a whole installation needs the installation's number.
    #[error("the App has no installation of its own: its tokens are for one repository each")]
    NoInstallation,
    /// This system trusts no certificate.
    #[error("this system has no CA certificates: install the package ca-certificates")]
    NoRoots,
}

/// Prospect of another try after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Only after a change by a person.
    Never,
    /// Later, after a delay if GitHub named one.
    Later(Option<Duration>),
}

impl Error {
    /// Returns the delay that GitHub asks for before another try.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry: Retry::Later(after), .. } => *after,
            _ => None,
        }
    }

    /// Returns whether GitHub did not accept the credential.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == UNAUTHENTICATED)
    }

    /// Returns whether the branch has an open pull request.
    pub(crate) fn is_existing(&self) -> bool {
        self.is_unprocessable_by(EXISTS)
    }

    /// Returns whether the repository has no drafts.
    pub(crate) fn is_without_drafts(&self) -> bool {
        self.is_unprocessable_by(NO_DRAFTS)
    }

    fn is_unprocessable_by(&self, words: &str) -> bool {
        matches!(self, Self::Refused { status, message, .. }
            if *status == UNPROCESSABLE && message.to_lowercase().contains(words))
    }
}

impl Transient for Error {
    /// Longest time for which callers repeat a request that GitHub does not answer.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(120);

    fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Slow { .. } => true,
            Self::Refused { retry, .. } => matches!(retry, Retry::Later(_)),
            _ => false,
        }
    }
}
