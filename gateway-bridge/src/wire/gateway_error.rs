//! Reads the error of an answer.

use std::time::Duration;

use platform_core::json::{Raw, read_member};
use serde::Deserialize;

use crate::{error::Error, outcome::Code};

/// Error as a gateway reports it. Only its codes influence decisions; its message is for people.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GatewayError {
    /// Kind of error, such as `INVALID_REQUEST`.
    pub(crate) code: Option<Code>,
    /// Exact cause, such as `AUTH_TOKEN_MISMATCH`.
    pub(crate) detail: Option<Code>,
    /// Message, cut to 300 characters and escaped.
    pub(crate) message: String,
    /// Time after which the same request may be repeated; only if it may.
    pub(crate) retry_after: Option<Duration>,
    /// Id of the pairing that an operator must approve.
    pub(crate) pairing: Option<String>,
    /// Protocol that the gateway expects.
    pub(crate) expected_protocol: Option<u64>,
}

/// Members of an error, each of any type.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawError<'a> {
    #[serde(borrow)]
    code: Option<Raw<'a>>,
    #[serde(borrow)]
    message: Option<Raw<'a>>,
    #[serde(borrow)]
    details: Option<Raw<'a>>,
    #[serde(borrow)]
    retryable: Option<Raw<'a>>,
    #[serde(borrow)]
    retry_after_ms: Option<Raw<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDetails<'a> {
    #[serde(borrow)]
    code: Option<Raw<'a>>,
    #[serde(borrow)]
    reason: Option<Raw<'a>>,
    #[serde(borrow)]
    request_id: Option<Raw<'a>>,
    #[serde(borrow)]
    expected_protocol: Option<Raw<'a>>,
}

impl GatewayError {
    pub(crate) fn read(raw: Raw<'_>) -> Self {
        let error: RawError<'_> = raw.read().unwrap_or_default();
        let details: RawDetails<'_> = read_member(error.details).unwrap_or_default();
        let code = |raw| read_member(raw).map(|code: String| Code::new(&code));
        let pause = read_member(error.retry_after_ms).map(Duration::from_millis);
        let retryable = read_member(error.retryable).unwrap_or_default();
        Self {
            code: code(error.code),
            detail: code(details.code).or_else(|| code(details.reason)),
            message: shown(&read_member::<String>(error.message).unwrap_or_default()),
            retry_after: if retryable { Some(pause.unwrap_or_default()) } else { None },
            pairing: code(details.request_id).map(|id| id.as_str().to_owned()),
            expected_protocol: read_member(details.expected_protocol),
        }
    }

    /// Returns the most exact code there is.
    pub(crate) fn exact(&self) -> Code {
        self.detail.clone().or_else(|| self.code.clone()).unwrap_or_else(|| Code::new(""))
    }

    /// Converts the error of an answer to `method` into the error for its caller.
    pub(crate) fn refusal(self, method: &str) -> Error {
        Error::Refused {
            method: method.to_owned(),
            code: self.exact(),
            message: self.message,
            retry_after: self.retry_after,
        }
    }
}

fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().take(300).map(plain).collect()
}
