//! Posts JSON to the gateway, once, and reads the reasons that it gives for a refusal.

use std::io::Write as _;

use platform_core::{
    host_tools::{CodeMeaning, exec::ExecError},
    json::{self, Bounds, Raw},
};
use serde::Deserialize;

use crate::{
    answer::{BrokenAnswer, HttpAnswer, MAX_BODY},
    connection::RequestStream,
    error::Error,
    settings::GatewayAddress,
};

/// Bounds of an answer. Results and schemas stay texts, so it matters little how many values they have. An answer is
/// deeper than the result in it, which may be as deep as allowed.
pub(crate) const BOUNDS: Bounds = Bounds::of(MAX_BODY).with_values(usize::MAX).with_depth(2 * Bounds::DEPTH);

/// A body with a reason: that of a refusal or of a failed call.
#[derive(Deserialize)]
struct Reason {
    error: ExecError,
}

/// Posts `body` to `path`. `call_id` is that of the call, if the request is one.
pub(crate) fn post(
    address: &GatewayAddress,
    path: &str,
    body: &str,
    call_id: Option<&str>,
) -> Result<HttpAnswer, Error> {
    let head = format!(
        "POST {base}{path} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: cogni-tool/{version}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n",
        base = address.base,
        authority = address.authority,
        version = env!("CARGO_PKG_VERSION"),
        length = body.len(),
    );
    let mut connection = RequestStream::open(address)?;
    // A gateway may refuse a request before it has all of it. Its answer says more than the broken pipe.
    let sent = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body.as_bytes()));
    HttpAnswer::read(connection).map_err(|error| {
        let cut_short = matches!(error, BrokenAnswer::Ended | BrokenAnswer::Read(_));
        let reason = match sent {
            Err(failure) if cut_short => format!("the request could not be sent: {failure}"),
            _ => error.to_string(),
        };
        Error::NoAnswer { reason, call_id: call_id.map(str::to_owned) }
    })
}

/// Returns the reason that `answer` gives, if it has one.
pub(crate) fn reason_of(answer: &HttpAnswer, call_id: Option<&str>) -> Option<Error> {
    let Reason { error } = json::from_slice(&answer.body, BOUNDS).ok()?;
    Some(refused(answer.status, error, call_id))
}

/// Returns the error of a refusal with `status`.
pub(crate) fn refused(status: u16, reason: ExecError, call_id: Option<&str>) -> Error {
    let ExecError { code, message } = reason;
    let meaning = meaning(status, &code);
    Error::Answered { meaning, code, message, call_id: call_id.map(str::to_owned) }
}

/// Returns the meaning of a refusal. The status decides if the code is one of a later gateway.
fn meaning(status: u16, code: &str) -> CodeMeaning {
    CodeMeaning::of_code(code).unwrap_or(match status {
        401 | 403 => CodeMeaning::Denied,
        429 | 503 => CodeMeaning::Unavailable,
        _ => CodeMeaning::Failed,
    })
}

/// Returns a value in one line. A line feed stands between its parts only: in a string it is escaped.
pub(crate) fn line_of(value: Raw<'_>) -> String {
    value.get().replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_means_what_its_status_and_code_say() {
        for (status, code, expected) in [
            (403, "anything", CodeMeaning::Denied),
            (503, "anything", CodeMeaning::Unavailable),
            (400, "anything", CodeMeaning::Failed),
            (400, "policy_denied", CodeMeaning::Denied),
            (400, "frozen", CodeMeaning::Denied),
            (400, "run_mismatch", CodeMeaning::Denied),
            (429, "quota_exhausted", CodeMeaning::Denied),
            (200, "run_ended", CodeMeaning::Denied),
            (200, "tool_changed", CodeMeaning::Denied),
            (200, "connection_missing", CodeMeaning::Denied),
            (200, "provider_unavailable", CodeMeaning::Unavailable),
            (200, "too_many_calls", CodeMeaning::Unavailable),
            (503, "tools_unavailable", CodeMeaning::Unavailable),
            (400, "invalid_arguments", CodeMeaning::Failed),
            (504, "tool_timeout", CodeMeaning::Unknown),
            (200, "outcome_unknown", CodeMeaning::Unknown),
        ] {
            assert_eq!(meaning(status, code), expected, "{status} {code}");
        }
    }
}
