//! Keeps from an agent what is not for it: the event it did not ask for, in which a stream tells its usage, and what an
//! event that tells of an error says of the upstream's insides.
//!
//! An event that has not come whole is held back, since nobody could use it yet; all others pass as they are split by
//! chance, and are looked into only where the meter has found something. Works on bytes; knows nothing of calls.

use bytes::{Bytes, BytesMut};
use memchr::{memchr2, memmem};

use super::{answer, sse};

/// Most of one event that is held back. A longer one is no usage.
const LONGEST: usize = 64 << 10;
/// As much of an overlong event stays behind, so that its end is seen wherever it was split.
const END: usize = 3;

/// What is held back of one stream.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    held: BytesMut,
    searched: Searched,
    overlong: Overlong,
}

/// How far the end of an event was looked for.
#[derive(Debug, Default, Clone, Copy)]
struct Searched {
    from: usize,
    /// Where the line began that is not at its end.
    line: usize,
}

/// What becomes of an event that is too long to be held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    /// There is none.
    #[default]
    None,
    /// The rest of it passes.
    Passes,
    /// The rest of it goes nowhere, because it seems to tell of an error.
    Goes,
}

/// What is looked for in events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Events that tell nothing but usage, to be dropped.
    pub(crate) usage: bool,
    /// Events that tell of an error, to be scrubbed.
    pub(crate) errors: bool,
}

impl Withheld {
    /// Whether nothing is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether all that passed so far were whole events, so that one of our own may follow.
    pub(crate) fn leaves_whole_events(&self) -> bool {
        self.overlong != Overlong::Passes
    }

    /// What of `piece` may go on now. `scrub` says what stands in the place of an event that tells of an error.
    pub(crate) fn pass(&mut self, piece: &[u8], look: Look, scrub: impl Fn(&[u8]) -> Bytes) -> Bytes {
        self.held.extend_from_slice(piece);
        let mut passed = BytesMut::new();
        self.pass_overlong(&mut passed);
        while self.overlong == Overlong::None
            && let Some(end) = event_end(&self.held, &mut self.searched)
        {
            let event = self.held.split_to(end);
            if look.errors && tells_error(&event) {
                passed.extend_from_slice(&scrub(&event));
            } else if !(look.usage && is_usage(&event)) {
                passed.extend_from_slice(&event);
            }
        }
        if self.overlong == Overlong::None && self.held.len() > LONGEST {
            if seems_to_tell_error(&self.held) {
                self.overlong = Overlong::Goes;
                passed.extend_from_slice(&scrub(b""));
            } else {
                self.overlong = Overlong::Passes;
            }
            self.pass_overlong(&mut passed);
        }
        passed.freeze()
    }

    /// Lets go of as much of an overlong event as is there.
    fn pass_overlong(&mut self, passed: &mut BytesMut) {
        if self.overlong == Overlong::None {
            return;
        }
        let end = event_end(&self.held, &mut self.searched);
        self.searched = Searched::default();
        let there = self.held.split_to(end.unwrap_or(self.held.len().saturating_sub(END)));
        if self.overlong == Overlong::Passes {
            passed.extend_from_slice(&there);
        }
        if end.is_some() {
            self.overlong = Overlong::None;
        }
    }

    /// What is left when the stream ends.
    pub(crate) fn rest(&mut self, scrub: impl Fn(&[u8]) -> Bytes) -> Bytes {
        let rest = self.held.split().freeze();
        match self.overlong {
            Overlong::Goes => Bytes::new(),
            Overlong::None if tells_error(&rest) => scrub(&rest),
            Overlong::None | Overlong::Passes => rest,
        }
    }
}

fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    event.split(|byte| matches!(byte, b'\n' | b'\r'))
}

fn data(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines(event).filter_map(|line| line.strip_prefix(b"data:"))
}

fn is_usage(event: &[u8]) -> bool {
    let mut data = data(event);
    match (data.next(), data.next()) {
        (Some(data), None) => answer::is_usage_only(data),
        _ => false,
    }
}

fn tells_error(event: &[u8]) -> bool {
    lines(event).any(sse::names_an_error) || data(event).any(answer::is_error)
}

/// Whether the beginning of an event has an error where another has `"error":null`.
fn seems_to_tell_error(event: &[u8]) -> bool {
    const WORD: &[u8] = b"\"error\"";
    let is_null = |at: usize| {
        let rest = event[at + WORD.len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
    };
    memmem::find_iter(event, WORD).any(|at| !is_null(at)) || lines(event).any(sse::names_an_error)
}

/// Where the first event of `bytes` ends, its blank line included, or else how far it was `searched` for.
fn event_end(bytes: &[u8], searched: &mut Searched) -> Option<usize> {
    let Searched { mut from, mut line } = std::mem::take(searched);
    while let Some(at) = memchr2(b'\n', b'\r', &bytes[from..]).map(|at| from + at) {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => at + 2,
            // Whether an LF belongs to it is not known yet.
            (b'\r', None) => {
                *searched = Searched { from: at, line };
                return None;
            }
            _ => at + 1,
        };
        if at == line && at > 0 {
            return Some(end);
        }
        (from, line) = (end, end);
    }
    *searched = Searched { from: bytes.len(), line };
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    const ALL: Look = Look { usage: true, errors: true };

    fn scrub(_: &[u8]) -> Bytes {
        Bytes::from_static(b"data: an error\n\n")
    }

    /// What passes of `stream`, fed in pieces of `size` bytes.
    fn passed(stream: &str, size: usize) -> String {
        let mut withheld = Withheld::default();
        let mut all = Vec::new();
        for piece in stream.as_bytes().chunks(size) {
            all.extend_from_slice(&withheld.pass(piece, ALL, scrub));
        }
        all.extend_from_slice(&withheld.rest(scrub));
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn only_the_event_that_tells_nothing_but_usage_is_kept_back_however_it_is_split() {
        let error = "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n";
        let with_text =
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
        let of_litellm = USAGE.replace("[]", r#"[{"index":0,"delta":{"content":null},"text":""}]"#);
        let second_finish = of_litellm.replace("\"text\":\"\"", "\"finish_reason\":\"stop\"");
        let comment = ": keep-alive\n\n";
        // OpenAI's has no choices, LiteLLM's one that says nothing.
        let litellm = USAGE.replace("[]", "[{\"index\":0,\"delta\":{}}]");
        let last_words = USAGE.replace("[]", "[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]");
        let crlf = USAGE.replace('\n', "\r\n");
        let cases = [
            (format!("{FINISH}{USAGE}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{crlf}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{error}{DONE}"), format!("{FINISH}data: an error\n\n{DONE}")),
            (format!("{FINISH}{}", error.trim_end()), format!("{FINISH}data: an error\n\n")),
            ("event: error\r\ndata: secret\r\n\r\n".to_owned(), "data: an error\n\n".to_owned()),
            (format!("{FINISH}{of_litellm}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{second_finish}{DONE}"), format!("{FINISH}{second_finish}{DONE}")),
            (format!("{FINISH}{litellm}{DONE}"), format!("{FINISH}{DONE}")),
            (format!("{FINISH}{last_words}{DONE}"), format!("{FINISH}{last_words}{DONE}")),
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
        assert_eq!(withheld.pass(&vec![b'x'; LONGEST], ALL, scrub).len(), 0);
        assert_eq!(withheld.pass(b"y", ALL, scrub).len(), LONGEST + 1 - END);
        assert!(!withheld.leaves_whole_events());
        assert_eq!(withheld.rest(scrub).len(), END);
    }

    #[test]
    fn of_an_overlong_event_nothing_passes_if_it_seems_to_tell_of_an_error() {
        let long = "x".repeat(2 * LONGEST);
        let harmless = format!("data: {{\"error\" : null,\"text\":\"{long}\"}}\n\n");
        for (event, expected) in [
            (format!("data: {{\"error\":{{\"message\":\"{long}\"}}}}\n\n"), "data: an error\n\n"),
            (format!("event: error\ndata: {long}\r\n\r\n"), "data: an error\n\n"),
            (format!("data: {{\"type\":\"error\",\"message\":\"{long}\"}}\n\n"), "data: an error\n\n"),
            (harmless.clone(), harmless.as_str()),
        ] {
            for size in [1, 2, 7, LONGEST - 1, LONGEST + 1, event.len() - 1, event.len() + 1] {
                let passed = passed(&format!("{event}{DONE}"), size);
                assert!(
                    passed == format!("{expected}{DONE}"),
                    "in pieces of {size}: {}",
                    &passed[..99.min(passed.len())]
                );
            }
        }
    }
}
