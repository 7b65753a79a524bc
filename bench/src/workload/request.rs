//! Builds the requests of all workloads.

use std::sync::Arc;

/// Run token for peers that check one: run `bench`, attempt 0, valid until 2286. Other peers receive it too and drop it
/// or pass it on.
const TOKEN: &str = "bench|0|9999999999.9kybMqZPzJIUsAIrJIDBg9fZy5TGtiMswPM9u5upHVA";

/// Secret that signs [`TOKEN`].
pub(crate) const TOKEN_SECRET: &str = "bench-secret-0123456789";

/// Returns a chat request whose body has `bytes` bytes; `model` selects the fast upstream's answer.
#[must_use]
pub fn chat(model: &str, bytes: usize) -> Arc<[u8]> {
    let stream = model.contains("events");
    let start = format!(
        "{{\"model\":\"{model}\",\"stream\":{stream},\"messages\":[{{\"role\":\"user\",\"content\":\""
    );
    let end = "\"}]}";
    let filler = "hello world ".chars().cycle().take(bytes.saturating_sub(start.len() + end.len()));
    let body: String = start.chars().chain(filler).chain(end.chars()).collect();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:8080\r\ncontent-type: application/json\r\n\
         accept: application/json\r\nuser-agent: OpenAI/Python 2.54.0\r\nauthorization: Bearer sandbox\r\n\
         x-stainless-lang: python\r\nx-run-token: {TOKEN}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
    .into()
}
