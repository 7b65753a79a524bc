//! Turns a script and an answer into a list of beats, the steps on the wire. This module decides and sends nothing;
//! `playback` plays the beats and knows no reasons.

use std::time::Duration;

use bytes::Bytes;

use super::{
    api::{Event, Kind},
    script::{Fate, Script},
};

/// A step of a response body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Beat {
    /// A pause.
    Pause(Duration),
    /// A flush of everything sent so far to the socket, so that it is its own write.
    Flush,
    /// Bytes for the connection.
    Send(Bytes, Kind),
    /// A stall for ever.
    Stall,
    /// A reset of the connection.
    Cut,
}

/// Returns the beats of a streamed answer. `error` is sent if the script has an error in the middle.
pub(super) fn streamed(script: &Script, mut events: Vec<Event>, error: Event) -> Vec<Beat> {
    let ending = match script.fate {
        Fate::Stall(after) => {
            events.truncate(break_point(&events, after));
            Some(Beat::Stall)
        }
        Fate::Cut(after) => {
            events.truncate(break_point(&events, after));
            Some(Beat::Cut)
        }
        Fate::CutAt(bytes) => {
            events = first_bytes(events, bytes);
            Some(Beat::Cut)
        }
        Fate::ErrorMid(after) => {
            events.truncate(break_point(&events, after));
            events.push(error);
            None
        }
        Fate::Complete | Fate::Status(_) | Fate::TooLong | Fate::Hang => None,
    };
    let played = events.into_iter().flat_map(|event| [before(script), Beat::Send(event.frame, event.kind)]);
    // A reset discards bytes that are not yet written.
    let ending = ending.into_iter().flat_map(|beat| [Beat::Flush, beat]);
    played.chain(ending).collect()
}

/// Returns the beats of an answer in one piece. If the script breaks it, that happens in its middle, or before its
/// first byte if the script counts no content event.
pub(super) fn whole(script: &Script, body: Bytes) -> Vec<Beat> {
    let half = |after| if after == 0 { Bytes::new() } else { body.slice(..body.len() / 2) };
    match script.fate {
        Fate::Stall(after) => vec![before(script), Beat::Send(half(after), Kind::Frame), Beat::Stall],
        Fate::Cut(after) => {
            vec![before(script), Beat::Send(half(after), Kind::Frame), Beat::Flush, Beat::Cut]
        }
        Fate::CutAt(bytes) => {
            let sent = body.slice(..bytes.min(body.len()));
            vec![before(script), Beat::Send(sent, Kind::Frame), Beat::Flush, Beat::Cut]
        }
        Fate::Complete | Fate::Status(_) | Fate::TooLong | Fate::Hang | Fate::ErrorMid(_) => {
            vec![before(script), Beat::Send(body, Kind::Content)]
        }
    }
}

fn before(script: &Script) -> Beat {
    script.gap.map_or(Beat::Flush, Beat::Pause)
}

/// Returns the events up to the byte at `end`; the last event may be cut.
fn first_bytes(events: Vec<Event>, end: usize) -> Vec<Event> {
    let mut left = end;
    let mut first = Vec::new();
    for event in events {
        if left == 0 {
            break;
        }
        let frame = event.frame.slice(..left.min(event.frame.len()));
        let kind = if frame.len() == event.frame.len() { event.kind } else { Kind::Frame };
        left -= frame.len();
        first.push(Event { frame, kind });
    }
    first
}

/// Returns the number of events that are played if the answer breaks after `after` content events. They end with that
/// event, or with the last one if there are fewer. With none, they end with the first one.
fn break_point(events: &[Event], after: usize) -> usize {
    let mut content =
        events.iter().enumerate().filter(|(_, event)| event.kind == Kind::Content).map(|(at, _)| at);
    match after.checked_sub(1) {
        None => content.next().unwrap_or(events.len()),
        Some(nth) => content.take(nth + 1).last().map_or(events.len(), |at| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &'static str, kind: Kind) -> Event {
        Event { frame: Bytes::from_static(text.as_bytes()), kind }
    }

    /// Returns the text that is sent, and the beat at which it breaks, if any: `head one two tail` is the whole answer.
    fn play(model: &str) -> (String, Option<Beat>) {
        let events = vec![
            event("head ", Kind::Frame),
            event("one ", Kind::Content),
            event("two ", Kind::Content),
            event("tail", Kind::Frame),
        ];
        let mut beats = streamed(&model.parse().unwrap(), events, event("error", Kind::Frame));
        let ending = beats.pop_if(|beat| matches!(beat, Beat::Stall | Beat::Cut));
        let sent = beats.iter().filter_map(|beat| match beat {
            Beat::Send(frame, _) => std::str::from_utf8(frame).ok(),
            _ => None,
        });
        (sent.collect(), ending)
    }

    #[test]
    fn a_stream_breaks_where_the_script_says() {
        let table = [
            ("fake", "head one two tail", None),
            ("fake-stall0", "head ", Some(Beat::Stall)),
            ("fake-stall1", "head one ", Some(Beat::Stall)),
            ("fake-cut2", "head one two ", Some(Beat::Cut)),
            ("fake-cut9", "head one two ", Some(Beat::Cut)),
            ("fake-cutat0", "", Some(Beat::Cut)),
            ("fake-cutat7", "head on", Some(Beat::Cut)),
            ("fake-cutat1k", "head one two tail", Some(Beat::Cut)),
            ("fake-errmid0", "head error", None),
            ("fake-errmid1", "head one error", None),
        ];
        for (model, sent, ending) in table {
            assert_eq!(play(model), (sent.to_owned(), ending), "{model}");
        }
    }

    #[test]
    fn every_event_is_a_write_of_its_own() {
        let events = || vec![event("a", Kind::Content), event("b", Kind::Content)];
        let send = |text| Beat::Send(Bytes::from_static(text), Kind::Content);
        let error = || event("error", Kind::Frame);
        let beats = streamed(&Script::default(), events(), error());
        assert_eq!(beats, [Beat::Flush, send(b"a"), Beat::Flush, send(b"b")]);
        let pause = Beat::Pause(Duration::from_millis(5));
        let beats = streamed(&"fake-gap5ms".parse().unwrap(), events(), error());
        assert_eq!(beats, [pause.clone(), send(b"a"), pause, send(b"b")]);
    }

    #[test]
    fn a_body_breaks_in_its_middle() {
        let beats = |model: &str| whole(&model.parse().unwrap(), Bytes::from_static(b"abcdef"));
        let send = |bytes| Beat::Send(Bytes::from_static(bytes), Kind::Frame);
        assert_eq!(beats("fake-stall1"), [Beat::Flush, send(b"abc"), Beat::Stall]);
        assert_eq!(beats("fake-cut1"), [Beat::Flush, send(b"abc"), Beat::Flush, Beat::Cut]);
        assert_eq!(beats("fake-cutat4"), [Beat::Flush, send(b"abcd"), Beat::Flush, Beat::Cut]);
        assert_eq!(beats("fake-stall0"), [Beat::Flush, send(b""), Beat::Stall]);
    }
}
