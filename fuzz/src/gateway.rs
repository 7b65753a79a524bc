//! Checks the frames of a gateway, one on each line, as read by the turn `r1` in the conversation
//! `agent:main:accta:kk`.
//!
//! The first character of a line may mean the beginning of an event, up to its own fields. `@` means an event of that
//! turn, `~` for one of the same run in another conversation, `!` for one of another run.
//!
//! All of the input is read to its end. The turn receives the same events as if its own frames were the only ones.

use gateway_bridge::{SessionKey, TurnEvent, fuzzing};
use platform_core::id::{AccountId, RunId};
use serde_json::Value;

use crate::SPOILED;

const RUN: &str = "r1";
const SESSION: &str = "agent:main:accta:kk";

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let frames: Vec<String> = text.lines().map(spelled).collect();
    frames.iter().for_each(|frame| fuzzing::read(frame));
    let account = AccountId::parse("a").expect("an account");
    let session = SessionKey::new("main", &account, "k").expect("a session");
    assert_eq!(session.as_str(), SESSION);
    let run_id = RunId::parse(RUN).expect("a run id");
    let all = fuzzing::received(&run_id, &session, frames.iter().map(String::as_str));
    let own: Vec<&str> = frames.iter().map(String::as_str).filter(|frame| is_own(frame)).collect();
    assert_eq!(
        all,
        fuzzing::received(&run_id, &session, own.iter().copied()),
        "it hears what is not its own"
    );
    let received: usize =
        all.0.iter().map(|event| if let TurnEvent::Text(text) = event { text.len() } else { 0 }).sum();
    let sent: usize = own.iter().map(|frame| frame.len()).sum();
    assert!(received <= sent, "more is told than was said");
}

/// Returns a line with its first character replaced by the text it means.
fn spelled(line: &str) -> String {
    let event = |run: &str, session: &str, rest: &str| {
        format!(
            r#"{{"type":"event","event":"agent","payload":{{"runId":"{run}","sessionKey":"{session}",{rest}"#
        )
    };
    match line.split_at_checked(1) {
        Some(("@", rest)) => event(RUN, SESSION, rest),
        Some(("~", rest)) => event(RUN, "agent:main:acctb:kk", rest),
        Some(("!", rest)) => event("r2", SESSION, rest),
        _ => line.to_owned(),
    }
}

/// Returns whether a frame names the turn's run and conversation, as another JSON parser reads it.
fn is_own(frame: &str) -> bool {
    let Ok(frame) = serde_json::from_str::<Value>(frame) else { return false };
    let payload = &frame["payload"];
    let is_session = |key: &str| key == SESSION && !(SPOILED && frame["event"] == "chat");
    payload["runId"] == RUN && payload["sessionKey"].as_str().is_some_and(is_session)
}
