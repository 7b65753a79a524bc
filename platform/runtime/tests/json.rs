//! Reads texts that nest deeper than a stack, on a small stack.

use std::thread;

use platform_core::json::{self, Bounds};
use serde_json::Value;

/// Size of the stack, in bytes.
const STACK: usize = 256 << 10;

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}

/// Reads `text` on a small stack; returns whether it is JSON.
fn is_read(text: String) -> bool {
    let reader = move || json::from_str::<Value>(&text, Bounds::of(1 << 20)).is_ok();
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(reader)
        .expect("it starts")
        .join()
        .expect("the stack holds it")
}

#[test]
fn a_small_stack_holds_every_text() {
    let deep = |open: &str| open.repeat(100_000);
    for text in [raw_nest(12), deep("["), deep("{\"a\":"), deep(r#"{"a":[{"b":"#)] {
        assert!(!is_read(text));
    }
    let deepest = "[".repeat(Bounds::DEPTH) + &"]".repeat(Bounds::DEPTH);
    assert!(is_read(deepest), "the control: the deepest text fits");
}
