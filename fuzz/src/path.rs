//! Checks request lines. An input is the method, a blank and the target.
//!
//! A route is known only if the path is byte for byte a listed one, which a slot may precede. The part after a `?` is
//! never forwarded. `http` cuts off the part after a `#`, which no client sends.

use platform_core::{control::Correlation, route::Route};
use proxy::fuzzing;

use crate::SPOILED;

/// Each route but the models, which are a GET, and the unknown one.
const ROUTES: [(&str, Route); Route::ALL.len() - 2] = [
    ("/v1/chat/completions", Route::ChatCompletions),
    ("/v1/completions", Route::Completions),
    ("/v1/responses", Route::Responses),
    ("/v1/responses/input_tokens", Route::InputTokens),
    ("/v1/responses/compact", Route::Compact),
    ("/v1/messages", Route::Messages),
    ("/v1/messages/count_tokens", Route::CountTokens),
    ("/v1/embeddings", Route::Embeddings),
    ("/tool/exec", Route::ToolExec),
    ("/mcp", Route::Mcp),
];

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Some((method, target)) = std::str::from_utf8(input).ok().and_then(|line| line.split_once(' ')) else {
        return;
    };
    let found = fuzzing::addressed(method, target);
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let (slot, rest) = slot(path);
    let listed = match method {
        "POST" => ROUTES.iter().find(|(path, _)| *path == rest).map(|(_, route)| *route),
        "GET" if rest == "/v1/models" || rest.starts_with("/v1/models/") => Some(Route::Models),
        _ => None,
    };
    match (found, listed) {
        (Some((_, Route::Unknown)), _) => panic!("an unknown route passes"),
        (Some(found), listed) => {
            assert_eq!(Some(found), listed.map(|route| (slot, route)), "this is not byte for byte a route");
            if let Some(upstream) = found.1.upstream_path() {
                assert_eq!(upstream, rest, "what is forwarded is another path");
            }
            assert!(!SPOILED || !path.contains("e/v1/"), "the control: no slot may end like that");
        }
        (None, Some(route)) => assert!(route == Route::Models || path != target, "a route is refused"),
        (None, None) => {}
    }
}

/// Returns the slot of 32 lower-case hexadecimal digits, not all of them zero, and the path behind it.
fn slot(path: &str) -> (Option<Correlation>, &str) {
    let bytes = path.as_bytes();
    let is_slot = bytes.len() > 38
        && path.starts_with("/slot/")
        && bytes[6..38].iter().all(|byte| b"0123456789abcdef".contains(byte))
        && bytes[6..38].iter().any(|byte| *byte != b'0')
        && bytes[38] == b'/';
    if !is_slot {
        return (None, path);
    }
    let digits = u128::from_str_radix(&path[6..38], 16).expect("hexadecimal digits");
    (Some(Correlation::Slot(digits)), &path[38..])
}
