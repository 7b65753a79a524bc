//! Checks that no input makes the meter fail, depend on its splits, or exceed its bound.

use bytes::Bytes;
use platform_core::route::Route;
use proptest::prelude::*;

use super::{
    super::{Format, Meter, UsageReport},
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

fn report(route: Route, format: Format, pieces: &[&[u8]]) -> (UsageReport, bool) {
    let mut meter = Meter::new(route, format);
    pieces.iter().for_each(|piece| meter.feed(&Bytes::copy_from_slice(piece), None));
    let report = meter.finish(None);
    let complete = meter.is_complete(&report);
    (report, complete)
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
        let whole = report(route, format, &[&bytes]);
        let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(&report(route, format, &[a, b]), &whole);
        prop_assert_eq!(&report(route, format, &bytes.chunks(size).collect::<Vec<_>>()), &whole);
        prop_assert!(whole.0.text_bytes <= bytes.len() as u64);
    }

    /// Watching does not change what is read.
    #[test]
    fn a_watcher_changes_nothing(
        route in routes(),
        format in prop::sample::select(vec![Format::Events, Format::Json]),
        bytes in hostile(),
        size in 1..9_usize,
    ) {
        let mut meter = Meter::new(route, format);
        for piece in bytes.chunks(size) {
            meter.feed(&Bytes::copy_from_slice(piece), Some(&mut |_heard| {}));
        }
        let watched = meter.finish(Some(&mut |_heard| {}));
        prop_assert_eq!(watched, report(route, format, &[&bytes]).0);
    }

    #[test]
    fn what_is_kept_is_bounded(
        format in prop::sample::select(vec![Format::Events, Format::Json]),
        pieces in prop::collection::vec((0..6_usize, 0..700_000_usize), 0..12),
    ) {
        let mut meter = Meter::new(Route::ChatCompletions, format);
        for (what, length) in pieces {
            let begin = ["data: {\"choices\":[{\"delta\":{\"content\":\"", "{\"", "[{\"type\":\"", "\n", "\"}", "{\"usage\":{\"cost\":"][what];
            let piece = begin.to_owned() + &["x", "[", "\\n", "{\"a\":", "é", "7"][what].repeat(length / 5);
            meter.feed(&piece.into(), Some(&mut |_heard| {}));
            prop_assert!(meter.kept() <= 256 << 10, "{}", meter.kept());
        }
    }
}
