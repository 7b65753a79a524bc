//! Filters the headers of the upstream's answers: by their names, and by the form of their values.

use http::{HeaderMap, HeaderName, HeaderValue, Response, header, response::Parts};
use platform_core::name::header as own;

use super::{call::Exchange, redact};

/// Response headers that pass. All others reveal the upstream's insides, or other tenants.
const PASSED: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, HeaderName::from_static("request-id")];
/// Values that nearly all answers have.
const USUAL: [&[u8]; 5] = [
    b"application/json",
    b"text/event-stream",
    b"text/event-stream; charset=utf-8",
    b"application/json; charset=utf-8",
    b"no-cache",
];
/// Longest value that passes.
const MAX_VALUE: usize = 128;
/// Length of a date: `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_LENGTH: usize = 29;

impl Exchange {
    /// Returns a response with the parts of the upstream's `head` that pass, and no body yet.
    pub(super) fn passed_head(&self, head: &Parts) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = head.status;
        *response.headers_mut() = self.passed_headers(&head.headers);
        if let Ok(value) = HeaderValue::from_bytes(&self.call_id().to_ascii()) {
            response.headers_mut().insert(own::LITELLM_CALL_ID, value);
        }
        response
    }

    /// Returns those headers of an answer, good or not, that pass.
    fn passed_headers(&self, from: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        for name in &PASSED {
            if let Some(value) = from.get(name).filter(|value| self.may_pass(name, value)) {
                headers.insert(name, value.clone());
            }
        }
        if let Some(value) = retry_after(from) {
            headers.insert(header::RETRY_AFTER, value.clone());
        }
        headers
    }

    fn may_pass(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        if USUAL.contains(&value.as_bytes()) {
            return true;
        }
        let is_well_formed = |text: &str| match name.as_str() {
            "content-type" => is_media_type(text),
            "cache-control" => text.split(',').all(|part| is_directive(part.trim())),
            _ => is_token(text),
        };
        let text = value.to_str().ok().filter(|text| text.len() <= MAX_VALUE && is_well_formed(text));
        text.is_some_and(|text| {
            self.mask().find(text.as_bytes(), 0).is_none()
                && redact::redact(text, &self.context.snapshot.load().redacted_terms) == text
        })
    }
}

/// Returns when a client may try again. LiteLLM puts its provider's headers under its own name, which no SDK
/// reads.
pub(super) fn retry_after(from: &HeaderMap) -> Option<&HeaderValue> {
    let value = from.get(header::RETRY_AFTER).or_else(|| from.get(own::LITELLM_PROVIDER_RETRY_AFTER));
    value.filter(|value| is_time(value.as_bytes()))
}

fn is_token(text: &str) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+');
    !text.is_empty() && text.bytes().all(belongs)
}

/// Returns whether `text` is a media type, such as `text/html; charset=utf-8`.
fn is_media_type(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().and_then(|essence| essence.split_once('/'));
    essence.is_some_and(|(kind, of)| is_token(kind) && is_token(of)) && parts.all(is_directive)
}

/// Returns whether `text` is a directive, such as `no-store` or `max-age=0`.
fn is_directive(text: &str) -> bool {
    let (name, value) = text.split_once('=').unwrap_or((text, "0"));
    is_token(name) && is_token(value)
}

/// Returns whether `value` is a number of seconds or a date.
fn is_time(value: &[u8]) -> bool {
    let is_number = (1..=10).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b" ,:".contains(byte);
    let is_date = value.len() == DATE_LENGTH && value.ends_with(b" GMT") && value.iter().all(is_letter);
    is_number || is_date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_well_formed_pass() {
        for (text, expected) in [
            ("text/html; charset=utf-8", true),
            ("Application/problem+JSON", true),
            ("victim", false),
            ("text/html; sk-abc def", false),
            ("text/", false),
            ("a/b/c", false),
        ] {
            assert_eq!(is_media_type(text), expected, "{text}");
        }
        for (text, expected) in [
            ("7", true),
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("", false),
            ("sk-1234", false),
            ("12345678901", false),
            ("of deployment gpt-4o, soon  GMT", false),
        ] {
            assert_eq!(is_time(text.as_bytes()), expected, "{text}");
        }
    }
}
