//! Reads the error of an answer.

use std::time::Duration;

use serde_json::{Value, value::RawValue};

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

impl GatewayError {
    pub(crate) fn read(raw: &RawValue) -> Self {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let details = &value["details"];
        let code = |value: &Value| value.as_str().map(Code::new);
        let pause = value["retryAfterMs"].as_u64().map(Duration::from_millis);
        let retryable = value["retryable"].as_bool().unwrap_or_default();
        Self {
            code: code(&value["code"]),
            detail: code(&details["code"]).or_else(|| code(&details["reason"])),
            message: shown(value["message"].as_str().unwrap_or_default()),
            retry_after: retryable.then(|| pause.unwrap_or_default()),
            pairing: details["requestId"].as_str().map(|id| Code::new(id).as_str().to_owned()),
            expected_protocol: details["expectedProtocol"].as_u64(),
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
