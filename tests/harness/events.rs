//! Reads streamed answers as a chat client does.

use serde_json::Value;

/// Returns the events of a stream, each as it is on the wire, without the blank line that ends it.
#[must_use]
pub fn events(stream: &str) -> Vec<&str> {
    stream.split("\n\n").filter(|event| !event.is_empty()).collect()
}

/// Returns the pieces of text in a chat stream.
#[must_use]
pub fn spoken(stream: &str) -> Vec<String> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let pieces =
        chunks.filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()));
    pieces.filter(|piece| !piece.is_empty()).collect()
}
