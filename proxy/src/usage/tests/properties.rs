//! Whatever comes, the meter does not fail, does not depend on how it is split, and holds no more than its bound.

use bytes::Bytes;
use platform_core::route::Route;
use proptest::prelude::*;

use super::{
    super::{Format, LARGEST_EVENT, Meter, Reading, sse::Events},
    CHAT, MESSAGES, RESPONSES,
};

/// Bytes that are likely to be understood in part: pieces of streams, of JSON, and noise.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "data:",
        "data: ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        ":",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\u",
        ",",
        "null",
        "1",
        "-1",
        "1.5",
        "\"usage\":",
        "\"delta\":",
        "\"choices\":",
        "\"prompt_tokens\":",
        "\"error\":",
        "\"name\":\"x\"",
        "\"type\":\"message_start\"",
        "\"message\":",
        "\"response\":",
        "\"text\":\"é\"",
        "[DONE]",
        "\u{feff}",
    ])
    .prop_map(|word| word.as_bytes().to_vec());
    let cut = (
        prop::sample::select(vec![CHAT, MESSAGES, RESPONSES]),
        any::<(prop::sample::Index, prop::sample::Index)>(),
    )
        .prop_map(|(stream, (a, b))| {
            let (a, b) = (a.index(stream.len()), b.index(stream.len()));
            stream.as_bytes()[a.min(b)..a.max(b)].to_vec()
        });
    let noise = prop::collection::vec(any::<u8>(), 0..8);
    prop::collection::vec(prop_oneof![4 => words, 1 => cut, 1 => noise], 0..40)
        .prop_map(|pieces| pieces.concat())
}

fn routes() -> impl Strategy<Value = Route> {
    prop::sample::select(vec![
        Route::ChatCompletions,
        Route::Completions,
        Route::Responses,
        Route::Messages,
        Route::Embeddings,
        Route::Unknown,
    ])
}

fn reading(route: Route, format: Format, pieces: &[&[u8]]) -> (Reading, bool) {
    let mut meter = Meter::new(route, format);
    pieces.iter().for_each(|piece| meter.feed(&Bytes::copy_from_slice(piece), None));
    let reading = meter.finish(None);
    let complete = meter.is_complete(&reading);
    (reading, complete)
}

proptest! {
    #[test]
    fn no_bytes_and_no_split_matter(
        route in routes(),
        format in prop::sample::select(vec![Format::Events, Format::Json, Format::Opaque]),
        bytes in hostile(),
        at in any::<prop::sample::Index>(),
        size in 1..9_usize,
    ) {
        let whole = reading(route, format, &[&bytes]);
        let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(&reading(route, format, &[a, b]), &whole);
        prop_assert_eq!(&reading(route, format, &bytes.chunks(size).collect::<Vec<_>>()), &whole);
        prop_assert!(whole.0.said <= bytes.len() as u64);
    }

    /// What the stream says is the same whether somebody watches or not.
    #[test]
    fn a_watcher_changes_nothing(route in routes(), bytes in hostile()) {
        let mut meter = Meter::new(route, Format::Events);
        meter.feed(&Bytes::copy_from_slice(&bytes), Some(&mut |_event| {}));
        let mut watched = meter.finish(None);
        let mut unwatched = reading(route, Format::Events, &[&bytes]).0;
        // Unwatched, events are passed over whose words do not look like what they would have to tell.
        for reading in [&mut watched, &mut unwatched] {
            reading.tools.clear();
        }
        prop_assert_eq!(watched.said, unwatched.said);
        prop_assert!(unwatched.tokens().is_none() || watched.tokens().is_some());
    }

    #[test]
    fn what_is_kept_of_a_stream_is_bounded(pieces in prop::collection::vec((any::<bool>(), 0..700_000_usize), 0..12)) {
        let mut events = Events::bounded(LARGEST_EVENT);
        for (ends, length) in pieces {
            let mut piece = vec![b'x'; length];
            if ends {
                piece.push(b'\n');
            }
            events.feed(&piece, |_data| {});
            prop_assert!(events.kept() <= LARGEST_EVENT, "{}", events.kept());
        }
    }
}
