//! Withholds from an agent the parts of an answer that are not for it. One is a stream's usage event that the agent did
//! not request. Others are data that is not an event of an answer, and the proxy's own secrets.
//!
//! An event that has not come whole is held back: it is of no use yet. Only events that are recognised as an
//! answer's pass as they are, and usually without a copy. Works on bytes; knows nothing of calls.

mod document;
mod event;
mod names;
mod overlong;
mod pieces;
mod shape;
mod split_secrets;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use platform_core::route::Route;

pub(crate) use self::document::DocumentFilter;
use self::{
    event::{Verdict, cleaned, judge},
    names::Expected,
    overlong::Overlong,
    pieces::{EventSearch, PassedBytes, blank_line, event_end},
    shape::Shape,
    split_secrets::SplitSecrets,
    template::Template,
};
use super::{answer, byte_order_mark};
use crate::mask::Mask;

/// Most of one event that is held back. A longer one is judged by its beginning, and then while it passes.
const MAX_HELD: usize = 64 << 10;

/// Held-back bytes of one stream.
#[derive(Debug)]
pub(crate) struct EventFilter {
    /// Most of one event that is held back.
    longest: usize,
    held: BytesMut,
    search: EventSearch,
    overlong: Overlong,
    shape: Shape,
    template: Template,
    split_secrets: SplitSecrets,
    position: StreamPosition,
    failed: bool,
}

/// Party that the event is for in which a stream reports its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageEventFor {
    /// The agent, which requested it; or it was not requested.
    Agent,
    /// Sluicegate alone, which requested it.
    Sluicegate,
}

/// Position in a stream: a byte order mark may come only at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPosition {
    Start,
    Later,
}

impl EventFilter {
    /// Creates a filter for a stream of `route`, in which `mask` covers secrets.
    pub(crate) fn new(route: Route, mask: Arc<Mask>) -> Self {
        Self::bounded(route, mask, MAX_HELD)
    }

    /// Creates a filter that holds back at most `longest` bytes of an event.
    pub(crate) fn bounded(route: Route, mask: Arc<Mask>, longest: usize) -> Self {
        Self {
            longest,
            held: BytesMut::new(),
            search: EventSearch::default(),
            overlong: Overlong::None,
            shape: Shape::new(Expected::Event(route)),
            template: Template::default(),
            split_secrets: SplitSecrets::new(mask),
            position: StreamPosition::Start,
            failed: false,
        }
    }

    /// Returns the number of bytes of events that have not come whole.
    #[cfg(feature = "internals")]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns whether anything came that is not an event of an answer.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether all that passed so far were whole events, so that one of our own may follow.
    pub(crate) const fn leaves_whole_events(&self) -> bool {
        !matches!(self.overlong, Overlong::Passing(_))
    }

    /// Returns the part of `piece` that may pass now, with bytes that were held. An event that reports nothing but
    /// usage does not, if the usage is for Sluicegate; `redact` replaces an event that belongs to no answer.
    pub(crate) fn follow(
        &mut self,
        piece: Bytes,
        usage: UsageEventFor,
        redact: impl Fn(&[u8]) -> Bytes,
    ) -> Bytes {
        let mut rest = piece;
        if !self.held.is_empty() {
            self.held.extend_from_slice(&rest);
            let goes_on = self.overlong.is_none() && self.held.len() <= self.longest;
            // A CR that was held is its own line end as soon as no LF follows it.
            let begins_blank = blank_line(&self.held) > 0;
            if goes_on && !begins_blank && event_end(&self.held, &mut self.search).is_none() {
                return Bytes::new();
            }
            self.search = EventSearch::default();
            rest = self.held.split().freeze();
        }
        let mut passed = PassedBytes::of(rest.clone());
        while !rest.is_empty() {
            if !self.overlong.is_none() {
                if self.pass_overlong(&mut rest, &mut passed, &redact) {
                    continue;
                }
                break;
            }
            // It belongs to no event, and may be the rest of a line end of which a CR has passed.
            let blank = blank_line(&rest);
            if blank > 0 {
                self.search = EventSearch::default();
                self.position = StreamPosition::Later;
                passed.push(rest.split_to(blank));
                continue;
            }
            if self.pass_alike(&mut rest, &mut passed) {
                continue;
            }
            match event_end(&rest, &mut self.search) {
                Some(end) if end <= self.longest => {
                    let event = rest.split_to(end);
                    self.take(event, usage, &mut passed, &redact);
                }
                // Also if it has come whole: its treatment must not depend on how it is split.
                _ if rest.len() > self.longest => self.begin_overlong(&mut rest, &mut passed, &redact),
                _ => break,
            }
        }
        self.held.extend_from_slice(&rest);
        passed.finish()
    }

    /// Lets an event pass that differs from the last one in its texts only, and returns whether there was one.
    fn pass_alike(&mut self, rest: &mut Bytes, passed: &mut PassedBytes) -> bool {
        let Some(alike) = self.template.find(rest).filter(|alike| alike.length <= self.longest) else {
            return false;
        };
        let mask = self.split_secrets.mask();
        let text = &rest[alike.leaf.from..alike.leaf.to];
        if mask.find(text, 0).is_some() || mask.find(alike.other, 0).is_some() {
            return false;
        }
        let leaf = alike.leaf;
        let event = rest.split_to(alike.length);
        self.split_secrets.follow(event, &[leaf], |event| passed.push(event));
        true
    }

    /// Judges an event that has come whole.
    fn take(
        &mut self,
        mut event: Bytes,
        usage: UsageEventFor,
        passed: &mut PassedBytes,
        redact: &impl Fn(&[u8]) -> Bytes,
    ) {
        self.skip_mark(&mut event, passed);
        let verdict = judge(&event, &mut self.shape);
        let is_answer = matches!(verdict, Verdict::Answer | Verdict::NeedsCleaning);
        if is_answer && usage == UsageEventFor::Sluicegate && is_usage(&event) {
            return;
        }
        let judged = match verdict {
            Verdict::Answer => {
                let covered = self.split_secrets.mask().cover(event.clone());
                if covered.as_ptr() == event.as_ptr() {
                    self.template.learn(&event, &self.shape);
                }
                covered
            }
            Verdict::NeedsCleaning => self.read_again(&cleaned(&event)),
            Verdict::Unfinished | Verdict::Foreign => {
                self.failed = true;
                self.read_again(&redact(&event))
            }
        };
        self.split_secrets.follow(judged, self.shape.leaves(), |event| passed.push(event));
    }

    /// Covers the secrets of an event that was rewritten, and notes its texts.
    fn read_again(&mut self, event: &Bytes) -> Bytes {
        judge(event, &mut self.shape);
        self.split_secrets.mask().cover(event.clone())
    }

    /// Lets a byte order mark pass, which belongs to no line.
    fn skip_mark(&mut self, event: &mut Bytes, passed: &mut PassedBytes) {
        if self.position == StreamPosition::Start && event.starts_with(byte_order_mark::BYTES) {
            passed.push(event.split_to(byte_order_mark::BYTES.len()));
        }
        self.position = StreamPosition::Later;
    }

    /// Returns the whole events that wait because a secret may have begun in them: the stream breaks off.
    pub(crate) fn waiting(&mut self) -> Bytes {
        let mut passed = PassedBytes::of(Bytes::new());
        self.split_secrets.rest(|event| passed.push(event));
        passed.finish()
    }

    /// Returns the bytes that are left when the stream ends.
    pub(crate) fn rest(&mut self, redact: impl Fn(&[u8]) -> Bytes) -> Bytes {
        let mut rest = self.held.split().freeze();
        let mut passed = PassedBytes::of(Bytes::new());
        if !self.overlong.is_none() {
            return self.end_overlong(rest);
        }
        if !rest.is_empty() {
            self.skip_mark(&mut rest, &mut passed);
            let last = match judge(&rest, &mut self.shape) {
                Verdict::Answer | Verdict::Unfinished => self.split_secrets.mask().cover(rest),
                Verdict::NeedsCleaning => self.read_again(&cleaned(&rest)),
                Verdict::Foreign => {
                    self.failed = true;
                    self.read_again(&redact(&rest))
                }
            };
            self.split_secrets.follow(last, self.shape.leaves(), |event| passed.push(event));
        }
        self.split_secrets.rest(|event| passed.push(event));
        passed.finish()
    }
}

/// Returns whether an event reports nothing but usage. An event without the word needs no second reading.
fn is_usage(event: &[u8]) -> bool {
    if memmem::find(event, b"\"usage\"").is_none() {
        return false;
    }
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    match (data.next(), data.next()) {
        (Some(data), None) => answer::is_usage_only(data),
        _ => false,
    }
}
