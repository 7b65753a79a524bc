//! Prepared bytes of answers.

use crate::measure::clock;

/// A short chat completion of 600 bytes.
macro_rules! completion {
    () => {
        concat!(
            "{\"id\":\"chatcmpl-fast\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"fast\",",
            "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"",
            "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream. ",
            "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream. ",
            "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream.\"},",
            "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":250,\"completion_tokens\":42,\"total_tokens\":292,",
            "\"prompt_tokens_details\":{\"cached_tokens\":0}},\"system_fingerprint\":\"fp_0123456789ab\"}",
        )
    };
}

/// An answer in one piece.
pub(super) const DOCUMENT: &[u8] = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 600\r\n\r\n",
    completion!()
)
.as_bytes();

/// The same with the headers of a real gateway, thirty of them.
pub(super) const AGENT_DOCUMENT: &[u8] = concat!(
    "HTTP/1.1 200 OK\r\n",
    "date: Mon, 23 Nov 2026 12:00:00 GMT\r\n",
    "server: uvicorn\r\n",
    "content-length: 600\r\n",
    "content-type: application/json\r\n",
    "x-litellm-call-id: 5a2f1f0e-6b57-4d55-9b43-0d8d1c7c1a11\r\n",
    "x-litellm-model-id: 8f8d2a6e3b1c4d5f9a7b6c5d4e3f2a1b0c9d8e7f\r\n",
    "x-litellm-model-api-base: https://api.openai.com\r\n",
    "x-litellm-version: 1.109.1\r\n",
    "x-litellm-response-cost: 0.0004215\r\n",
    "x-litellm-response-cost-original: 0.0004215\r\n",
    "x-litellm-key-tpm-limit: None\r\n",
    "x-litellm-key-rpm-limit: None\r\n",
    "x-litellm-key-max-budget: None\r\n",
    "x-litellm-key-spend: 12.3456\r\n",
    "x-litellm-response-duration-ms: 842.5\r\n",
    "x-litellm-overhead-duration-ms: 11.25\r\n",
    "x-litellm-fallback-depth: 0\r\n",
    "x-litellm-attempted-retries: 0\r\n",
    "x-litellm-attempted-fallbacks: 0\r\n",
    "x-litellm-model-group: fast\r\n",
    "x-ratelimit-limit-requests: 10000\r\n",
    "x-ratelimit-limit-tokens: 2000000\r\n",
    "x-ratelimit-remaining-requests: 9999\r\n",
    "x-ratelimit-remaining-tokens: 1998750\r\n",
    "llm_provider-x-ratelimit-limit-requests: 10000\r\n",
    "llm_provider-x-ratelimit-limit-tokens: 2000000\r\n",
    "llm_provider-openai-processing-ms: 812\r\n",
    "llm_provider-x-request-id: req_0123456789abcdef0123456789abcdef\r\n",
    "llm_provider-cf-cache-status: DYNAMIC\r\n",
    "llm_provider-strict-transport-security: max-age=31536000\r\n",
    "\r\n",
    completion!()
)
.as_bytes();

pub(super) const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Last events of a stream and the end of its body.
pub(super) const STREAM_END: &[u8] = concat!(
    "73\r\ndata: {\"id\":\"f\",\"model\":\"fast\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":64,\"total_tokens\":73}}\n\n\r\n",
    "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
)
.as_bytes();

/// Returns one event as its own chunk, with the time of its writing in nanoseconds of [`clock`].
pub(super) fn event() -> Vec<u8> {
    let event = format!(
        "data: {{\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"model\":\"fast\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word\"}}}}],\"t\":\"{:019}\"}}\n\n",
        clock::nanos()
    );
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_that_are_announced_are_right() {
        for document in [DOCUMENT, AGENT_DOCUMENT] {
            let document = std::str::from_utf8(document).unwrap();
            assert_eq!(document.split_once("\r\n\r\n").unwrap().1.len(), 600);
        }
        let end = std::str::from_utf8(STREAM_END).unwrap();
        let (length, rest) = end.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        assert_eq!(&rest[length..length + 4], "\r\ne\r");
        assert!(rest[..length].ends_with("\n\n"));
    }

    #[test]
    fn an_event_is_the_json_that_a_meter_reads() {
        let event = String::from_utf8(event()).unwrap();
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let event: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["choices"][0]["delta"]["content"], " word");
    }
}
