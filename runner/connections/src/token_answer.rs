//! token_answer reads the answers of OAuth 2 token endpoints (RFC 6749, sections 5.1 and 5.2). Pure.

use std::time::Duration;

use http::StatusCode;
use platform_core::{
    json::{self, Bounds},
    secret::Secret,
};
use serde::Deserialize;

/// Code by which a provider refuses the refresh token itself.
const INVALID_GRANT: &str = "invalid_grant";
/// Lifetime of an access token for which the provider names none.
const MAX_UNNAMED_LIFETIME: Duration = Duration::from_secs(3600);
/// Longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(366 * 24 * 3600);
/// Longest token.
pub(crate) const MAX_TOKEN: usize = 16 << 10;

/// Largest answer that is read.
pub(crate) const MAX_ANSWER: usize = 64 << 10;
const BOUNDS: Bounds = Bounds::of(MAX_ANSWER);

/// Tokens that a provider gave.
#[derive(Debug)]
pub(crate) struct GivenTokens {
    pub(crate) access: Secret,
    /// Refresh token that replaces the former one.
    pub(crate) refresh: Option<Secret>,
    pub(crate) lifetime: Duration,
}

/// Reason why a provider gave no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefreshFault {
    /// The refresh token is valid no longer.
    InvalidGrant,
    /// Another refusal, by its code.
    Refused(String),
    /// No answer, or an odd one. It may be tried again.
    Unavailable(String),
}

#[derive(Deserialize)]
struct TokenBody {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<Lifetime>,
    refresh_token: Option<String>,
}

/// Seconds, which some providers write as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lifetime {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
struct TokenRefusal {
    error: String,
}

/// Reads an answer. No part of it is in a fault, except a plain code.
pub(crate) fn read(status: StatusCode, body: &[u8]) -> Result<GivenTokens, RefreshFault> {
    if status.is_redirection() {
        let problem =
            "it redirects to another place, and a secret is not sent there: set its token_url to it";
        return Err(RefreshFault::Refused(problem.to_owned()));
    }
    let unavailable = |problem: &str| RefreshFault::Unavailable(problem.to_owned());
    if status.is_success() {
        // GitHub answers 200 to a refusal.
        if let Ok(TokenRefusal { error }) = json::from_slice(body, BOUNDS) {
            return Err(refusal(&error));
        }
        let body: TokenBody =
            json::from_slice(body, BOUNDS).map_err(|_other| unavailable("its answer has no access token"))?;
        return given(body).ok_or_else(|| unavailable("its answer has a malformed token"));
    }
    if status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    {
        return Err(unavailable(&format!("it answered {}", status.as_u16())));
    }
    Err(match json::from_slice(body, BOUNDS) {
        Ok(TokenRefusal { error }) => refusal(&error),
        Err(_other) => RefreshFault::Refused(format!("it answered {}", status.as_u16())),
    })
}

fn refusal(code: &str) -> RefreshFault {
    let is_plain = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    match code {
        INVALID_GRANT | "bad_refresh_token" => RefreshFault::InvalidGrant,
        code if is_plain => RefreshFault::Refused(code.to_owned()),
        _ => RefreshFault::Refused("an unknown code".to_owned()),
    }
}

fn given(body: TokenBody) -> Option<GivenTokens> {
    let TokenBody { access_token, token_type, expires_in, refresh_token } = body;
    let access = token(access_token)?;
    if token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    let refresh = match refresh_token.filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(token(text)?),
    };
    let seconds = match expires_in {
        None => None,
        Some(Lifetime::Number(seconds)) => Some(seconds),
        Some(Lifetime::Text(text)) => Some(text.parse().ok()?),
    };
    let lifetime = seconds.map_or(MAX_UNNAMED_LIFETIME, Duration::from_secs).min(MAX_LIFETIME);
    Some(GivenTokens { access, refresh, lifetime })
}

/// Returns a token that a header can have. One with a line feed could add a header.
pub(crate) fn token(text: String) -> Option<Secret> {
    let text = Secret::new(text);
    let is_token = (1..=MAX_TOKEN).contains(&text.expose().len())
        && text.expose().bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then_some(text)
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

    fn fault(status: u16, body: &str) -> RefreshFault {
        read(StatusCode::from_u16(status).unwrap(), body.as_bytes()).unwrap_err()
    }

    fn tokens(body: &str) -> GivenTokens {
        read(StatusCode::OK, body.as_bytes()).unwrap()
    }

    #[test]
    fn tokens_and_lifetimes_are_read() {
        let given =
            tokens(r#"{"access_token":"a","token_type":"Bearer","expires_in":60,"refresh_token":"r"}"#);
        assert_eq!((given.access.expose(), given.refresh.unwrap().expose()), ("a", "r"));
        assert_eq!(given.lifetime, Duration::from_secs(60));
        let given = tokens(r#"{"access_token":"a","expires_in":"60","refresh_token":""}"#);
        assert!(given.refresh.is_none());
        assert_eq!(given.lifetime, Duration::from_secs(60));
        assert_eq!(tokens(r#"{"access_token":"a"}"#).lifetime, MAX_UNNAMED_LIFETIME);
        let long = format!(r#"{{"access_token":"a","expires_in":{}}}"#, u64::MAX);
        assert_eq!(tokens(&long).lifetime, MAX_LIFETIME);
    }

    #[test]
    fn refusals_differ_from_failures() {
        for (status, body, expected) in [
            (400, r#"{"error":"invalid_grant"}"#, RefreshFault::InvalidGrant),
            (200, r#"{"error":"bad_refresh_token"}"#, RefreshFault::InvalidGrant),
            (401, r#"{"error":"invalid_client"}"#, RefreshFault::Refused("invalid_client".to_owned())),
            (400, r#"{"error":"a\nb"}"#, RefreshFault::Refused("an unknown code".to_owned())),
            (404, "canary", RefreshFault::Refused("it answered 404".to_owned())),
            (503, r#"{"error":"invalid_grant"}"#, RefreshFault::Unavailable("it answered 503".to_owned())),
            (429, "", RefreshFault::Unavailable("it answered 429".to_owned())),
        ] {
            assert_eq!(fault(status, body), expected, "{status} {body}");
        }
        assert!(matches!(fault(302, ""), RefreshFault::Refused(problem) if problem.contains("redirects")));
    }

    #[test]
    fn an_odd_token_is_not_taken() {
        let long = format!(r#"{{"access_token":"{}"}}"#, "a".repeat(MAX_TOKEN + 1));
        for body in [
            r#"{"access_token":"a\nx-evil: 1"}"#,
            r#"{"access_token":"a\r\nb"}"#,
            r#"{"access_token":""}"#,
            r#"{"access_token":"a b"}"#,
            r#"{"access_token":"a","token_type":"mac"}"#,
            r#"{"access_token":"a","refresh_token":"r\nx"}"#,
            r#"{"access_token":"a","expires_in":-1}"#,
            r#"{"access_token":["a"]}"#,
            "{}",
            "canary",
            r#"[["a"]]"#,
            r#"{"access_token":"a","access_token":"b"}"#,
            &long,
            &raw_nest(15),
        ] {
            let fault = fault(200, body);
            assert!(matches!(&fault, RefreshFault::Unavailable(text) if !text.contains("canary")), "{body}");
        }
    }
}
