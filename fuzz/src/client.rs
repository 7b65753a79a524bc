//! Checks the frames of a gateway's clients. An input is one frame.
//!
//! A frame is read if it is one JSON object with the members of a request alone, each once. It is nested in at most 32
//! objects and lists. What `connect` says of a client is what serde_json finds there. A message that passes as text holds
//! no command, whatever invisible characters stand before it.

use gateway_bridge::client_frame::{ClientRequest, Introduction, MessageKind, read_message};

use crate::{
    SPOILED,
    json::{Members, depth, text_of},
};

const MEMBERS: [&str; 5] = ["type", "id", "method", "params", "traceparent"];
const CONNECT: [&str; 16] = [
    "minProtocol",
    "maxProtocol",
    "role",
    "caps",
    "auth",
    "client",
    "scopes",
    "device",
    "commands",
    "computerUse",
    "workerRuns",
    "permissions",
    "pathEnv",
    "modelCatalog",
    "locale",
    "userAgent",
];
const DIRECTIVES: [&str; 6] = ["/exec", "/elevated", "/elev", "/permissions", "/bash", "/approve"];
/// Characters that JavaScript trims, or that are invisible.
const BLANK: [char; 5] = ['\u{feff}', '\u{200b}', '\u{2060}', '\u{ad}', '\u{202e}'];

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = ClientRequest::read(text);
    let found = read.as_ref().ok().map(|request| (request.id.clone(), request.method.clone()));
    assert_eq!(found, expected(text), "{:?}", read.err());
    let Ok(request) = read else { return };
    let Some(params) = request.params.as_ref().and_then(|params| Members::of(params.get())) else { return };
    if let Ok(introduction) = Introduction::read(&request) {
        check_introduction(&introduction, &params);
    }
    if let Some(message) = params.given("message").and_then(text_of) {
        check_message(&message);
    }
}

/// Returns id and method of a frame that must be read.
fn expected(frame: &str) -> Option<(String, String)> {
    let members = Members::of(frame)?;
    let is_known = members.0.iter().all(|(name, _)| MEMBERS.contains(&name.as_str()));
    if !is_known || members.twice().is_some() || depth(frame) > 32 {
        return None;
    }
    let [kind, id, method] = ["type", "id", "method"].map(|name| members.given(name).and_then(text_of));
    let (id, method) = (id?, method?);
    let has_length = |text: &str, most: usize| (1..=most).contains(&text.len());
    (kind? == "req" && has_length(&id, 256) && has_length(&method, 128)).then_some((id, method))
}

fn check_introduction(introduction: &Introduction, params: &Members<'_>) {
    for (name, _) in &params.0 {
        assert!(CONNECT.contains(&name.as_str()), "`{name}` passes");
    }
    let number = |name: &str| params.given(name).and_then(|value| serde_json::from_str::<u64>(value).ok());
    let (least, most) = (number("minProtocol").expect("a number"), number("maxProtocol").expect("a number"));
    let protocol = introduction.protocol;
    assert!(
        [3, 4].contains(&protocol) && (least..=most).contains(&protocol),
        "{least} to {most}: {protocol}"
    );
    if let Some(role) = params.given("role") {
        assert_eq!(text_of(role).as_deref(), Some("operator"), "another role connects");
    }
    let auth = params.given("auth").and_then(Members::of);
    let token = auth.and_then(|auth| auth.given("token").and_then(text_of));
    assert_eq!(introduction.token, token, "it is somebody else's");
    assert!(!SPOILED || token.is_none_or(|token| token.len() != 3), "the control: no token has three bytes");
}

fn check_message(message: &str) {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || BLANK.contains(&c);
    let words: Vec<&str> = message.split(is_blank).filter(|word| !word.is_empty()).collect();
    let name = |word: &str| word.split([':', '=']).next().unwrap_or_default().to_ascii_lowercase();
    match read_message(message) {
        Ok(MessageKind::Text) => {
            assert!(!words.is_empty() && !words[0].starts_with('/'), "a command passes: {message:?}");
            let directive = words.iter().find(|word| DIRECTIVES.contains(&name(word).as_str()));
            assert_eq!(directive, None, "an override passes");
        }
        Ok(MessageKind::Stop) => assert_eq!(words.len(), 1, "a message is lost: {message:?}"),
        Err(_) => {}
    }
}
