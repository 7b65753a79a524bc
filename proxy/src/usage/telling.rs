//! What can be told of a stream's event without parsing it: whether it tells more than text, and how much text.
//!
//! Most events carry a word or two, and this is all that is done for them: to parse each costs five times as much.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use platform_core::route::Route;

use super::json::Json;

/// Words in quotes. Searchers are made once: making one takes longer than searching an event. A text cannot pretend to
/// have one, because quotes within it are escaped.
static WORDS: LazyLock<Words> = LazyLock::new(|| Words {
    usage: Finder::new("\"usage\""),
    error: Finder::new("\"error\""),
    name: Finder::new("\"name\""),
    finish_reason: Finder::new("\"finish_reason\""),
    response: Finder::new("\"response\""),
    message: Finder::new("\"message_"),
    delta: Finder::new("\"delta\""),
    text: Finder::new("\"text\""),
});

#[derive(Debug)]
struct Words {
    usage: Finder<'static>,
    error: Finder<'static>,
    name: Finder<'static>,
    finish_reason: Finder<'static>,
    response: Finder<'static>,
    message: Finder<'static>,
    delta: Finder<'static>,
    text: Finder<'static>,
}

/// Members of a chat's or message's delta that the model has said. `signature` and ids are not.
const SAID: [&[u8]; 10] = [
    b"content",
    b"text",
    b"partial_json",
    b"tool_calls",
    b"function_call",
    b"reasoning_content",
    b"reasoning",
    b"thinking",
    b"refusal",
    b"citation",
];

/// Members within those that it has not.
const NOT_SAID: [&[u8]; 2] = [b"id", b"type"];

/// What a glance at an event tells of its text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Said {
    /// Bytes of text, a tool's arguments and reasoning included.
    pub(super) bytes: u64,
    /// There is nothing beside one string, so that no tool can be named.
    plain: bool,
}

/// Whether the event `data` of `route`'s stream, in which so much is said, tells anything but text.
pub(super) fn tells_more_than_text(route: Route, data: &[u8], said: Said) -> bool {
    let words = &*WORDS;
    let speaks = said.bytes > 0;
    // Also beside text: nothing of an error passes that was not looked at. In text the quotes would be escaped.
    if words.error.find(data).is_some() {
        return true;
    }
    // OpenAI says in every event of a chat that there is no usage yet and no reason to finish.
    let own = match route {
        Route::Messages | Route::Responses if speaks => return false,
        Route::Responses => is_followed_by(b'{', &words.response, data),
        Route::Messages => words.message.find(data).is_some(),
        _ => is_followed_by(b'"', &words.finish_reason, data),
    };
    let names = || !(speaks && said.plain) && is_followed_by(b'"', &words.name, data);
    own || is_followed_by(b'{', &words.usage, data) || names()
}

/// How much text is in the event `data` of `route`'s stream.
pub(super) fn said(route: Route, data: &[u8]) -> Said {
    let word = if route == Route::Completions { &WORDS.text } else { &WORDS.delta };
    let mut said = Said { bytes: 0, plain: true };
    let mut rest = data;
    while let Some(value) = next_value(word, &mut rest) {
        if let Some((name, text, length)) = Json::only_text(value) {
            said.bytes += if SAID.contains(&name) { text.text_bytes(&[]) } else { 0 };
            rest = &rest[length..];
            continue;
        }
        let value = Json::first_of(value);
        // Nothing is looked at twice, however deep it is nested.
        rest = &rest[value.raw().len().min(rest.len())..];
        said.bytes += match value.raw().first() {
            Some(b'"') => value.text_bytes(&[]),
            Some(b'{') => {
                said.plain = false;
                let members = value.members().filter(|(name, _)| SAID.contains(name));
                members.map(|(_, it)| it.text_bytes(&NOT_SAID)).sum()
            }
            _ => 0,
        };
    }
    said
}

/// Whether any member called `word` begins like this.
fn is_followed_by(begin: u8, word: &Finder<'_>, data: &[u8]) -> bool {
    let mut rest = data;
    while let Some(value) = next_value(word, &mut rest) {
        if value.first() == Some(&begin) {
            return true;
        }
    }
    false
}

/// What follows the next `"word":` in `rest`, which then begins there.
fn next_value<'a>(word: &Finder<'_>, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    loop {
        let at = word.find(rest)?;
        *rest = rest[at + word.needle().len()..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b":") {
            *rest = value.trim_ascii_start();
            return Some(rest);
        }
    }
}
