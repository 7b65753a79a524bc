//! Reads answers to `chat.history`, `agent.wait`, `sessions.patch` and `chat.abort`.
//!
//! These answers have the messages of a conversation, the state of a turn, and a session's id inside the gateway.

use platform_core::{
    id::{ModelName, RunId},
    json::{Raw, RawBuf},
};
use serde::Deserialize;

use super::{
    Malformed,
    answer::{RawUsage, stopped},
    message::text_of,
};
use crate::{
    history::{Message, MessageRole, Waited},
    outcome::{Code, Ending, TurnFailure, Usage},
};

/// Message, and the turn it belongs to, if the gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranscriptEntry {
    pub(crate) message: Message,
    pub(crate) run_id: Option<String>,
    /// True if the model itself ended the message.
    pub(crate) complete: bool,
    pub(crate) usage: Option<Usage>,
    pub(crate) model: Option<ModelName>,
}

#[derive(Deserialize)]
struct RawHistory<'a> {
    #[serde(borrow)]
    messages: Vec<RawEntry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry<'a> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: Option<Raw<'a>>,
    stop_reason: Option<String>,
    model: Option<String>,
    usage: Option<RawUsage>,
    #[serde(default, rename = "__openclaw")]
    origin: RawOrigin,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawOrigin {
    run_id: Option<String>,
}

/// Reads an answer to `chat.history`, oldest first.
pub(crate) fn read(payload: &RawBuf) -> Result<Vec<TranscriptEntry>, Malformed> {
    let raw: RawHistory<'_> = payload.read().map_err(|_error| Malformed)?;
    raw.messages.into_iter().map(RawEntry::read).collect()
}

impl RawEntry<'_> {
    fn read(self) -> Result<TranscriptEntry, Malformed> {
        let text = self.content.map(text_of).transpose()?.unwrap_or_default();
        let role = match self.role.as_str() {
            "user" => MessageRole::User,
            "assistant" => MessageRole::Assistant,
            _ => MessageRole::Other,
        };
        Ok(TranscriptEntry {
            run_id: self.origin.run_id,
            complete: self.stop_reason.as_deref() == Some("stop"),
            usage: self.usage.map(RawUsage::read),
            model: self.model.and_then(|model| ModelName::parse(&model).ok()),
            message: Message { role, text: text.trim().to_owned() },
        })
    }
}

/// Returns the answer of turn `run_id` in a conversation, where messages name their turn.
pub(crate) fn answer_of(entries: &[TranscriptEntry], run_id: &RunId) -> Option<Ending> {
    let is_ours = |entry: &&TranscriptEntry| entry.run_id.as_deref() == Some(run_id.as_str());
    last_answer(entries.iter().filter(is_ours))
}

/// Returns the last answer of a conversation, if the model came to its end. It is the turn's answer if the turn has
/// ended and no other ran since.
pub(crate) fn last_answer<'a>(
    entries: impl DoubleEndedIterator<Item = &'a TranscriptEntry>,
) -> Option<Ending> {
    let mut since = entries.rev().take_while(|entry| entry.message.role != MessageRole::User);
    let last = since.find(|entry| entry.message.role == MessageRole::Assistant)?;
    (last.complete && !last.message.text.is_empty()).then(|| Ending::Completed {
        text: last.message.text.clone(),
        usage: last.usage,
        model: last.model.clone(),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawWait {
    status: Option<String>,
    ended_at: Option<f64>,
    stop_reason: Option<String>,
    timeout_phase: Option<String>,
    #[serde(default)]
    terminal_reply: RawReply,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawReply {
    text: Option<String>,
    disposition: Option<String>,
}

/// Reads an answer to `agent.wait`. A gateway answers `timeout` for a running turn and for an unknown one. With a time
/// of its end, `timeout` means a turn that took too long.
pub(crate) fn waited(payload: &RawBuf) -> Result<Waited, Malformed> {
    let raw: RawWait = payload.read().map_err(|_error| Malformed)?;
    let aborted = stopped(raw.stop_reason.as_deref());
    let has_ended = raw.ended_at.is_some() || raw.stop_reason.is_some() || raw.timeout_phase.is_some();
    Ok(match raw.status.as_deref() {
        Some("ok") if aborted => Waited::Failed(TurnFailure::Aborted),
        Some("ok") if raw.terminal_reply.disposition.as_deref() == Some("empty") => {
            Waited::Failed(TurnFailure::NoAnswer)
        }
        Some("ok") => Waited::Completed { text: raw.terminal_reply.text },
        Some("error" | "timeout") if aborted => Waited::Failed(TurnFailure::Aborted),
        Some("error" | "timeout") if raw.timeout_phase.is_some() => Waited::Failed(TurnFailure::TimedOut),
        Some("timeout") if has_ended => Waited::Failed(TurnFailure::TimedOut),
        Some("error") => Waited::Failed(TurnFailure::Upstream { code: Code::new("error") }),
        _ => Waited::Unknown,
    })
}

#[derive(Deserialize)]
struct RawPatched {
    entry: RawSession,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSession {
    session_id: String,
}

/// Reads the session's id out of an answer to `sessions.patch`.
pub(crate) fn session_id(payload: &RawBuf) -> Result<String, Malformed> {
    let raw: RawPatched = payload.read().map_err(|_error| Malformed)?;
    Ok(raw.entry.session_id)
}

#[derive(Deserialize)]
struct RawAborted {
    #[serde(default)]
    aborted: bool,
}

/// Returns whether an answer to `chat.abort` reports that a turn was stopped.
pub(crate) fn aborted(payload: &RawBuf) -> bool {
    payload.read().is_ok_and(|raw: RawAborted| raw.aborted)
}
