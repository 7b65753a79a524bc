//! Begins a connection: the challenge, `connect`, and who is at the other end.
//!
//! A client says who it is in `auth.token`, or by the cookie of a browser session that came with its request. A device is
//! not needed, and ignored. Wrong tokens count as attempts to sign in.

use std::{sync::Arc, time::Duration};

use gateway_bridge::client_frame::{ClientRequest, FrameRefusal, Introduction, MAX_FRAME, RefusalCause};
use platform_core::id::PrincipalId;
use platform_runtime::random;
use runner_model::principal::{ApiToken, BrowserSessionHash, PrincipalRole};
use runner_telemetry::metrics::SignInWay;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    channel::{FromClient, SocketChannel},
    clock::now,
    methods,
    refusal::{Farewell, SocketRefusal},
    tenant::{SocketTenant, account_of},
};
use crate::{caller::Caller, context::ApiContext, error::Error, gateways::agents::FoundGateway};

/// Longest wait for the first frame.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of ticks.
pub(super) const TICK_INTERVAL: Duration = Duration::from_secs(15);
/// Delay before a client with a wrong address tries again.
const UNKNOWN_DELAY: Duration = Duration::from_secs(30);

/// Connection before `connect`.
pub(super) struct Newcomer<'c> {
    pub(super) context: &'c ApiContext,
    /// Gateway that the path names.
    pub(super) gateway: &'c str,
    /// Browser session of the request.
    pub(super) session: Option<BrowserSessionHash>,
}

impl Newcomer<'_> {
    /// Greets the client, and returns for whom the connection acts. A client that is refused is told why.
    pub(super) async fn greet(self, channel: &mut SocketChannel) -> Result<Arc<SocketTenant>, Farewell> {
        let nonce = format!("{:032x}", random::bits());
        channel.send_challenge(&json!({ "nonce": nonce, "ts": now() })).await?;
        let received = timeout(CONNECT_TIMEOUT, first_text(channel)).await;
        let text = received.map_err(|_late| Farewell::policy("connect did not come within 10 s"))??;
        let request = ClientRequest::read(&text).map_err(|refusal| Farewell::policy(&refusal.message))?;
        let admitted = match request.method.as_str() {
            "connect" => self.admit(&request).await,
            _ => Err(Turned::policy(SocketRefusal::invalid(
                "CONNECT_FIRST",
                "invalid handshake: first request must be connect",
            ))),
        };
        match admitted {
            Ok(Admitted { tenant, protocol }) => {
                channel.respond(&request.id, &Ok(hello(&tenant, protocol))).await?;
                Ok(tenant)
            }
            Err(Turned { refusal, code }) => {
                let farewell = refusal.farewell(code);
                channel.respond(&request.id, &Err(refusal)).await?;
                Err(farewell)
            }
        }
    }

    async fn admit(self, request: &ClientRequest) -> Result<Admitted, Turned> {
        let Introduction { protocol, token, caps } = Introduction::read(request)?;
        let caller = self.identify(token).await?;
        let settings = self.context.settings().get();
        let found =
            FoundGateway::find(&settings, &caller, self.gateway).map_err(|_absent| unknown_gateway())?;
        let permit = self.context.stream_permits.acquire(caller.name());
        let permit = permit.ok_or_else(|| Turned::busy(Error::TooManyStreams))?;
        let opened = self.context.opened().await.map_err(Turned::busy)?;
        let account = account_of(&found, &caller);
        let tenant = SocketTenant {
            context: self.context.clone(),
            opened,
            gateway: found.id.clone(),
            account,
            caller,
            caps,
            _permit: permit,
        };
        Ok(Admitted { tenant: Arc::new(tenant), protocol })
    }

    async fn identify(&self, token: Option<String>) -> Result<Caller, Turned> {
        let store = &self.context.opened().await.map_err(Turned::busy)?.store;
        let found = match (token, &self.session) {
            (Some(token), _) => match ApiToken::parse(&token) {
                None => None,
                Some(token) => store.authenticate(&token).await.map_err(Error::from).map_err(Turned::busy)?,
            }
            .map(|principal| Caller::Principal(Box::new(principal))),
            (None, Some(session)) => {
                let found = store.authenticate_browser(session).await.map_err(Error::from);
                let found = found.map_err(Turned::busy)?;
                found.map(|principal| Caller::Browser(Box::new(principal), session.clone()))
            }
            (None, None) => return Err(Turned::policy(no_token())),
        };
        found.ok_or_else(|| match self.context.sign_in_attempts.refused(SignInWay::Token) {
            Error::TooManyAttempts { wait } => Turned::policy(SocketRefusal::unavailable(
                "AUTH_RATE_LIMITED",
                format!("too many wrong tokens: try again in {} s", wait.as_secs() + 1),
                wait,
            )),
            _ => Turned::policy(SocketRefusal::invalid(
                "AUTH_TOKEN_MISMATCH",
                "unauthorized: token mismatch: send a token of `sluice principals add` as auth.token",
            )),
        })
    }
}

/// Client that is admitted.
struct Admitted {
    tenant: Arc<SocketTenant>,
    protocol: u64,
}

/// Client that is turned away, with the code of the close.
struct Turned {
    refusal: SocketRefusal,
    code: u16,
}

impl Turned {
    const fn policy(refusal: SocketRefusal) -> Self {
        Self { refusal, code: 1008 }
    }

    fn busy(error: Error) -> Self {
        Self { refusal: error.into(), code: 1013 }
    }
}

impl From<FrameRefusal> for Turned {
    fn from(refusal: FrameRefusal) -> Self {
        let code = if refusal.cause == RefusalCause::Protocol { 1002 } else { 1008 };
        Self { refusal: refusal.into(), code }
    }
}

fn no_token() -> SocketRefusal {
    SocketRefusal::invalid(
        "AUTH_TOKEN_MISSING",
        "unauthorized: no token: send a token of `sluice principals add` as auth.token, or sign in to the dashboard",
    )
}

fn unknown_gateway() -> Turned {
    Turned::policy(SocketRefusal::unavailable(
        "GATEWAY_UNKNOWN",
        "no such gateway for this account: `sluice gateway ls` lists them",
        UNKNOWN_DELAY,
    ))
}

/// Waits for the first text of a client.
async fn first_text(channel: &mut SocketChannel) -> Result<String, Farewell> {
    loop {
        if let FromClient::Text(text) = channel.receive().await? {
            return Ok(text);
        }
    }
}

/// Returns what a client is told of the gateway: no names, paths or numbers but its own.
fn hello(tenant: &SocketTenant, protocol: u64) -> Value {
    let mut scopes = vec!["operator.read"];
    if tenant.caller.role() >= PrincipalRole::Member {
        scopes.extend(["operator.write", "operator.approvals"]);
    }
    let connection = format!("{:032x}", random::bits());
    json!({
        "type": "hello-ok",
        "protocol": protocol,
        "server": { "version": concat!("sluicegate-", env!("CARGO_PKG_VERSION")), "connId": connection },
        "features": { "methods": methods::names(), "events": methods::EVENTS },
        "snapshot": {
            "presence": [], "health": { "ok": true, "ts": now() },
            "stateVersion": { "presence": 0, "health": 0 }, "uptimeMs": 0,
        },
        "auth": { "role": "operator", "scopes": scopes },
        "policy": {
            "maxPayload": MAX_FRAME, "maxBufferedBytes": MAX_FRAME,
            "tickIntervalMs": u64::try_from(TICK_INTERVAL.as_millis()).unwrap_or(u64::MAX),
        },
    })
}

impl SocketTenant {
    /// Returns the id of the principal, if one is at the other end.
    pub(super) fn principal_id(&self) -> Option<&PrincipalId> {
        match &self.caller {
            Caller::Anonymous(_) => None,
            Caller::Principal(principal) | Caller::Browser(principal, _) => Some(&principal.id),
        }
    }
}
