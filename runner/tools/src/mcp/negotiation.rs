//! negotiation checks which version of the Model Context Protocol a message speaks.
//!
//! Older versions begin with a handshake, and a header repeats the version that it chose. Since version 2026-07-28 each
//! request has its version instead, in the header and in `_meta`.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use platform_core::host_tools::mcp_request::{Asks, CAPABILITIES_KEY, McpRequest, VERSION_KEY};
use serde_json::{Value, json};

use super::answer::{
    self, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, McpResponse, RpcError, UNSUPPORTED_VERSION,
};

/// Header with the version of the protocol that the client speaks.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Versions that this server speaks, oldest first. They are dates: their order is that of their texts.
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", LAST_WITH_HANDSHAKE, NEW];
/// Newest version with a handshake.
const LAST_WITH_HANDSHAKE: &str = "2025-11-25";
/// First version without one.
const NEW: &str = "2026-07-28";

/// Way in which a message's version was agreed upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// A handshake. It cannot be seen from here, and is believed.
    Handshake,
    /// The request itself, with a version that has a handshake.
    OldPerRequest,
    /// The request itself, with a version that has none.
    New,
}

impl Lifecycle {
    pub(super) fn status_of_unknown_method(self) -> StatusCode {
        match self {
            Self::Handshake => StatusCode::OK,
            Self::OldPerRequest | Self::New => StatusCode::NOT_FOUND,
        }
    }
}

/// Reason why a message is not looked into.
#[derive(Debug)]
pub(super) enum Refusal {
    /// An unknown version, in which no error has a form.
    Words(String),
    /// A contradiction in the message, or a gap.
    Error(RpcError),
}

impl Refusal {
    pub(super) fn answer(self, id: Option<Value>) -> McpResponse {
        match self {
            Self::Words(text) => answer::words(StatusCode::BAD_REQUEST, text),
            Self::Error(error) => answer::error(StatusCode::BAD_REQUEST, id, error),
        }
    }

    fn error(code: i32, message: impl Into<String>) -> Self {
        Self::Error(RpcError::new(code, message))
    }
}

/// Returns how the version of a message was agreed upon.
///
/// # Errors
/// If it was not.
pub(super) fn lifecycle(
    headers: &HeaderMap,
    method: &str,
    request: &McpRequest,
) -> Result<Lifecycle, Refusal> {
    let header = headers.get(VERSION_HEADER).map(|value| value.to_str().ok());
    if let (Asks::Handshake(version), true) = (&request.asks, request.id.is_some()) {
        return check_handshake(header, version);
    }
    // A notification does not have its own version.
    let own = request.version.as_deref().filter(|_version| request.id.is_some());
    let header = match header {
        Some(None) => {
            return Err(Refusal::Words(
                "Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned(),
            ));
        }
        Some(Some(version)) if own.is_none() && !VERSIONS.contains(&version) => {
            let text = format!("Bad Request: Unsupported MCP-Protocol-Version: {version}");
            return Err(Refusal::Words(text));
        }
        header => header.flatten(),
    };
    let is_new = header.is_some_and(|version| version >= NEW);
    if is_new {
        check_routing_headers(method, request)?;
    }
    if request.id.is_none() {
        return Ok(Lifecycle::Handshake);
    }
    match own {
        Some(version) => check_own_version(header, version, request),
        None if is_new || request.asks == Asks::Discovery => {
            Err(Refusal::error(INVALID_PARAMS, format!("Invalid params: {}", missing(request))))
        }
        None => Ok(Lifecycle::Handshake),
    }
}

/// Checks that a header, if there is one, does not contradict the handshake.
fn check_handshake(header: Option<Option<&str>>, version: &str) -> Result<Lifecycle, Refusal> {
    let message = match header {
        Some(None) => "Invalid Request: MCP-Protocol-Version header is not valid UTF-8".to_owned(),
        Some(Some(header)) if header != version => format!(
            "Invalid Request: MCP-Protocol-Version header ({header}) does not match initialize params.protocolVersion ({version})"
        ),
        _ => return Ok(Lifecycle::Handshake),
    };
    Err(Refusal::error(INVALID_REQUEST, message))
}

/// Checks that a message can have the headers that repeat its method and name in newer versions. The data plane does not
/// pass them on, so those of a tool are taken for right, and those of all else for missing.
fn check_routing_headers(method: &str, request: &McpRequest) -> Result<(), Refusal> {
    let fault = match HeaderValue::from_str(method).map(|value| value.to_str().is_ok()) {
        Ok(true) => None,
        Ok(false) => Some("Mcp-Method header contains invalid characters"),
        Err(_unfit) => Some("missing required Mcp-Method header"),
    };
    if let Some(fault) = fault {
        return Err(Refusal::error(HEADER_MISMATCH, fault));
    }
    if request.has_name {
        let message = format!("missing required Mcp-Name header for `{method}`");
        return Err(Refusal::error(HEADER_MISMATCH, message));
    }
    Ok(())
}

/// Checks a request's own version.
fn check_own_version(
    header: Option<&str>,
    version: &str,
    request: &McpRequest,
) -> Result<Lifecycle, Refusal> {
    let mismatch = |message: String| Err(Refusal::error(HEADER_MISMATCH, message));
    match header {
        None => {
            return mismatch("request _meta protocolVersion requires MCP-Protocol-Version header".to_owned());
        }
        Some(header) if header != version => {
            return mismatch(format!(
                "MCP-Protocol-Version header ({header}) does not match request _meta protocolVersion ({version})"
            ));
        }
        Some(_same) => {}
    }
    if !VERSIONS.contains(&version) {
        let error = RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
        return Err(Refusal::Error(error.with(json!({ "requested": version, "supported": VERSIONS }))));
    }
    let is_new = version >= NEW;
    if (is_new || request.asks == Asks::Discovery) && !request.has_capabilities {
        return Err(Refusal::error(INVALID_PARAMS, missing(request)));
    }
    Ok(if is_new { Lifecycle::New } else { Lifecycle::OldPerRequest })
}

/// Returns what `_meta` lacks, in words.
fn missing(request: &McpRequest) -> String {
    let members = [(VERSION_KEY, request.version.is_some()), (CAPABILITIES_KEY, request.has_capabilities)];
    let missing: Vec<_> = members.iter().filter(|(_, is_there)| !is_there).map(|(key, _)| *key).collect();
    format!("request _meta is missing or has malformed required fields: {}", missing.join(", "))
}

/// Returns the result of a handshake for `version`: that one, or the newest with a handshake.
pub(super) fn handshake(version: &str) -> Value {
    let chosen = VERSIONS.into_iter().find(|known| *known == version && version < NEW);
    json!({
        "protocolVersion": chosen.unwrap_or(LAST_WITH_HANDSHAKE),
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    })
}

/// Returns what a client learns without a handshake.
pub(super) fn discovery() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": VERSIONS,
        "capabilities": capabilities(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn server_info() -> Value {
    json!({ "name": "sluicegate", "version": env!("CARGO_PKG_VERSION") })
}
