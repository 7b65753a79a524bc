//! Builds the first request of a connection: the client's identity and rights, and the signature of a device.

use platform_core::json::Raw;
use serde::Serialize;

use super::Malformed;
use crate::{
    device::DeviceKey,
    settings::{Scope, Settings},
};

/// Client id, with `CLIENT_MODE`, to which a gateway gives its rights on the loopback.
const CLIENT_ID: &str = "gateway-client";
const CLIENT_MODE: &str = "backend";
const ROLE: &str = "operator";
const PLATFORM: &str = "linux";

/// Challenge that a gateway asks to be signed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct Challenge {
    nonce: String,
    #[serde(default)]
    ts: u64,
}

impl Challenge {
    pub(crate) fn read(payload: Option<Raw<'_>>) -> Result<Self, Malformed> {
        payload.and_then(|raw| raw.read().ok()).ok_or(Malformed)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Connect<'a> {
    min_protocol: u8,
    max_protocol: u8,
    client: Client,
    role: &'static str,
    scopes: Vec<&'static str>,
    caps: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth: Option<Auth<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Device<'a>>,
}

#[derive(Serialize)]
struct Client {
    id: &'static str,
    version: &'static str,
    platform: &'static str,
    mode: &'static str,
}

#[derive(Serialize)]
struct Auth<'a> {
    token: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Device<'a> {
    id: &'a str,
    public_key: String,
    signature: String,
    signed_at: u64,
    nonce: &'a str,
}

/// Returns the parameters of `connect`. The token is the gateway's own. With it and its key a paired device needs no
/// device token, which the hello offers: one secret less to keep.
pub(crate) fn params<'a>(settings: &'a Settings, challenge: &'a Challenge) -> Connect<'a> {
    let scopes: Vec<_> = settings.scopes.iter().map(Scope::as_str).collect();
    let token = settings.token.as_ref().map(|token| token.expose());
    let device = settings.device.as_ref().map(|key| Device {
        id: key.id(),
        public_key: key.public_key(),
        signature: signature(key, &scopes, token, challenge),
        signed_at: challenge.ts,
        nonce: &challenge.nonce,
    });
    Connect {
        min_protocol: 3,
        max_protocol: 4,
        client: Client {
            id: CLIENT_ID,
            version: env!("CARGO_PKG_VERSION"),
            platform: PLATFORM,
            mode: CLIENT_MODE,
        },
        role: ROLE,
        scopes,
        caps: settings.scopes.caps(),
        auth: token.map(|token| Auth { token }),
        device,
    }
}

/// Signs version 2 of the text. Before the hello this client does not know which versions a gateway can verify. 2026.2
/// knows this version only. 2026.9 tries version 3, which adds the kind of device, and then this one. The addition is
/// compared with the pairing anyway.
fn signature(key: &DeviceKey, scopes: &[&str], token: Option<&str>, challenge: &Challenge) -> String {
    key.sign(&signed_text(key.id(), scopes, token, challenge))
}

fn signed_text(id: &str, scopes: &[&str], token: Option<&str>, challenge: &Challenge) -> String {
    let Challenge { nonce, ts } = challenge;
    let scopes = scopes.join(",");
    let token = token.unwrap_or_default();
    format!("v2|{id}|{CLIENT_ID}|{CLIENT_MODE}|{ROLE}|{scopes}|{ts}|{token}|{nonce}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_text_is_the_one_gateways_build() {
        let challenge = Challenge { nonce: "n-1".into(), ts: 17 };
        let text = signed_text("ab", &["operator.read", "operator.write"], Some("t"), &challenge);
        assert_eq!(text, "v2|ab|gateway-client|backend|operator|operator.read,operator.write|17|t|n-1");
        assert!(signed_text("ab", &[], None, &challenge).ends_with("|operator||17||n-1"));
    }
}
