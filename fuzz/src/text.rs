//! Checks the one reader of JSON from outside. An input is a text.
//!
//! A text is read under four conditions. serde_json reads it, and it nests at most 64 levels. No object has a member twice
//! or a reserved name. 64 bits hold each whole number. Then the value is what serde_json finds.
//!
//! Every type of the platform that is read from outside gets the text as well: as it is, and hidden in strings. The
//! feature `raw_value` makes serde_json read such strings anew. A stack of 256 KiB holds them all.

use std::thread;

use platform_core::{
    control::{Consumer, Cursor},
    event::AgentEvent,
    grant::RunGrant,
    host_tools::exec::ExecRequest,
    json::{self, Bounds, Raw},
    record::JournalLine,
    spend::SpendRow,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    SPOILED,
    json::{Members, elements, is_shallow},
};

const BOUNDS: Bounds = Bounds::of(1 << 20);
/// Bytes of the stack that must hold the readers.
const STACK: usize = 256 << 10;
/// Strings in which a text is hidden, one in the other.
const LAYERS: usize = 6;

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        assert!(json::from_slice::<Value>(input, BOUNDS).is_err(), "it is not text");
        return;
    };
    let read = on_a_small_stack(|| {
        read_all(text);
        read_all(&hidden(text));
        json::from_str::<Value>(text, BOUNDS)
    });
    assert_eq!(read.as_ref().ok(), expected(text).as_ref(), "{read:?}");
}

/// Returns what `work` returns on a thread that has a small stack.
fn on_a_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        thread.expect("a thread").join().expect("it reads")
    })
}

/// Gives a text to the types that are read from outside.
fn read_all(text: &str) {
    fn read<T: DeserializeOwned>(text: &str) {
        let _ = json::from_str::<T>(text, BOUNDS);
    }
    read::<AgentEvent>(text);
    read::<Consumer>(text);
    read::<Cursor>(text);
    read::<JournalLine>(text);
    read::<RunGrant>(text);
    read::<SpendRow>(text);
    let _ = ExecRequest::read(text.as_bytes());
    if let Ok(part) = json::from_str::<Raw<'_>>(text, BOUNDS) {
        let _ = json::write_sorted(part, &mut |_| {});
    }
}

/// Returns an object with a member that a careless reader reads anew, and that member's value likewise.
fn hidden(text: &str) -> String {
    (0..LAYERS).fold(text.to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":{}}}"#, Value::from(inner))
    })
}

/// Returns the value of a text that must be read.
fn expected(text: &str) -> Option<Value> {
    let value = serde_json::from_str(text).ok()?;
    let is_spoiled = SPOILED && elements(text).len() == 3;
    (is_shallow(text) && has_one_meaning(text) && !is_spoiled).then_some(value)
}

/// Returns whether each part of well-formed JSON can be read in one way only.
fn has_one_meaning(text: &str) -> bool {
    if let Some(members) = Members::of(text) {
        let is_reserved = |name: &str| name.starts_with("$serde_json::private::");
        return members.twice().is_none()
            && members.0.iter().all(|(name, value)| !is_reserved(name) && has_one_meaning(value));
    }
    let number = text.trim();
    let is_whole = number.strip_prefix('-').unwrap_or(number).bytes().all(|byte| byte.is_ascii_digit());
    let fits = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    (!is_whole || fits) && elements(text).into_iter().all(has_one_meaning)
}
