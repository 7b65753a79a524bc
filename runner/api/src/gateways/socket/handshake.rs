//! Begins a connection: the challenge, `connect`, and who is at the other end.
//!
//! A client says who it is in `auth.token`, or by the cookie of a browser session that came with its request. A device is
//! not needed, and ignored. Wrong tokens count as attempts to sign in.

use std::{sync::Arc, time::Duration};

use platform_core::id::PrincipalId;
use platform_runtime::random;
use runner_model::principal::{ApiToken, BrowserSessionHash, PrincipalRole};
use runner_telemetry::metrics::SignInWay;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    channel::{FromClient, MAX_FRAME, SocketChannel},
    clock::now,
    methods,
    params::{ClosedList, MethodParams},
    refusal::{Farewell, SocketRefusal},
    tenant::{SocketTenant, account_of, texts},
};
use crate::{caller::Caller, context::ApiContext, error::Error, gateways::agents::FoundGateway};

/// Longest wait for the first frame.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of ticks.
pub(super) const TICK_INTERVAL: Duration = Duration::from_secs(15);
/// Versions of the protocol that are spoken.
const OLDEST_PROTOCOL: u64 = 3;
const NEWEST_PROTOCOL: u64 = 4;
/// Delay before a client with a wrong address tries again.
const UNKNOWN_DELAY: Duration = Duration::from_secs(30);

const FRAME: ClosedList = ClosedList { read: &["type", "id", "method", "params"], ignored: &["traceparent"] };
const CONNECT: ClosedList = ClosedList {
    read: &["minProtocol", "maxProtocol", "role", "caps", "auth"],
    ignored: &[
        "client",
        "scopes",
        "device",
        "commands",
        "computerUse",
        "workerRuns",
        "permissions",
        "pathEnv",
        "modelCatalog",
        "locale",
        "userAgent",
    ],
};
const AUTH: ClosedList = ClosedList {
    read: &["token"],
    ignored: &[
        "password",
        "deviceToken",
        "bootstrapToken",
        "approvalRuntimeToken",
        "agentRuntimeIdentityToken",
    ],
};

/// Request of a client.
pub(super) struct ClientRequest {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) params: Option<platform_core::json::RawBuf>,
}

/// Connection before `connect`.
pub(super) struct Newcomer<'c> {
    pub(super) context: &'c ApiContext,
    /// Gateway that the path names.
    pub(super) gateway: &'c str,
    /// Browser session of the request.
    pub(super) session: Option<BrowserSessionHash>,
}

/// Words of a client about itself.
struct Introduction {
    protocol: u64,
    token: Option<String>,
    caps: Vec<String>,
}

impl ClientRequest {
    /// Reads a frame.
    pub(super) fn read(text: &str) -> Result<Self, SocketRefusal> {
        let frame = MethodParams::of_frame(text, MAX_FRAME, FRAME)?;
        let kind: String = frame.required("type")?;
        if kind != "req" {
            return Err(frame.refuse("at /type: must be \"req\""));
        }
        let id = frame.text("id")?;
        let method = frame.text("method")?;
        if id.len() > 256 || method.len() > 128 {
            return Err(frame.refuse("`id` has at most 256 bytes, and `method` 128"));
        }
        Ok(Self { id, method, params: frame.part("params").cloned() })
    }
}

impl Newcomer<'_> {
    /// Greets the client, and returns for whom the connection acts. A client that is refused is told why.
    pub(super) async fn greet(self, channel: &mut SocketChannel) -> Result<Arc<SocketTenant>, Farewell> {
        let nonce = format!("{:032x}", random::bits());
        channel.send_challenge(&json!({ "nonce": nonce, "ts": now() })).await?;
        let received = timeout(CONNECT_TIMEOUT, first_text(channel)).await;
        let text = received.map_err(|_late| Farewell::policy("connect did not come within 10 s"))??;
        let request = ClientRequest::read(&text).map_err(|refusal| refusal.farewell(1008))?;
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
        let Introduction { protocol, token, caps } = introduction(request)?;
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

impl From<SocketRefusal> for Turned {
    fn from(refusal: SocketRefusal) -> Self {
        Self::policy(refusal)
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

/// Reads what a client says of itself in `connect`.
fn introduction(request: &ClientRequest) -> Result<Introduction, Turned> {
    let params = MethodParams::of_part("connect params", request.params.as_ref(), CONNECT)?;
    let least: u64 = params.required("minProtocol")?;
    let most: u64 = params.required("maxProtocol")?;
    let protocol = most.min(NEWEST_PROTOCOL);
    if protocol < OLDEST_PROTOCOL || protocol < least {
        let message = format!(
            "protocol mismatch: the client speaks {least} to {most}, and this gateway {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL}"
        );
        return Err(Turned { refusal: SocketRefusal::invalid("PROTOCOL_MISMATCH", message), code: 1002 });
    }
    let role: Option<String> = params.optional("role")?;
    if role.is_some_and(|role| role != "operator") {
        return Err(Turned::policy(params.refuse("at /role: only \"operator\" connects here")));
    }
    let auth = MethodParams::of_part("connect params: /auth", params.part("auth"), AUTH)?;
    let token = auth.optional("token")?;
    Ok(Introduction { protocol, token, caps: texts(params.part("caps")) })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(params: &Value) -> Result<Introduction, (u16, String)> {
        let frame = json!({ "type": "req", "id": "1", "method": "connect", "params": params });
        let request = ClientRequest::read(&frame.to_string()).unwrap();
        introduction(&request)
            .map_err(|turned| (turned.code, turned.refusal.to_json()["details"]["code"].to_string()))
    }

    #[test]
    fn a_protocol_of_both_is_spoken() {
        for (least, most, spoken) in [(3, 3, 3), (3, 4, 4), (4, 4, 4), (1, 99, 4)] {
            let params = json!({ "minProtocol": least, "maxProtocol": most, "auth": { "token": "t" } });
            let found = connect(&params).unwrap_or_else(|refused| panic!("{refused:?}"));
            assert_eq!((found.protocol, found.token.as_deref()), (spoken, Some("t")), "{least} to {most}");
        }
        for (least, most) in [(1, 2), (5, 9), (4, 3)] {
            let refused = connect(&json!({ "minProtocol": least, "maxProtocol": most })).err().unwrap();
            assert_eq!(refused, (1002, "\"PROTOCOL_MISMATCH\"".to_owned()), "{least} to {most}");
        }
    }

    #[test]
    fn a_device_is_ignored_and_a_node_refused() {
        let with = |name: &str, value: Value| {
            let mut params = json!({ "minProtocol": 3, "maxProtocol": 4 });
            params[name] = value;
            connect(&params).map(|_| ()).err().map(|(code, _)| code)
        };
        assert_eq!(with("device", json!({ "id": "x" })), None);
        assert_eq!(with("role", json!("operator")), None);
        for (name, value) in
            [("role", json!("node")), ("outbound", json!(1)), ("auth", json!({ "user": "x" }))]
        {
            assert_eq!(with(name, value), Some(1008), "{name}");
        }
    }

    #[test]
    fn only_requests_are_frames() {
        for refused in [
            r#"{"type":"event","id":"1","method":"m"}"#,
            r#"{"type":"req","id":"","method":"m"}"#,
            r#"{"type":"req","id":"1"}"#,
            r#"{"type":"req","id":7,"method":"m"}"#,
            r#"{"type":"req","id":"1","method":"m","run":"r"}"#,
            "not JSON",
        ] {
            assert!(ClientRequest::read(refused).is_err(), "{refused}");
        }
        let read = ClientRequest::read(r#"{"type":"req","id":"1","method":"m","traceparent":"x"}"#).unwrap();
        assert_eq!((read.id.as_str(), read.method.as_str(), read.params.is_none()), ("1", "m", true));
    }
}
