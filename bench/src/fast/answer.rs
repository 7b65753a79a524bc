//! Prepared bytes of answers.

use crate::measure::clock;

/// An answer in one piece: 600 bytes of body, as a short chat completion has.
pub(super) const DOCUMENT: &[u8] = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 600\r\n\r\n",
    "{\"id\":\"chatcmpl-fast\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"fast\",",
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"",
    "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream. ",
    "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream. ",
    "Hello from the fast upstream. Hello from the fast upstream. Hello from the fast upstream.\"},",
    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":250,\"completion_tokens\":42,\"total_tokens\":292,",
    "\"prompt_tokens_details\":{\"cached_tokens\":0}},\"system_fingerprint\":\"fp_0123456789ab\"}",
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

/// Returns one event as a chunk of its own, with the time of its writing in nanoseconds of [`clock`].
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
        let document = std::str::from_utf8(DOCUMENT).unwrap();
        assert_eq!(document.split_once("\r\n\r\n").unwrap().1.len(), 600);
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
