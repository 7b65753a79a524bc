//! Keeps from an agent the event it did not ask for: the one in which a stream tells its usage.
//!
//! Begins to look once the model has finished, so that until then nothing is held back, and afterwards at most one event
//! that has not come whole. Works on bytes as they are split by chance; knows nothing of calls.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use super::answer;

/// Most of one event that is held back. A longer one is no usage.
const LONGEST: usize = 64 << 10;

/// What is held back of one stream.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    held: BytesMut,
}

impl Withheld {
    /// What of `piece` may go on now. Call for every piece from the one on with which the model finished.
    pub(crate) fn pass(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        let mut passed = BytesMut::with_capacity(self.held.len());
        while let Some(end) = event_end(&self.held) {
            let event = self.held.split_to(end);
            if !is_usage(&event) {
                passed.extend_from_slice(&event);
            }
        }
        if self.held.len() > LONGEST {
            passed.extend_from_slice(&self.held.split());
        }
        passed.freeze()
    }

    /// What is left when the stream ends.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.held.split().freeze()
    }
}

fn is_usage(event: &[u8]) -> bool {
    let mut data =
        event.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| line.strip_prefix(b"data:"));
    match (data.next(), data.next()) {
        (Some(data), None) => answer::is_usage_only(data),
        _ => false,
    }
}

/// Where the first event of `bytes` ends, its blank line included.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    let mut line = 0;
    while let Some(at) = memchr2(b'\n', b'\r', &bytes[from..]).map(|at| from + at) {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => at + 2,
            // Whether an LF belongs to it is not known yet.
            (b'\r', None) => return None,
            _ => at + 1,
        };
        if at == line && at > 0 {
            return Some(end);
        }
        (from, line) = (end, end);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    /// What passes of `stream`, fed in pieces of `size` bytes.
    fn passed(stream: &str, size: usize) -> String {
        let mut withheld = Withheld::default();
        let mut all = Vec::new();
        for piece in stream.as_bytes().chunks(size) {
            all.extend_from_slice(&withheld.pass(piece));
        }
        all.extend_from_slice(&withheld.rest());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn only_the_event_that_tells_nothing_but_usage_is_kept_back_however_it_is_split() {
        let error = "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n";
        let with_text =
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
        let comment = ": keep-alive\n\n";
        // OpenAI's has no choices, LiteLLM's one that says nothing.
        let litellm = USAGE.replace("[]", "[{\"index\":0,\"delta\":{}}]");
        let last_words = USAGE.replace("[]", "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]");
        let crlf = USAGE.replace('\n', "\r\n");
        let cases = [
            (format!("{FINISH}{USAGE}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{crlf}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{litellm}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{last_words}{DONE}"), format!("{FINISH}{last_words}{DONE}")),
            (format!("{FINISH}{error}"), format!("{FINISH}{error}")),
            (format!("{with_text}{comment}{DONE}"), format!("{with_text}{comment}{DONE}")),
            (format!("{FINISH}data: {{\"choices\":[]"), format!("{FINISH}data: {{\"choices\":[]")),
        ];
        for (stream, expected) in cases {
            for size in 1..=stream.len() {
                assert_eq!(passed(&stream, size), expected, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_does_not_end_is_not_held_for_ever() {
        let mut withheld = Withheld::default();
        assert_eq!(withheld.pass(&vec![b'x'; LONGEST]).len(), 0);
        assert_eq!(withheld.pass(b"y").len(), LONGEST + 1);
    }
}
