//! Rebuilds the parts of an answer from the run's stored events, as a client builds them from its stream.

use runner_store::{Run, Store};
use serde_json::{Value, json};

use super::UiStream;
use crate::error::Error;

/// Returns the parts of a run's answer: texts and calls of tools.
pub(crate) async fn parts(store: &Store, run: &Run) -> Result<Vec<Value>, Error> {
    let mut stream = UiStream::of_run(store, run).await?;
    let mut parts = Vec::new();
    let mut after = store.attempt_begin(run).await?;
    loop {
        let events = store.answer_events(&run.run_id, after).await?;
        let Some(last) = events.last() else { return Ok(parts) };
        after = last.seq;
        for stored in &events {
            stream.event(Some(stored.seq), &stored.shown()).iter().for_each(|chunk| add(&mut parts, chunk));
        }
    }
}

/// Adds a chunk of the stream to the parts of its message.
fn add(parts: &mut Vec<Value>, chunk: &Value) {
    match chunk["type"].as_str() {
        Some("text-start") => parts.push(json!({ "type": "text", "text": "", "state": "done" })),
        Some("text-delta") => {
            let text = parts.last_mut().filter(|part| part["type"] == "text");
            let text = text.map(|part| &mut part["text"]);
            if let (Some(Value::String(text)), Some(delta)) = (text, chunk["delta"].as_str()) {
                text.push_str(delta);
            }
        }
        Some("tool-input-available") => parts.push(json!({
            "type": "dynamic-tool", "toolName": chunk["toolName"], "toolCallId": chunk["toolCallId"],
            "state": "input-available", "input": chunk["input"], "providerExecuted": true,
        })),
        Some("tool-output-available") => {
            let call = parts.iter_mut().rfind(|part| part["toolCallId"] == chunk["toolCallId"]);
            if let Some(part) = call {
                part["state"] = "output-available".into();
                part["output"] = chunk["output"].clone();
            }
        }
        _ => {}
    }
}
