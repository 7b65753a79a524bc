//! Checks that an event that comes whole costs no memory: most events do.

use allocation_counter::measure;
use bytes::Bytes;
use platform_core::route::Route;

use super::super::{Format, Meter};

const OPENING: &str = "data: {\"model\":\"m\"}\n\n";

fn allocations(route: Route, pieces: &[&'static str]) -> u64 {
    let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
    let mut meter = Meter::new(route, Format::Events);
    // The model's name is kept (as are tools' names and a cost, which no table row has), and the searchers are made
    // once in a process.
    meter.feed(&Bytes::from_static(OPENING.as_bytes()), None);
    measure(|| pieces.iter().for_each(|piece| meter.feed(piece, None))).count_total
}

#[test]
fn whole_events_are_read_without_allocating() {
    let table = [
        (
            Route::ChatCompletions,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w\\u00f6rd\"}}],\"usage\":null}\n\n",
        ),
        (
            Route::ChatCompletions,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\"}}]},\"finish_reason\":null}]}\r\n\r\n",
        ),
        (
            Route::ChatCompletions,
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n: ping\n\ndata: [DONE]\n\n",
        ),
        (Route::Responses, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Yes\"}\n\n"),
        (
            Route::Messages,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        ),
        (
            Route::Messages,
            "data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n",
        ),
    ];
    for (route, event) in table {
        assert_eq!(allocations(route, &[event; 100]), 0, "{event}");
    }
    // A name that comes in parts is kept; the room for it is, too.
    let (_, event) = table[0];
    let (begin, end) = event.split_at(event.find("ndex").unwrap());
    let in_parts = allocations(Route::ChatCompletions, &[begin, end].repeat(100));
    assert_eq!(in_parts, 1);
}
