//! Streams the text of a run's answers to its watchers as it arrives: the run's live tap. In memory only.
//!
//! The latest lines are kept for late watchers, in a ring of limited bytes. All rings together stay within a common
//! bound. A watcher slower than the ring misses lines, gets their number, and slows nothing: no line is held for a
//! watcher. The counted bytes are those requested from the allocator, not only the text.

mod rings;
#[cfg(test)]
mod tests;
mod watcher;

use std::{
    collections::VecDeque,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwapOption;
use platform_core::{
    control::{TapEvent, TapLine},
    id::CallId,
    limit::data_plane::TAP_DELTA,
    record::ExchangeRecord,
    untrusted::JournalText,
};
use platform_runtime::sync::Mutex;
use tokio::sync::Notify;

pub(crate) use self::{rings::Rings, watcher::Watcher};
use crate::{clock, usage::AnswerDelta};

/// Access of watchers to a run's answers. The ring exists from the first watcher until the run is closed: so closed
/// runs keep little, and a run without watchers costs nothing. The ring's memory is released a while after the last
/// watcher has left. From then on lines are only counted, until the next watcher comes.
#[derive(Debug, Default)]
pub(crate) struct Tap(ArcSwapOption<Ring>);

#[derive(Debug)]
struct Ring {
    contents: Mutex<RingContents>,
    more: Notify,
    watchers: AtomicUsize,
}

#[derive(Debug)]
struct RingContents {
    lines: VecDeque<TapEvent>,
    /// Number of the first line of this ring: the time, so that a later ring has greater numbers.
    begin: u64,
    /// Number of the first line that is still kept.
    first: u64,
    /// Bytes of its lines, as taken from the common bound.
    held: u64,
    rings: Arc<Rings>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Lines are kept, for watchers.
    Open,
    /// Lines are kept, and the last watcher left at this time.
    Left(Instant),
    /// Lines are only counted.
    Counting,
    /// No more lines will come.
    Closed,
}

impl Tap {
    /// Adds a watcher that has seen the line numbered `after`. The ring is one of `rings`.
    pub(crate) fn watch(&self, rings: &Arc<Rings>, after: u64) -> Watcher {
        // Of two concurrent first watchers, one creates the ring.
        let create = || Some(Arc::new(Ring::new(rings)));
        let ring = self.0.rcu(|existing| existing.clone().or_else(create)).or_else(|| self.0.load_full());
        let ring = ring.unwrap_or_else(|| Arc::new(Ring::new(rings)));
        rings.register(&ring);
        ring.watchers.fetch_add(1, Ordering::Relaxed);
        let mut contents = ring.contents();
        if contents.state != State::Closed {
            contents.state = State::Open;
        }
        let next = contents.behind(after);
        drop(contents);
        Watcher { ring, next }
    }

    /// Returns whether its lines are kept or counted.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load().is_some()
    }

    /// Returns the number of watchers.
    pub(crate) fn watchers(&self) -> usize {
        self.0.load().as_ref().map_or(0, |ring| ring.watchers.load(Ordering::Relaxed))
    }

    /// Ends the tap: no more lines will come.
    pub(crate) fn close(&self) {
        if let Some(ring) = self.0.swap(None) {
            ring.contents().state = State::Closed;
            ring.more.notify_waiters();
        }
    }

    /// Adds text or a tool call of an answer.
    pub(crate) fn push(&self, call: CallId, delta: AnswerDelta<'_>) {
        match delta {
            AnswerDelta::Text(text) => {
                pieces(text).for_each(|piece| self.append(TapEvent::Text { call, delta: piece.to_owned() }));
            }
            AnswerDelta::Tool(name) => {
                self.append(TapEvent::Tool { call, name: JournalText::of(name).as_str().to_owned() });
            }
        }
    }

    /// Adds the end of a call.
    pub(crate) fn end(&self, record: &ExchangeRecord) {
        let ExchangeRecord { litellm_call_id: call, outcome, tokens, tokens_source, .. } = *record;
        self.append(TapEvent::Ended { call, outcome, tokens, tokens_source });
    }

    fn append(&self, event: TapEvent) {
        if let Some(ring) = &*self.0.load() {
            ring.contents().push(event);
            ring.more.notify_waiters();
        }
    }
}

impl Ring {
    fn new(rings: &Arc<Rings>) -> Self {
        let begin = u64::try_from(clock::now().as_micros()).unwrap_or_default().max(1);
        let contents = RingContents {
            lines: VecDeque::new(),
            begin,
            first: begin,
            held: 0,
            rings: Arc::clone(rings),
            state: State::Open,
        };
        Self { contents: Mutex::new(contents), more: Notify::new(), watchers: AtomicUsize::new(0) }
    }

    /// Locks the ring, for a few operations in memory.
    fn contents(&self) -> MutexGuard<'_, RingContents> {
        self.contents.lock()
    }
}

/// Number of lines for which memory is allocated at a time.
const LINES_PER_GROWTH: usize = 32;
/// Bytes of a line besides its text.
const LINE_SIZE: u64 = size_of::<TapEvent>() as u64;
/// Bytes of an allocated text besides its content: the allocator's own data, and rounding.
const ALLOCATION_OVERHEAD: u64 = 16;

impl RingContents {
    /// Adds a line. Without space the oldest lines are removed; if that is not enough, the new one is missed.
    fn push(&mut self, event: TapEvent) {
        if self.state == State::Counting {
            self.first += 1;
            return;
        }
        let most = self.rings.share();
        if self.held > most {
            self.shrink(most);
        }
        while !self.reserve(size(&event), most) {
            if !self.pop() {
                self.shrink(0);
                self.first += 1;
                return;
            }
        }
        self.lines.push_back(event);
    }

    /// Takes the memory for a line with `text` bytes of text, within `most` for this ring and the common bound.
    fn reserve(&mut self, text: u64, most: u64) -> bool {
        let is_full = self.lines.len() == self.lines.capacity();
        let more = text + if is_full { LINES_PER_GROWTH as u64 * LINE_SIZE } else { 0 };
        if self.held + more > most || !self.rings.take(more) {
            return false;
        }
        self.held += more;
        if is_full {
            self.lines.reserve_exact(LINES_PER_GROWTH);
        }
        true
    }

    /// Removes the oldest line, if there is one.
    fn pop(&mut self) -> bool {
        let Some(oldest) = self.lines.pop_front() else { return false };
        self.first += 1;
        self.give_back(size(&oldest));
        true
    }

    /// Shrinks the ring to `most` bytes: removes the oldest lines, and releases their memory.
    fn shrink(&mut self, most: u64) {
        let room = |lines: &VecDeque<TapEvent>| lines.capacity() as u64 * LINE_SIZE;
        while self.held - room(&self.lines) + self.lines.len() as u64 * LINE_SIZE > most && self.pop() {}
        let before = room(&self.lines);
        self.lines.shrink_to_fit();
        self.give_back(before - room(&self.lines));
    }

    fn give_back(&mut self, bytes: u64) {
        self.held -= bytes;
        self.rings.give_back(bytes);
    }

    /// Returns the number of the line behind `after`. A number that is not from this ring is from an earlier one,
    /// whatever the clock says.
    fn behind(&self, after: u64) -> u64 {
        let end = self.first + self.lines.len() as u64;
        if (self.begin..end).contains(&after) { after + 1 } else { self.begin }
    }

    /// Returns the line numbered `next`, or how many were missed up to the first one that is kept.
    fn line(&self, next: &mut u64) -> Option<TapLine> {
        if *next < self.first {
            let count = self.first - *next;
            *next = self.first;
            return Some(TapLine { n: 0, event: TapEvent::Missed { count } });
        }
        let at = usize::try_from(*next - self.first).ok()?;
        let event = self.lines.get(at)?.clone();
        let n = *next;
        *next += 1;
        Some(TapLine { n, event })
    }
}

impl Drop for RingContents {
    fn drop(&mut self) {
        self.give_back(self.held);
    }
}

/// Returns the bytes of a line's text.
const fn size(event: &TapEvent) -> u64 {
    match event {
        TapEvent::Text { delta: text, .. } | TapEvent::Tool { name: text, .. } => {
            text.capacity() as u64 + ALLOCATION_OVERHEAD
        }
        TapEvent::Ended { .. } | TapEvent::Missed { .. } => 0,
    }
}

/// Splits `text` into pieces that bound what is kept at a time.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TAP_DELTA));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
