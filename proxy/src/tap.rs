//! A run's live tap: what its answers say, told to whoever watches, while they say it. In memory only, and bounded: a reader
//! who does not keep up misses events and is told how many, and slows nobody.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use platform_core::{
    control::TapEvent,
    id::CallId,
    limit::data_plane::{TAP_BACKLOG, TAP_DELTA},
    record::ExchangeRecord,
    untrusted::JournalText,
};
use tokio::sync::broadcast;

use crate::usage::Heard;

/// The way to whoever watches a run. It takes some 50 KiB, so it is there from the first watcher until the run is closed:
/// what is known of closed runs afterwards is small.
#[derive(Debug, Default)]
pub(crate) struct Tap(ArcSwapOption<broadcast::Sender<TapEvent>>);

impl Tap {
    /// A new watcher.
    pub(crate) fn watch(&self) -> broadcast::Receiver<TapEvent> {
        // Of two first watchers at once one is the first.
        let made = || Some(Arc::new(broadcast::Sender::new(TAP_BACKLOG)));
        let events = self.0.rcu(|there| there.clone().or_else(made)).or_else(|| self.0.load_full());
        events.map_or_else(|| broadcast::Sender::new(1).subscribe(), |events| events.subscribe())
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> usize {
        self.0.load().as_ref().map_or(0, |events| events.receiver_count())
    }

    /// Nobody says anything any more.
    pub(crate) fn close(&self) {
        self.0.store(None);
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
        // Nobody watching any more is no failure.
        if let Some(events) = &*self.0.load() {
            drop(events.send(event));
        }
    }
}

/// `text` in pieces that bound what a reader who does not keep up can have held for him.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TAP_DELTA));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_come_in_pieces_that_are_whole_letters() {
        let text = "ä".repeat(TAP_DELTA);
        let told: Vec<_> = pieces(&text).collect();
        assert_eq!((told.len(), told.concat()), (2, text));
        assert_eq!(pieces("").count(), 0);
        assert_eq!(pieces("short").collect::<Vec<_>>(), ["short"]);
    }
}
