//! A run's live tap: what its answers say, told to whoever watches, while they say it. In memory only.
//!
//! What was said last is kept for those who come late, in a ring that holds so many bytes and no more. Whoever is slower than the
//! ring misses lines, is told how many, and slows nobody: nothing is held for watchers.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use platform_core::{
    control::{TapEvent, TapLine},
    id::CallId,
    limit::{
        ByteSize,
        data_plane::{TAP_DELTA, TAP_RING},
    },
    record::ExchangeRecord,
    untrusted::JournalText,
};
use tokio::sync::Notify;

use crate::{clock, usage::Heard};

/// The way to whoever watches a run. Its ring is there from the first watcher until the run is closed: what is known of closed
/// runs afterwards is small, and a run that nobody ever watched costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Tap(ArcSwapOption<Ring>);

#[derive(Debug)]
struct Ring {
    kept: Mutex<Kept>,
    more: Notify,
    watchers: AtomicUsize,
}

#[derive(Debug)]
struct Kept {
    lines: VecDeque<TapEvent>,
    /// Number of the first line there ever was: the time, so that a later ring has greater ones.
    begin: u64,
    /// Number of the first line that is there.
    first: u64,
    bytes: u64,
    is_closed: bool,
}

/// Somebody who watches a run, until dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    ring: Arc<Ring>,
    /// Number of the line that is wanted next.
    next: u64,
}

impl Tap {
    /// A new watcher, who has seen the line numbered `after`.
    pub(crate) fn watch(&self, after: u64) -> Watcher {
        // Of two first watchers at once one is the first.
        let made = || Some(Arc::new(Ring::new()));
        let ring = self.0.rcu(|there| there.clone().or_else(made)).or_else(|| self.0.load_full());
        let ring = ring.unwrap_or_else(|| Arc::new(Ring::new()));
        ring.watchers.fetch_add(1, Ordering::Relaxed);
        let next = ring.kept().behind(after);
        Watcher { ring, next }
    }

    /// Whether anything is kept of what it is told.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load().is_some()
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> usize {
        self.0.load().as_ref().map_or(0, |ring| ring.watchers.load(Ordering::Relaxed))
    }

    /// Bytes in its ring.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load().as_ref().map_or(0, |ring| ring.kept().bytes)
    }

    /// Nobody says anything any more.
    pub(crate) fn close(&self) {
        if let Some(ring) = self.0.swap(None) {
            ring.kept().is_closed = true;
            ring.more.notify_waiters();
        }
    }

    /// An answer said something.
    pub(crate) fn hear(&self, call: CallId, heard: Heard<'_>) {
        match heard {
            Heard::Text(text) => {
                pieces(text).for_each(|piece| self.tell(TapEvent::Text { call, delta: piece.to_owned() }));
            }
            Heard::Tool(name) => {
                self.tell(TapEvent::Tool { call, name: JournalText::of(name).as_str().to_owned() });
            }
        }
    }

    /// A call has ended.
    pub(crate) fn end(&self, record: &ExchangeRecord) {
        let ExchangeRecord { litellm_call_id: call, outcome, tokens, tokens_source, .. } = *record;
        self.tell(TapEvent::Ended { call, outcome, tokens, tokens_source });
    }

    fn tell(&self, event: TapEvent) {
        if let Some(ring) = &*self.0.load() {
            ring.kept().push(event);
            ring.more.notify_waiters();
        }
    }
}

impl Ring {
    fn new() -> Self {
        let begin = u64::try_from(clock::now().as_micros()).unwrap_or_default().max(1);
        let kept = Kept { lines: VecDeque::new(), begin, first: begin, bytes: 0, is_closed: false };
        Self { kept: Mutex::new(kept), more: Notify::new(), watchers: AtomicUsize::new(0) }
    }

    /// Locked for the time of a few moves in memory.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, event: TapEvent) {
        self.bytes += size(&event);
        self.lines.push_back(event);
        while self.bytes > TAP_RING.0 {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= size(&oldest);
            self.first += 1;
        }
    }

    /// Number of the line behind `after`. One that is not from this ring is from an earlier one, whatever the clock says.
    fn behind(&self, after: u64) -> u64 {
        let end = self.first + self.lines.len() as u64;
        if (self.begin..end).contains(&after) { after + 1 } else { self.begin }
    }

    /// The line numbered `next`, or how many were missed up to the first one that is there.
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

/// What a line costs.
const fn size(event: &TapEvent) -> u64 {
    let text = match event {
        TapEvent::Text { delta: text, .. } | TapEvent::Tool { name: text, .. } => text.len(),
        TapEvent::Ended { .. } | TapEvent::Missed { .. } => 0,
    };
    (text + size_of::<TapEvent>()) as u64
}

impl Watcher {
    /// The next line, as soon as there is one; `None` once there will be no more. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<TapLine> {
        loop {
            let more = self.ring.more.notified();
            tokio::pin!(more);
            // Before looking, so that what comes in between is not missed.
            more.as_mut().enable();
            {
                let kept = self.ring.kept();
                if let Some(line) = kept.line(&mut self.next) {
                    return Some(line);
                }
                if kept.is_closed {
                    return None;
                }
            }
            more.await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.ring.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `text` in pieces that bound what is kept at a time.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TAP_DELTA));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A ring that holds less than one piece would hold nothing.
const _: () = assert!(TAP_RING.0 > ByteSize::kib(16).0 && TAP_DELTA < 8192);

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallId {
        CallId::new(1, 1)
    }

    async fn texts(watcher: &mut Watcher, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            match watcher.next().await.unwrap().event {
                TapEvent::Text { delta, .. } => texts.push(delta),
                other => panic!("{other:?}"),
            }
        }
        texts
    }

    #[test]
    fn long_texts_come_in_pieces_that_are_whole_letters() {
        let text = "ä".repeat(TAP_DELTA);
        let told: Vec<_> = pieces(&text).collect();
        assert_eq!((told.len(), told.concat()), (2, text));
        assert_eq!(pieces("").count(), 0);
        assert_eq!(pieces("short").collect::<Vec<_>>(), ["short"]);
    }

    #[tokio::test]
    async fn who_comes_late_is_told_what_was_said_last_and_who_comes_back_what_came_since() {
        let tap = Tap::default();
        tap.hear(call(), Heard::Text("before anybody watched"));
        let mut first = tap.watch(0);
        tap.hear(call(), Heard::Text("one"));
        tap.hear(call(), Heard::Text("two"));
        let one = first.next().await.unwrap();
        assert_eq!(texts(&mut tap.watch(0), 2).await, ["one", "two"]);
        assert_eq!(texts(&mut tap.watch(one.n), 1).await, ["two"]);
        assert_eq!(texts(&mut tap.watch(u64::MAX), 2).await, ["one", "two"], "a number of another ring");
        assert_eq!(tap.watchers(), 1);
        tap.close();
        assert_eq!(texts(&mut first, 1).await, ["two"]);
        assert!(first.next().await.is_none() && !tap.is_open());
    }

    #[tokio::test]
    async fn a_ring_holds_so_much_and_no_more_and_what_it_does_not_hold_is_counted() {
        let tap = Tap::default();
        let mut slow = tap.watch(0);
        const TOLD: u64 = 1_000_000;
        for _ in 0..TOLD {
            tap.hear(call(), Heard::Text("word"));
        }
        assert!((TAP_RING.0 - 1024..=TAP_RING.0).contains(&tap.bytes()), "{}", tap.bytes());
        let TapEvent::Missed { count } = slow.next().await.unwrap().event else {
            panic!("nothing was missed")
        };
        let kept = tap.0.load().as_ref().unwrap().kept().lines.len();
        assert_eq!(count + kept as u64, TOLD);
        assert_eq!(texts(&mut slow, kept).await.len(), kept);
    }
}
