//! Reads the streams in `tests/golden/streams`: recorded from LiteLLM (`tests/clients/streams.rs` does that), or made
//! after the shapes that OpenAI and Anthropic publish. Beside each is what the meter reads in it, however it is split.

use std::{
    fs,
    path::{Path, PathBuf},
};

use platform_core::route::Route;
use serde_json::{Value, json};

use super::{super::Format, Seen, read};

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/streams");

fn streams() -> Vec<PathBuf> {
    let files = fs::read_dir(DIR).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "sse")).collect();
    streams.sort();
    streams
}

/// Returns the route that a word in the file's name gives.
fn route(path: &Path) -> Route {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let routes = [
        ("completions", Route::Completions),
        ("chat", Route::ChatCompletions),
        ("responses", Route::Responses),
        ("messages", Route::Messages),
    ];
    routes.into_iter().find(|(word, _)| name.contains(word)).unwrap().1
}

fn shown(seen: &Seen) -> Value {
    let Seen { report, complete, text, tools } = seen;
    let text_of = |it: &Option<platform_core::untrusted::JournalText>| it.as_ref().map(|it| it.to_string());
    assert_eq!(report.tools.iter().map(|tool| tool.as_str()).collect::<Vec<_>>(), *tools);
    json!({
        "model": text_of(&report.model), "finish": text_of(&report.finish), "tokens": report.tokens(),
        "count": format!("{:?}", report.finality), "cost_nanodollars": report.cost, "tools": tools,
        "said": report.text_bytes, "failed": report.failed, "complete": complete,
        "text": text,
    })
}

#[test]
fn every_stream_is_read_as_is_written_beside_it() {
    assert!(streams().len() >= 25, "{:?}", streams());
    let mut anew = Vec::new();
    for path in streams() {
        let stream = fs::read(&path).unwrap();
        let seen = shown(&read(route(&path), Format::Events, &[&stream]));
        let golden = path.with_extension("json");
        match fs::read(&golden) {
            Ok(expected) => {
                let expected: Value = serde_json::from_slice(&expected).unwrap();
                assert_eq!(seen, expected, "{}", path.display());
            }
            Err(_absent) => {
                fs::write(&golden, format!("{seen:#}\n")).unwrap();
                anew.push(golden);
            }
        }
    }
    assert!(anew.is_empty(), "written anew: read them, then run this again: {anew:?}");
}

#[test]
fn no_split_changes_what_is_read() {
    for path in streams() {
        let (stream, route) = (fs::read(&path).unwrap(), route(&path));
        let whole = read(route, Format::Events, &[&stream]);
        let same = |pieces: &[&[u8]], how: &str, at: usize| {
            let seen = read(route, Format::Events, pieces);
            assert_eq!(seen.report, whole.report, "{} {how} {at}", path.display());
            assert_eq!((&seen.text, &seen.tools, seen.complete), (&whole.text, &whole.tools, whole.complete));
        };
        for at in 0..=stream.len() {
            same(&[&stream[..at], &stream[at..]], "split at", at);
        }
        // Larger ones cut where the loop above does.
        for size in 1..=64 {
            same(&stream.chunks(size).collect::<Vec<_>>(), "in pieces of", size);
        }
    }
}
