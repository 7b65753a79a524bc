//! Finds the proxy's own secrets in what is sent to an agent, and overwrites them with asterisks.
//!
//! A masked secret keeps its length, so nothing around it shifts. A secret is also found where JSON escapes some of its
//! letters. Works on bytes; knows nothing of calls.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2_iter, memmem::Finder};

#[cfg(test)]
mod tests;

/// Shortest secret that is masked: a shorter one could occur in an answer by chance.
pub(crate) const MIN_SECRET: usize = 16;
/// Longest form of one letter: `\u0073`.
const MAX_LETTER: usize = 6;
/// Searcher for the beginning of every ASCII letter's escape. Built once: building it takes longer than searching an
/// event.
static ESCAPED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));

/// Secrets that no agent may be sent. Built once per configuration.
#[derive(Default, Clone)]
pub(crate) struct Mask {
    secrets: Vec<Finder<'static>>,
    longest: usize,
    /// Set if JSON may write one of their letters behind a single backslash.
    is_escapable: bool,
}

/// A comparison of a secret, or of what is left of one, with the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// The text begins with all of it, in this many bytes.
    Whole(usize),
    /// The text ends first; so many letters of the secret have been matched by then.
    Part(usize),
    /// The text goes on differently.
    Not,
}

impl Mask {
    /// Returns the mask of those `words` that are long enough to be secrets.
    pub(crate) fn of<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        let mut mask = Self::default();
        for word in words.filter(|word| word.len() >= MIN_SECRET) {
            if mask.words().all(|known| known != word.as_bytes()) {
                mask.longest = mask.longest.max(word.len());
                mask.is_escapable |= word.contains(['/', '"', '\\']);
                mask.secrets.push(Finder::new(word).into_owned());
            }
        }
        mask
    }

    /// Returns this mask with the secrets of an earlier one, which an upstream may still say.
    pub(crate) fn with(self, earlier: &Self) -> Self {
        let words: Vec<_> = self.words().chain(earlier.words()).map(<[u8]>::to_vec).collect();
        Self::of(words.iter().filter_map(|word| std::str::from_utf8(word).ok()))
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.secrets.iter().map(Finder::needle)
    }

    /// Returns `bytes` with every secret in them overwritten. Nothing is copied if they contain none.
    pub(crate) fn cover(&self, bytes: Bytes) -> Bytes {
        let Some(mut range) = self.find(&bytes, 0) else { return bytes };
        let mut covered = BytesMut::from(&bytes[..]);
        loop {
            covered[range.clone()].fill(b'*');
            match self.find(&bytes, range.end) {
                Some(next) => range = next,
                None => return covered.freeze(),
            }
        }
    }

    /// Returns the first secret in `bytes` behind `from`.
    pub(crate) fn find(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let rest = bytes.get(from..)?;
        let plain = self.secrets.iter().filter_map(|secret| {
            let at = secret.find(rest)?;
            Some(from + at..from + at + secret.needle().len())
        });
        let first = plain.min_by_key(|range| range.start);
        let may_be = |at: usize| self.is_escapable || ESCAPED.find(&rest[at..]).is_some();
        if !memchr(b'\\', rest).is_some_and(may_be) {
            return first;
        }
        let escaped = self.words().filter_map(|secret| {
            candidates(secret, rest).find_map(|at| match continue_match(secret, 0, &rest[at..]) {
                Match::Whole(length) => Some(from + at..from + at + length),
                Match::Part(_) | Match::Not => None,
            })
        });
        first.into_iter().chain(escaped).min_by_key(|range| range.start)
    }

    /// Returns the secrets that may begin at the end of `text`: which, where, and how many of their letters are there.
    pub(crate) fn partial_matches(&self, text: &[u8]) -> impl Iterator<Item = (usize, usize, usize)> {
        let window = text.len().saturating_sub(self.longest * MAX_LETTER);
        let end = &text[window..];
        self.words().enumerate().flat_map(move |(secret, word)| {
            candidates(word, end).filter_map(move |at| match continue_match(word, 0, &end[at..]) {
                Match::Part(matched) => Some((secret, window + at, matched)),
                Match::Whole(_) | Match::Not => None,
            })
        })
    }

    /// Returns whether `matched` letters are at least half of a secret.
    pub(crate) fn is_half(&self, secret: usize, matched: usize) -> bool {
        self.secrets.get(secret).is_some_and(|secret| 2 * matched >= secret.needle().len())
    }

    /// Compares what is left of a secret, of which `matched` letters came before, with the beginning of `text`.
    pub(crate) fn continue_match(&self, secret: usize, matched: usize, text: &[u8]) -> Match {
        self.secrets.get(secret).map_or(Match::Not, |secret| continue_match(secret.needle(), matched, text))
    }
}

/// Prints no secret.
impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.secrets.len())
    }
}

/// Returns the places in `text` where `secret` could begin.
fn candidates(secret: &[u8], text: &[u8]) -> impl Iterator<Item = usize> {
    let first = secret.first().copied().unwrap_or_default();
    memchr2_iter(first, b'\\', text)
}

fn continue_match(secret: &[u8], mut matched: usize, text: &[u8]) -> Match {
    let mut at = 0;
    while let Some(letter) = letter(&text[at..]) {
        let Letter::Is(byte, length) = letter else { break };
        if secret.get(matched) != Some(&byte) {
            return Match::Not;
        }
        matched += 1;
        at += length;
        if matched == secret.len() {
            return Match::Whole(at);
        }
    }
    Match::Part(matched)
}

/// Letter of a text as JSON writes it.
enum Letter {
    /// This letter, written in so many bytes.
    Is(u8, usize),
    /// An escape before its end has come.
    Unfinished,
}

fn letter(text: &[u8]) -> Option<Letter> {
    let other = Letter::Is(0, 1);
    Some(match text {
        [] => return None,
        [b'\\'] => Letter::Unfinished,
        [b'\\', b'u', code @ ..] => match code.get(..4) {
            Some(code) => std::str::from_utf8(code)
                .ok()
                .and_then(|code| u8::from_str_radix(code, 16).ok())
                .map_or(other, |byte| Letter::Is(byte, MAX_LETTER)),
            None if code.iter().all(u8::is_ascii_hexdigit) => Letter::Unfinished,
            None => other,
        },
        [b'\\', byte @ (b'"' | b'\\' | b'/'), ..] => Letter::Is(*byte, 2),
        [b'\\', ..] => other,
        [byte, ..] => Letter::Is(*byte, 1),
    })
}

/// Body that passes in pieces. Of each, only the possible beginning of a secret waits for the next.
#[derive(Debug)]
pub(crate) struct MaskedBody {
    mask: Arc<Mask>,
    held: Bytes,
}

impl MaskedBody {
    /// Creates a body of which nothing has passed yet.
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self { mask, held: Bytes::new() }
    }

    /// Returns the part of `piece`, and of the bytes that waited, that may pass.
    pub(crate) fn follow(&mut self, piece: Bytes) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let all = if held.is_empty() { piece } else { [held, piece].concat().into() };
        let mut covered = self.mask.cover(all);
        let end = self.mask.partial_matches(&covered).map(|(_, at, _)| at).min();
        self.held = covered.split_off(end.unwrap_or(covered.len()));
        covered
    }

    /// Returns the number of bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the bytes that still wait when the body ends.
    pub(crate) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }
}
