//! Reads what identifies the sender of a request: a token.

use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use runner_model::principal::ApiToken;

use crate::error::Error;

/// Returns the token of a request; `None` if it sends none.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Option<ApiToken>, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (value, None) => value,
        (Some(_), Some(_)) => None,
    };
    let token = value.and_then(bearer).and_then(ApiToken::parse);
    token.map(Some).ok_or(Error::Unauthenticated)
}

/// Returns whether a request sends a token, of any form. No browser does that by itself.
pub(crate) fn has_bearer(headers: &HeaderMap) -> bool {
    headers.get_all(AUTHORIZATION).iter().any(|value| bearer(value).is_some())
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_read() {
        let token = ApiToken::from_random(7, [8, 9]).expose().to_owned();
        for accepted in [format!("Bearer {token}"), format!("bearer {token}"), format!("BEARER   {token}")] {
            let headers = headers(&AUTHORIZATION, &[&accepted]);
            assert_eq!(bearer_token(&headers).unwrap().unwrap().expose(), token, "{accepted}");
            assert!(has_bearer(&headers), "{accepted}");
        }
        assert!(bearer_token(&HeaderMap::new()).unwrap().is_none());
        let twice = format!("Bearer {token}");
        for refused in
            [vec!["Bearer"], vec!["Bearer x"], vec![&token], vec!["Basic eDp5"], vec![&twice, &twice]]
        {
            assert!(bearer_token(&headers(&AUTHORIZATION, &refused)).is_err(), "{refused:?}");
        }
        assert!(!has_bearer(&headers(&AUTHORIZATION, &["Basic eDp5"])));
    }
}
