//! Finds a secret that is spread over the texts of several events, which clients join.
//!
//! An event waits only while half of a secret has come. So no stream pauses for an agent that guesses some letters and
//! could otherwise find out the others one by one.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};

use super::shape::Leaf;
use crate::mask::{Mask, Match};

/// Most bytes of events that wait. Beyond them, what has come of a secret counts as one.
const MAX_WAITING: usize = 64 << 10;

/// The events of one stream that wait, and why.
#[derive(Debug)]
pub(super) struct SplitSecrets {
    mask: Arc<Mask>,
    partial: Vec<PartialSecret>,
    waiting: VecDeque<Bytes>,
    /// Number of the first event that waits.
    first: usize,
    bytes: usize,
}

/// A secret of which the beginning has come.
#[derive(Debug)]
struct PartialSecret {
    channel: u64,
    secret: usize,
    matched: usize,
    /// Position of the secret: numbers of events, and places in them.
    parts: Vec<(usize, Range<usize>)>,
}

impl SplitSecrets {
    pub(super) fn new(mask: Arc<Mask>) -> Self {
        Self { mask, partial: Vec::new(), waiting: VecDeque::new(), first: 0, bytes: 0 }
    }

    pub(super) fn mask(&self) -> &Mask {
        &self.mask
    }

    pub(super) fn shared_mask(&self) -> Arc<Mask> {
        Arc::clone(&self.mask)
    }

    /// Takes `event`, which has the texts `leaves`. Calls `pass` with each event that may pass.
    pub(super) fn follow(&mut self, event: Bytes, leaves: &[Leaf], mut pass: impl FnMut(Bytes)) {
        let touches = |leaf: &Leaf| self.mask.partial_matches(&event[leaf.from..leaf.to]).next().is_some();
        if self.partial.is_empty() && !leaves.iter().any(touches) {
            return pass(event);
        }
        let number = self.first + self.waiting.len();
        self.bytes += event.len();
        self.waiting.push_back(event.clone());
        for leaf in leaves.iter().filter(|leaf| leaf.from < leaf.to) {
            self.note(number, leaf, &event);
        }
        if self.bytes > MAX_WAITING {
            self.cover_partial();
        }
        let needed = self.partial.iter().filter(|partial| self.mask.is_half(partial.secret, partial.matched));
        let needed = needed.filter_map(|partial| partial.parts.first()).map(|(number, _)| *number).min();
        while self.first < needed.unwrap_or(usize::MAX)
            && let Some(event) = self.waiting.pop_front()
        {
            self.first += 1;
            self.bytes -= event.len();
            pass(event);
        }
    }

    /// Lets all waiting events pass. Later texts are not compared with them, so the beginning of a secret counts as
    /// one.
    pub(super) fn give_up(&mut self, pass: impl FnMut(Bytes)) {
        self.cover_partial();
        self.rest(pass);
    }

    /// Lets all waiting events pass: the stream ends, and no secret continues.
    pub(super) fn rest(&mut self, pass: impl FnMut(Bytes)) {
        self.partial.clear();
        self.bytes = 0;
        self.first += self.waiting.len();
        self.waiting.drain(..).for_each(pass);
    }

    /// Compares the text of `leaf` with the secrets that have begun in its channel, and finds those that begin in it.
    fn note(&mut self, number: usize, leaf: &Leaf, event: &[u8]) {
        let text = &event[leaf.from..leaf.to];
        let (mut going_on, elsewhere): (Vec<_>, Vec<_>) = std::mem::take(&mut self.partial)
            .into_iter()
            .partition(|partial| partial.channel == leaf.channel);
        self.partial = elsewhere;
        for mut partial in going_on.drain(..) {
            match self.mask.continue_match(partial.secret, partial.matched, text) {
                Match::Whole(length) => {
                    partial.parts.push((number, leaf.from..leaf.from + length));
                    self.cover(&partial.parts);
                }
                Match::Part(matched) => {
                    partial.matched = matched;
                    partial.parts.push((number, leaf.from..leaf.to));
                    self.partial.push(partial);
                }
                Match::Not => {}
            }
        }
        let begins = self.mask.partial_matches(text).map(|(secret, at, matched)| {
            let parts = vec![(number, leaf.from + at..leaf.to)];
            PartialSecret { channel: leaf.channel, secret, matched, parts }
        });
        self.partial.extend(begins);
    }

    fn cover_partial(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        partial.iter().for_each(|partial| self.cover(&partial.parts));
    }

    /// Overwrites `parts` of events that still wait.
    fn cover(&mut self, parts: &[(usize, Range<usize>)]) {
        for (number, range) in parts {
            let event = number.checked_sub(self.first).and_then(|at| self.waiting.get_mut(at));
            if let Some(event) = event {
                let mut covered = BytesMut::from(&event[..]);
                covered[range.clone()].fill(b'*');
                *event = covered.freeze();
            }
        }
    }
}
