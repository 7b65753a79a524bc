//! Measures single steps of a call: `make bench-micro`. Whole calls, beside other proxies: `make bench`.
//!
//! Steps in which threads share something are measured on one thread and on several: see [`threads`].

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "the table is what the program is run for")]

mod measure;
mod threads;

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use platform_core::{
    id::SecretId,
    route::Route,
    secret::Secret,
    token::{NamedSecret, RunToken, Secrets, SignedToken, UnixSeconds},
};
use proxy::fuzzing;

use crate::measure::{Amount, measure};

const EVENT: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n";
/// Names the model; once it is known, later events need less parsing.
const FIRST: &str = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"gpt-x\"}}\n\n";
/// A chunk as OpenAI writes it, with all fields that are null.
const VERBOSE: &str = "data: {\"id\":\"chatcmpl-9xQ\",\"object\":\"chat.completion.chunk\",\"created\":1764000000,\"model\":\"gpt-5-mini-2025-08-07\",\"service_tier\":\"default\",\"system_fingerprint\":null,\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"k3J9aQ\"}\n\n";
const ARGUMENTS: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\" word\"}}]}}]}\n\n";
const BLOCK: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n";
const LAST: &str = "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":64}}\n\ndata: [DONE]\n\n";
const LAST_BLOCK: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn chat(bytes: usize) -> String {
    let text = "hello world ".repeat(bytes / 12);
    format!(
        "{{\"model\":\"gpt-x\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}"
    )
}

fn body_scan() {
    for (name, bytes) in [("body scan: 1 KB", 1 << 10), ("body scan: 164 KB", 164 << 10)] {
        let body = Bytes::from(chat(bytes));
        measure(name, Amount::Bytes(body.len()), || assert!(fuzzing::body_is_good(black_box(&body))));
    }
}

fn meter() {
    let streams = [
        ("meter: stream of 64 events", Route::ChatCompletions, EVENT, LAST),
        ("meter: stream of 64 events, OpenAI's own", Route::ChatCompletions, VERBOSE, LAST),
        ("meter: stream of 64 events, a tool's arguments", Route::ChatCompletions, ARGUMENTS, LAST),
        ("meter: stream of 64 events, Anthropic's", Route::Messages, BLOCK, LAST_BLOCK),
    ];
    for (name, route, event, last) in streams {
        let mut events = vec![Bytes::from_static(FIRST.as_bytes())];
        events.extend(vec![Bytes::from_static(event.as_bytes()); 64]);
        events.push(Bytes::from_static(last.as_bytes()));
        measure(name, Amount::Items(64), || {
            fuzzing::metered(route, "text/event-stream", black_box(&events)).unwrap()
        });
    }
    let content = "Hello from the upstream. ".repeat(14);
    let document = [Bytes::from(format!(
        "{{\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":250,\"completion_tokens\":42}}}}"
    ))];
    measure("meter: document of 600 bytes", Amount::Items(1), || {
        fuzzing::metered(Route::ChatCompletions, "application/json", black_box(&document)).unwrap()
    });
}

fn token_check() {
    let secret = Secret::new("0123456789abcdef".to_owned());
    let secret = NamedSecret::new(SecretId::parse("one").unwrap(), &secret).unwrap();
    let token = RunToken { run_id: "run-1".parse().unwrap(), attempt: 0, expiry: UnixSeconds(9_999_999_999) };
    let text = token.mint(&secret).expose().to_owned();
    let secrets = Secrets::new(vec![secret]).unwrap();
    measure("token check", Amount::Items(1), || {
        let signed = SignedToken::parse(black_box(&text)).unwrap();
        assert!(signed.verify(&secrets, UnixSeconds(1), Duration::ZERO).is_ok());
    });
}

fn main() {
    measure::print_head();
    body_scan();
    meter();
    token_check();
    threads::journal();
    threads::budget();
}
