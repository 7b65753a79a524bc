//! Reads events of runs: `agent` and `chat`, in both dialects.

use std::borrow::Cow;

use platform_core::{id::ToolName, json::Raw};
use serde::Deserialize;

use super::{
    Malformed,
    message::RawMessage,
    tool::{RawTool, ToolStep},
};
use crate::outcome::{Code, ToolCall, ToolState, TurnPhase, Usage};

/// Run and session that an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventTarget<'a> {
    pub(crate) run_id: Cow<'a, str>,
    /// Session; an event without one is unattributed.
    pub(crate) session: Option<Cow<'a, str>>,
}

/// Content of an event of a run, as far as this client uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Signal<'a> {
    Text(TextPiece<'a>),
    Tool {
        name: Option<ToolName>,
        state: ToolState,
        call: Option<ToolCall>,
    },
    Phase(TurnPhase),
    Usage(Usage),
    /// The gateway reports why a turn fails, before it reports the failure.
    Hint(Hint),
    /// The conversation reports the turn's end.
    Ended(ConversationEnd),
    /// The gateway begins the run, for the first time or once more.
    Started,
    /// The event has nothing that this client uses.
    Nothing,
}

/// Piece of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPiece<'a> {
    pub(crate) source: Source,
    /// Text that was added.
    pub(crate) delta: Option<Cow<'a, str>>,
    /// Whole text of this part of the answer so far.
    pub(crate) whole: Option<Cow<'a, str>>,
    /// Part of the answer that the piece belongs to: a message between two tools is one.
    pub(crate) part: Option<Cow<'a, str>>,
    /// True if the whole replaces what was sent before.
    pub(crate) rewritten: bool,
}

/// Kind of event with the answer's text. Both kinds carry it; a turn uses the kind that comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Agent,
    Chat,
}

/// Cause of a failure, as a gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hint {
    pub(crate) code: Option<Code>,
    pub(crate) timed_out: bool,
    pub(crate) empty: bool,
}

/// End of a turn as a conversation reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConversationEnd {
    /// The turn ended with this answer; older gateways leave it out if the turn has none.
    Final(Option<String>),
    Failed(Hint),
    Aborted,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawHead<'a> {
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    session_key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow)]
    state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<Raw<'a>>,
    #[serde(borrow)]
    message: Option<Raw<'a>>,
    #[serde(borrow)]
    delta_text: Option<Cow<'a, str>>,
    #[serde(default)]
    replace: bool,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error_kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error_detail: Option<FailoverDetail<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailoverDetail<'a> {
    #[serde(borrow)]
    failover_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawData<'a> {
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
    #[serde(borrow)]
    item_id: Option<Cow<'a, str>>,
    #[serde(default)]
    replace: bool,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    output_tokens: Option<u64>,
    input_tokens: Option<u64>,
    #[serde(borrow)]
    error_observation: Option<FailoverDetail<'a>>,
    aborted: Option<bool>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timeout_phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    terminal_reply: Option<TerminalReply<'a>>,
}

#[derive(Deserialize)]
struct TerminalReply<'a> {
    #[serde(borrow)]
    disposition: Option<Cow<'a, str>>,
}

/// Reads the payload of an event called `agent` or `chat`.
pub(crate) fn read<'a>(
    name: &str,
    payload: Option<Raw<'a>>,
) -> Result<(EventTarget<'a>, Signal<'a>), Malformed> {
    let payload = payload.ok_or(Malformed)?;
    let head: RawHead<'a> = payload.read().map_err(|_error| Malformed)?;
    let target = EventTarget { run_id: head.run_id.clone(), session: head.session_key.clone() };
    let signal = if name == "chat" { chat(head)? } else { agent(&head)? };
    Ok((target, signal))
}

fn chat<'a>(head: RawHead<'a>) -> Result<Signal<'a>, Malformed> {
    let text = |raw: Raw<'_>| raw.read::<RawMessage<'_>>().map_err(|_error| Malformed)?.text();
    Ok(match head.state.as_deref() {
        Some("delta") => Signal::Text(TextPiece {
            source: Source::Chat,
            whole: head.message.map(text).transpose()?.map(Cow::Owned),
            delta: head.delta_text,
            part: None,
            rewritten: head.replace,
        }),
        Some("final") => Signal::Ended(ConversationEnd::Final(head.message.map(text).transpose()?)),
        Some("error") => {
            let reason = head.error_detail.and_then(|detail| detail.failover_reason);
            let code = reason.or_else(|| head.error_kind.clone()).map(|code| Code::new(&code));
            Signal::Ended(ConversationEnd::Failed(Hint { code, ..Hint::default() }))
        }
        Some("aborted") if head.stop_reason.as_deref() == Some("timeout") => {
            Signal::Ended(ConversationEnd::Failed(Hint { timed_out: true, ..Hint::default() }))
        }
        Some("aborted") => Signal::Ended(ConversationEnd::Aborted),
        Some("status") => match head.phase.as_deref() {
            Some("preparing_workspace" | "preparing_context") => Signal::Phase(TurnPhase::Preparing),
            Some("starting_model") => Signal::Phase(TurnPhase::Model),
            _ => Signal::Nothing,
        },
        _ => Signal::Nothing,
    })
}

fn agent<'a>(head: &RawHead<'a>) -> Result<Signal<'a>, Malformed> {
    let stream = head.stream.as_deref().unwrap_or_default();
    if !matches!(stream, "assistant" | "tool" | "lifecycle" | "usage" | "compaction") {
        return Ok(Signal::Nothing);
    }
    let Some(data) = head.data else { return Ok(Signal::Nothing) };
    if stream == "tool" {
        let event: RawTool<'a> = data.read().map_err(|_error| Malformed)?;
        let step = ToolStep::of(&event);
        return Ok(step.map_or(Signal::Nothing, |ToolStep { name, state, call }| Signal::Tool {
            name,
            state,
            call,
        }));
    }
    let data: RawData<'a> = data.read().map_err(|_error| Malformed)?;
    Ok(match stream {
        "assistant" => Signal::Text(TextPiece {
            source: Source::Agent,
            delta: data.delta,
            whole: data.text,
            part: data.item_id,
            rewritten: data.replace,
        }),
        "usage" => Signal::Usage(Usage {
            input: data.input_tokens.unwrap_or_default(),
            output: data.output_tokens.unwrap_or_default(),
            cache_read: 0,
        }),
        "compaction" => match data.phase.as_deref() {
            Some("start") => Signal::Phase(TurnPhase::Compacting),
            Some("end") => Signal::Phase(TurnPhase::Compacted),
            _ => Signal::Nothing,
        },
        "lifecycle" => lifecycle(&data),
        _ => Signal::Nothing,
    })
}

fn lifecycle<'a>(data: &RawData<'a>) -> Signal<'a> {
    match data.phase.as_deref() {
        Some("start") => Signal::Started,
        // Older gateways report no more than this when a turn takes too long.
        Some("end") if data.aborted == Some(true) && data.stop_reason.is_none() => {
            Signal::Hint(Hint { timed_out: true, ..Hint::default() })
        }
        Some("model") if data.model.is_some() => Signal::Phase(TurnPhase::Model),
        Some("waiting-approval") => Signal::Phase(TurnPhase::WaitingForApproval),
        Some("approval-resolved") => Signal::Phase(TurnPhase::ApprovalResolved),
        Some("error") => {
            let reason = data.error_observation.as_ref().and_then(|detail| detail.failover_reason.as_deref());
            let reply = data.terminal_reply.as_ref().and_then(|reply| reply.disposition.as_deref());
            Signal::Hint(Hint {
                code: reason.map(Code::new),
                timed_out: data.timeout_phase.is_some(),
                empty: reply == Some("empty"),
            })
        }
        // After an error the gateway may try again; only the last failed attempt reports `error`.
        Some("finishing") if data.error_observation.is_none() => Signal::Phase(TurnPhase::Finishing),
        _ => Signal::Nothing,
    }
}
