//! refusal reads an answer with an error: GitHub's message, what to do about it, and when to try again. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use platform_core::json::{self, Bounds, Raw, read_member};
use platform_runtime::terminal;
use serde::Deserialize;

use crate::error::{Error, Retry};

/// Largest answer: a page of pull requests has some 25 kB for each.
pub(crate) const MAX_ANSWER: usize = 8 << 20;
/// Bounds of an answer.
pub(crate) const BOUNDS: Bounds = Bounds::of(MAX_ANSWER);

/// Most characters of GitHub's message.
const MAX_MESSAGE: usize = 500;
/// Longest delay that is believed.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);
/// Delay that GitHub asks for where it names none.
const LIMITED_DELAY: Duration = Duration::from_secs(60);
/// Requests that are left.
const REMAINING: &str = "x-ratelimit-remaining";
/// Time at which there are more, in seconds.
const RESET: &str = "x-ratelimit-reset";
/// Words, in lower case, by which GitHub names its limits.
const LIMIT: &str = "rate limit";

/// Body of an answer with an error.
#[derive(Deserialize)]
struct ErrorBody<'b> {
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    errors: Vec<Raw<'b>>,
}

/// Detail of an error that is not text.
#[derive(Deserialize)]
struct ErrorDetail<'b> {
    #[serde(borrow)]
    message: Option<Raw<'b>>,
    #[serde(borrow)]
    resource: Option<Raw<'b>>,
    #[serde(borrow)]
    field: Option<Raw<'b>>,
    #[serde(borrow)]
    code: Option<Raw<'b>>,
}

/// Reads an answer to `action` with an error. The `secret` of the request is in no part of the result.
pub(crate) fn refusal(
    action: &'static str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secret: &str,
) -> Error {
    let message = message(body, secret);
    let retry = retry(status, headers, &message, SystemTime::now());
    let advice = if matches!(retry, Retry::Later(_)) { "it can be tried again" } else { advice(status) };
    Error::Refused { action, status: status.as_u16(), message, advice, retry }
}

/// Returns GitHub's message and its details in one line, safe to print.
fn message(body: &[u8], secret: &str) -> String {
    let Ok(body) = json::from_slice::<ErrorBody<'_>>(body, BOUNDS) else { return "no message".to_owned() };
    let details = body.errors.into_iter().filter_map(detail);
    let texts: Vec<String> = std::iter::once(body.message).chain(details).collect();
    // A server that repeats a request must not get the token into a log.
    let text = texts.join("; ").replace(secret, "…");
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = terminal::safe(&line.join(" ")).into_owned();
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns a detail in words; `None` if it has none.
fn detail(error: Raw<'_>) -> Option<String> {
    if let Ok(text) = error.read::<String>() {
        return Some(text);
    }
    let ErrorDetail { message, resource, field, code } = error.read().ok()?;
    let text = read_member::<String>;
    text(message).or_else(|| {
        let parts: Vec<String> = [resource, field, code].into_iter().filter_map(text).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    })
}

fn retry(status: StatusCode, headers: &HeaderMap, message: &str, now: SystemTime) -> Retry {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let is_exhausted = number(REMAINING) == Some(0);
    let is_limit =
        headers.contains_key(RETRY_AFTER) || is_exhausted || message.to_lowercase().contains(LIMIT);
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS || (status == StatusCode::FORBIDDEN && is_limit);
    if !is_limited && !status.is_server_error() && status != StatusCode::REQUEST_TIMEOUT {
        return Retry::Never;
    }
    let until_reset = || {
        let reset = UNIX_EPOCH.checked_add(Duration::from_secs(number(RESET).filter(|_| is_exhausted)?))?;
        // The clocks differ, and the reset is in whole seconds.
        Some(reset.duration_since(now).unwrap_or_default() + Duration::from_secs(1))
    };
    let named = number(RETRY_AFTER.as_str()).map(Duration::from_secs).or_else(until_reset);
    let after = named.or(is_limited.then_some(LIMITED_DELAY));
    Retry::Later(after.map(|after| after.min(MAX_RETRY_DELAY)))
}

/// Returns what an operator can do about an answer that stays the same.
const fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => {
            "renew the token in github.token_file or GITHUB_TOKEN, or check github.app_id, github.app_key_file and this host's clock"
        }
        StatusCode::FORBIDDEN => {
            "allow the token or the App to read and write contents and pull requests of the repository"
        }
        StatusCode::NOT_FOUND => {
            "check the repository's name, and that the token may see it or the App is installed on it"
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            "check that both branches are in the repository and differ, and what the App was granted"
        }
        _ => "check github.url and github.api_url",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
    }

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> (String, Retry) {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let (status, headers) = (StatusCode::from_u16(status).unwrap(), headers.collect());
        match refusal("test", status, &headers, body.as_bytes(), "t0ken") {
            Error::Refused { message, retry, .. } => (message, retry),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn limits_and_faults_pass_and_refusals_stay() {
        let after = |seconds| Retry::Later(Some(Duration::from_secs(seconds)));
        for (status, headers, body, expected) in [
            (500, &[][..], "", Retry::Later(None)),
            (503, &[("retry-after", "7")][..], "", after(7)),
            (408, &[][..], "", Retry::Later(None)),
            (429, &[][..], "", after(60)),
            (429, &[("retry-after", "999999")][..], "", after(3600)),
            (403, &[("retry-after", "3")][..], "", after(3)),
            (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "5")][..], "", after(1)),
            (403, &[][..], r#"{"message":"You have exceeded a secondary rate limit."}"#, after(60)),
            (403, &[("x-ratelimit-remaining", "10"), ("x-ratelimit-reset", "5")][..], "", Retry::Never),
            (401, &[("x-ratelimit-remaining", "0")][..], "", Retry::Never),
            (404, &[][..], "", Retry::Never),
            (422, &[("retry-after", "3")][..], "", Retry::Never),
        ] {
            assert_eq!(answer(status, headers, body).1, expected, "{status} {headers:?} {body}");
        }
    }

    #[test]
    fn a_reset_in_the_future_is_waited_for() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1100")];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let retry = retry(StatusCode::FORBIDDEN, &headers.into_iter().collect(), "", now);
        assert_eq!(retry, Retry::Later(Some(Duration::from_secs(101))));
    }

    #[test]
    fn messages_are_bounded_and_safe_to_print() {
        let errors = r#"{"message":"Validation Failed","errors":[{"message":"A pull request already exists","code":422},{"resource":"PullRequest","field":"head","code":"invalid"},"plain"]}"#;
        let shown = "Validation Failed; A pull request already exists; PullRequest head invalid; plain";
        assert_eq!(answer(422, &[], errors).0, shown);
        let hostile = r#"{"message":"\u001b[31mbad\u202e t0ken\nnext"}"#;
        assert_eq!(answer(404, &[], hostile).0, "bad … next");
        let long = format!(r#"{{"message":"{}"}}"#, "ä".repeat(2000));
        assert_eq!(answer(404, &[], &long).0.chars().count(), MAX_MESSAGE + 1);
        let nested = format!(r#"{{"message":"bad","errors":[{},"why"]}}"#, raw_nest(15));
        assert_eq!(answer(422, &[], &nested), ("bad; why".to_owned(), Retry::Never));
        for unreadable in ["<html>", &raw_nest(15)] {
            assert_eq!(answer(422, &[], unreadable).0, "no message", "{unreadable}");
        }
    }
}
