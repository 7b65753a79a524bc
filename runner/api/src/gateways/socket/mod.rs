//! Serves a gateway to OpenClaw's own clients over a WebSocket: for them, this API is the gateway.
//!
//! Nothing that a client sends reaches the gateway as it is. Each method that passes has a closed list of parameters, and
//! is answered from the store within the account (`methods`). Turns become stored runs, and their events become those of
//! the protocol (`transcript`). So names of other accounts, the gateway's token and its paths are not there to be shown.
//!
//! Start reading at [`open`], then `handshake`, `connection` and `methods`.

mod channel;
mod clock;
mod connection;
mod followed;
mod handshake;
mod methods;
mod refusal;
mod session_key;
mod tenant;
mod transcript;

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
        },
    },
    response::{IntoResponse, Response},
};
use hyper::upgrade::{OnUpgrade, on};
use platform_runtime::{report, task};
use runner_model::principal::BrowserSessionHash;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use self::{channel::SocketChannel, connection::GatewayConnection, handshake::Newcomer};
use crate::{
    body::{ObjectId, refuse_query},
    context::ApiContext,
    credentials::SessionCookie,
    error::Error,
    operation::{AnswerSpec, Operation},
    origins::Origins,
    problem::Problem,
    socket_place::SocketPlace,
};

const WEBSOCKET: &str = "websocket";

/// Client that asks for a WebSocket.
struct Visitor {
    context: ApiContext,
    gateway: String,
    session: Option<BrowserSessionHash>,
    place: SocketPlace,
}

/// Opens a WebSocket. The client says who it is in its first frame, or by the cookie of its browser session.
pub(crate) async fn open(
    State(context): State<ApiContext>,
    ObjectId(gateway): ObjectId,
    mut request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let accept = accept_key(request.headers())?;
    let session = browser_session(request.headers(), &context.origins)?;
    let place = request.extensions().get::<SocketPlace>().cloned().ok_or(Error::Internal)?;
    let upgrade = on(&mut request);
    let serving = Visitor { context, gateway, session, place: place.clone() }.serve(upgrade);
    task::spawn("gateway socket", place.hold(serving));
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static(WEBSOCKET)),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

pub(crate) fn open_operation() -> Operation {
    let opened = AnswerSpec::empty(
        StatusCode::SWITCHING_PROTOCOLS,
        "The connection speaks the WebSocket protocol (RFC 6455) from now on.",
    );
    Operation::new("openGatewaySocket", "Serves a gateway to OpenClaw's own clients, over a WebSocket.", opened)
        .described(
            "A client of OpenClaw connects here as to the gateway itself, in protocol 3 or 4. Its credential is the token \
             of a principal in `auth.token` of its first frame, or the cookie of a browser session, then with an `Origin` \
             of `api.origins`.",
        )
        .without_query()
        .refuses([Problem::WRONG_ORIGIN, Problem::UNAUTHENTICATED])
}

/// Returns the key that accepts a client's request for a WebSocket.
fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, Error> {
    let has = |name: &HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    let is_upgrade =
        has(&CONNECTION, "upgrade") && has(&UPGRADE, WEBSOCKET) && has(&SEC_WEBSOCKET_VERSION, "13");
    match key {
        Some(key) if is_upgrade => {
            HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_never| Error::Internal)
        }
        _ => Err(Error::Invalid(
            "this path is a WebSocket: connect a client of OpenClaw to it, with `ws:` or `wss:`".to_owned(),
        )),
    }
}

/// Returns the browser session of a request. With its cookie, the page has to be one of the API's own; no page of another
/// origin connects at all.
fn browser_session(headers: &HeaderMap, origins: &Origins) -> Result<Option<BrowserSessionHash>, Error> {
    let mut sent = headers.get_all(ORIGIN).iter();
    let is_own = match (sent.next(), sent.next()) {
        (None, _) => false,
        (Some(origin), None) if origins.contain(origin) => true,
        _ => return Err(Error::Origin),
    };
    match SessionCookie::of(origins).read(headers)? {
        Some(_) if !is_own => Err(Error::Origin),
        session => Ok(session.map(|id| id.hash())),
    }
}

impl Visitor {
    async fn serve(self, upgrade: OnUpgrade) {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => {
                return tracing::debug!(error = report::chain(&error), "a WebSocket was not opened");
            }
        };
        let mut channel = SocketChannel::of(upgraded).await;
        let Self { context, gateway, session, place } = self;
        let newcomer = Newcomer { context: &context, gateway: &gateway, session };
        let tenant = match newcomer.greet(&mut channel).await {
            Ok(tenant) => tenant,
            Err(farewell) => return channel.close(&farewell).await,
        };
        if let Some(principal) = tenant.principal_id() {
            place.identify(principal);
        }
        tracing::info!(gateway = %tenant.gateway, by = tenant.caller.name(), "a client of a gateway connects");
        match GatewayConnection::begin(channel, tenant).await {
            Ok(connection) => connection.serve().await,
            Err(broken) => broken.close().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{origins::tests::origins, own_page::tests::headers};

    const UPGRADES: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn only_requests_for_a_websocket_are_accepted() {
        // The example of RFC 6455.
        assert_eq!(accept_key(&headers(&UPGRADES)).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for left_out in UPGRADES {
            let list: Vec<_> = UPGRADES.into_iter().filter(|header| *header != left_out).collect();
            assert!(accept_key(&headers(&list)).is_err(), "{left_out:?}");
        }
    }

    #[test]
    fn a_cookie_connects_its_own_pages_alone() {
        let own = origins("127.0.0.1:4180", "");
        let id = runner_model::principal::BrowserSessionId::from_random([1, 2]);
        let cookie = format!("sluice_session={}", id.expose());
        let session = |list: &[(&str, &str)]| browser_session(&headers(list), &own);
        let page = ("origin", "http://127.0.0.1:4180");
        assert_eq!(session(&[("cookie", &cookie), page]).unwrap(), Some(id.hash()));
        assert_eq!(session(&[page]).unwrap(), None);
        assert_eq!(session(&[]).unwrap(), None, "clients that are no browsers");
        for refused in [
            vec![("cookie", cookie.as_str())],
            vec![("cookie", &cookie), ("origin", "http://127.0.0.1:3000")],
            vec![("cookie", &cookie), page, page],
            vec![("origin", "null")],
        ] {
            assert!(matches!(session(&refused), Err(Error::Origin)), "{refused:?}");
        }
    }
}
