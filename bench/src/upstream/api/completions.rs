//! Shapes the answers of `/v1/completions`, the legacy API. It has no tools: the arguments of a call become text.

use serde_json::json;

use super::{Event, Written, chat::Envelope};
use crate::upstream::{answer::Answer, ask::Ask};

pub(super) fn whole(answer: &Answer) -> Written {
    let usage = answer.usage.map(|usage| usage.of_completions());
    super::json(&Envelope { usage, ..envelope(answer, &answer.says.whole(), Some("stop")) })
}

pub(super) fn events(ask: &Ask, answer: &Answer) -> serde_json::Result<Vec<Event>> {
    let mut events = Vec::new();
    for part in answer.says.parts() {
        events.push(Event::data(&envelope(answer, part, None))?.content());
    }
    events.push(Event::data(&envelope(answer, "", Some("stop")))?);
    if let Some(usage) = answer.usage.filter(|_| ask.wants_usage_chunk()) {
        let usage = Some(usage.of_completions());
        events.push(Event::data(&Envelope { choices: json!([]), usage, ..envelope(answer, "", None) })?);
    }
    events.push(Event::done());
    Ok(events)
}

fn envelope<'a>(answer: &'a Answer, text: &str, finish_reason: Option<&str>) -> Envelope<'a> {
    Envelope {
        id: answer.id("cmpl-"),
        object: "text_completion",
        created: answer.created,
        model: &answer.model,
        choices: json!([{ "text": text, "index": 0, "logprobs": null, "finish_reason": finish_reason }]),
        usage: None,
    }
}
