//! Reads what identifies the sender of a request: a token, or the cookie of a browser session.

use axum::http::{
    HeaderMap, HeaderValue, Method,
    header::{AUTHORIZATION, COOKIE},
};
use runner_model::principal::{ApiToken, BrowserSessionHash, BrowserSessionId};
use runner_store::MAX_BROWSER_SESSION_AGE;

use crate::{error::Error, origins::Origins, own_page::require_own_page};

/// Credential that a request sends.
#[derive(Debug)]
pub(crate) enum Credential {
    /// Token of a principal.
    Token(ApiToken),
    /// Cookie of a browser session. A page of the API's own origins sent the request, if that changes something.
    Session(BrowserSessionHash),
    /// No credential.
    Absent,
}

/// Cookie of browser sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionCookie {
    /// Cookie that is also sent without TLS, on the loopback.
    Plain,
    /// Cookie that only TLS carries, and that no other host can set: browsers see to it by its prefix.
    Secure,
}

impl Credential {
    /// Returns the credential of a request. A token counts more than a cookie.
    pub(crate) fn of(method: &Method, headers: &HeaderMap, origins: &Origins) -> Result<Self, Error> {
        if let Some(token) = bearer_token(headers)? {
            return Ok(Self::Token(token));
        }
        match SessionCookie::of(origins).read(headers)? {
            None => Ok(Self::Absent),
            Some(id) => {
                require_own_page(method, headers, origins)?;
                Ok(Self::Session(id.hash()))
            }
        }
    }
}

/// Returns the token of a request; `None` if it sends none.
fn bearer_token(headers: &HeaderMap) -> Result<Option<ApiToken>, Error> {
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

/// Returns the token of an `Authorization` header.
pub(crate) fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

impl SessionCookie {
    /// Returns the cookie of an API with pages of these origins.
    pub(crate) fn of(origins: &Origins) -> Self {
        if origins.are_secure() { Self::Secure } else { Self::Plain }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "sluice_session",
            Self::Secure => "__Host-sluice_session",
        }
    }

    const fn attributes(self) -> &'static str {
        match self {
            Self::Plain => "Path=/; HttpOnly; SameSite=Strict",
            Self::Secure => "Path=/; HttpOnly; SameSite=Strict; Secure",
        }
    }

    /// Returns the session of a request; `None` if it has no such cookie. Two of them are refused, because one may come
    /// from a page of another port.
    pub(crate) fn read(self, headers: &HeaderMap) -> Result<Option<BrowserSessionId>, Error> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| *name == self.name()).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => BrowserSessionId::parse(value).map(Some).ok_or(Error::Unauthenticated),
            (Some(_), Some(_)) => Err(Error::Unauthenticated),
        }
    }

    /// Returns the header that gives a browser the session `id`.
    pub(crate) fn set(self, id: &BrowserSessionId) -> String {
        let age = MAX_BROWSER_SESSION_AGE.as_secs();
        format!("{}={}; Max-Age={age}; {}", self.name(), id.expose(), self.attributes())
    }

    /// Returns the header that takes the session from a browser.
    pub(crate) fn clear(self) -> String {
        format!("{}=; Max-Age=0; {}", self.name(), self.attributes())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;
    use crate::origins::tests::origins;

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

    #[test]
    fn one_session_is_read_from_cookies() {
        let id = BrowserSessionId::from_random([1, 2]);
        for cookie in [SessionCookie::Plain, SessionCookie::Secure] {
            let own = format!("{}={}", cookie.name(), id.expose());
            for accepted in
                [vec![own.clone()], vec![format!("a=b; {own};c=d")], vec!["a=b".into(), own.clone()]]
            {
                let accepted: Vec<_> = accepted.iter().map(String::as_str).collect();
                let read = cookie.read(&headers(&COOKIE, &accepted)).unwrap().unwrap();
                assert_eq!(read.hash(), id.hash(), "{accepted:?}");
            }
            let other = format!("{}=x", cookie.name());
            let two = format!("{own}; {own}");
            for refused in [vec![other.as_str()], vec![&two], vec![&own, &other]] {
                assert!(cookie.read(&headers(&COOKIE, &refused)).is_err(), "{refused:?}");
            }
            assert!(cookie.read(&headers(&COOKIE, &["a=b"])).unwrap().is_none());
        }
        let plain = format!("sluice_session={}", id.expose());
        let read = SessionCookie::Secure.read(&headers(&COOKIE, &[&plain])).unwrap();
        assert!(read.is_none(), "a cookie without the prefix may come from elsewhere");
    }

    #[test]
    fn a_cookie_is_bound_to_its_origin() {
        let id = BrowserSessionId::from_random([1, 2]);
        let plain = SessionCookie::of(&origins("127.0.0.1:4180", ""));
        let secure = SessionCookie::of(&origins("127.0.0.1:4180", "tls_certificate = '/c'\ntls_key = '/k'"));
        let rest = format!("={}; Max-Age=604800; Path=/; HttpOnly; SameSite=Strict", id.expose());
        assert_eq!(plain.set(&id), format!("sluice_session{rest}"));
        assert_eq!(secure.set(&id), format!("__Host-sluice_session{rest}; Secure"));
        for cookie in [plain, secure] {
            assert_eq!(cookie.clear(), cookie.set(&id).replace(id.expose(), "").replace("604800", "0"));
        }
    }
}
