//! Reads requests for approvals as a gateway describes them. Pure.
//!
//! OpenClaw sends a text for people, not the command itself. It hides what looks like a secret, and cuts what is long
//! (measured with OpenClaw 2026.9.6).

use platform_core::json::{Raw, RawBuf};
use runner_model::gateway_agent::AskedCommand;
use runner_store::UnixMillis;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Longest id of a request.
const MAX_ID: usize = 128;
/// Most requests that are read from one list.
const MAX_LISTED: usize = 1000;

/// Request for an approval.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalRequest {
    id: String,
    request: RequestedCommand,
    expires_at_ms: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedCommand {
    command: String,
    cwd: Option<String>,
    host: Option<String>,
    node_id: Option<String>,
    env_keys: Option<Vec<String>>,
    warning_text: Option<String>,
    session_key: Option<String>,
}

/// Reads a list of requests. One that cannot be read hides no other.
pub(super) fn read_list(answer: &RawBuf) -> Vec<ApprovalRequest> {
    let listed: Vec<Raw<'_>> = answer.read().unwrap_or_default();
    listed.into_iter().take(MAX_LISTED).filter_map(|one| one.read().ok()).filter(is_named).collect()
}

/// Reads one request.
pub(super) fn read_one(payload: &RawBuf) -> Option<ApprovalRequest> {
    payload.read().ok().filter(is_named)
}

/// Returns whether the id is one that a person can name in a command.
fn is_named(request: &ApprovalRequest) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_ID).contains(&request.id.len()) && request.id.bytes().all(is_plain)
}

impl ApprovalRequest {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.request.session_key.as_deref()
    }

    /// Returns the time at which the gateway ends the request itself.
    pub(super) fn expires(&self) -> Option<UnixMillis> {
        self.expires_at_ms.map(UnixMillis)
    }

    /// Returns what a person decides about, in a session that works in the directory `own`.
    pub(super) fn asked(&self, own: &str) -> AskedCommand {
        let RequestedCommand { command, cwd, host, node_id, env_keys, warning_text, .. } =
            self.request.clone();
        AskedCommand {
            command,
            in_own_directory: cwd.as_deref() == Some(own),
            directory: cwd,
            environment: env_keys.unwrap_or_default(),
            host: node_id.map(|node| format!("node {node}")).or(host),
            warning: warning_text,
        }
    }

    /// Returns the command and its directory as JSON, with at most `max` bytes of the command.
    pub(super) fn excerpt(&self, max: usize) -> String {
        let RequestedCommand { command, cwd, .. } = &self.request;
        let kept = &command[..command.floor_char_boundary(max.min(command.len()))];
        let cut = command.len() - kept.len();
        let command = if cut == 0 { kept.to_owned() } else { format!("{kept}… [{cut} more bytes]") };
        json!({ "command": command, "directory": cwd }).to_string()
    }
}

/// Returns a digest of what a person decides about.
pub(super) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use platform_core::json::{self, Bounds};
    use serde_json::Value;

    use super::*;

    fn raw(value: &Value) -> RawBuf {
        json::from_str(&value.to_string(), Bounds::of(1 << 20)).unwrap()
    }

    fn request(more: &Value) -> Option<ApprovalRequest> {
        let mut request =
            json!({ "command": "make test", "cwd": "/w", "host": "gateway", "sessionKey": "s" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read_one(&raw(&json!({ "id": "a-1", "request": request, "expiresAtMs": 5 })))
    }

    #[test]
    fn a_person_is_told_what_is_unusual() {
        let usual = request(&json!({ "envKeys": [] })).unwrap().asked("/w");
        assert!(usual.in_own_directory && usual.allowable().is_ok(), "{usual:?}");
        assert!(!request(&json!({})).unwrap().asked("/other").in_own_directory);
        let odd = json!({ "envKeys": ["PATH"], "warningText": "odd", "nodeId": "gateway" });
        let odd = request(&odd).unwrap().asked("/w");
        assert_eq!((odd.environment, odd.warning), (vec!["PATH".to_owned()], Some("odd".to_owned())));
        assert_eq!(odd.host.as_deref(), Some("node gateway"));
    }

    #[test]
    fn one_bad_request_hides_no_other() {
        let good = json!({ "id": "a", "request": { "command": "ls" } });
        let list = json!([{ "id": 1 }, good, { "id": "x;y", "request": { "command": "ls" } }, null]);
        let read = read_list(&raw(&list));
        assert_eq!(read.iter().map(ApprovalRequest::id).collect::<Vec<_>>(), ["a"]);
        assert!(read_list(&raw(&json!({}))).is_empty());
        let long = json!({ "id": "x".repeat(MAX_ID + 1), "request": { "command": "ls" } });
        assert!(read_one(&raw(&long)).is_none());
    }
}
