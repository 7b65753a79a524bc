//! Checks the bodies that order runs. An input is a letter for the route, then the body.
//!
//! The letters are `c` chat, `o` completions of OpenAI's API, and `r` orders of runs. In the body, `~` means two
//! thousand letters.
//!
//! A body is taken if and only if the documented rules take it (`rules`). The order then says what these rules read in
//! the body, and no more: of a chat, the last message of the user. The same body in other spaces is the same order. Only
//! orders of runs refuse a field that they do not know, and they name it.

mod rules;

use platform_core::id::{AgentId, ModelName};
use runner_api::fuzzing::{ACCOUNT, OrderRoute, RunOrder, order};
use serde_json::Value;

use self::rules::Reading;

/// Field that no route knows.
const UNKNOWN: &str = "zzz";

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Some((letter, body)) = input.split_first() else { return };
    let route = match letter {
        b'c' => OrderRoute::Chat,
        b'o' => OrderRoute::Completions,
        b'r' => OrderRoute::Runs,
        _ => return,
    };
    let body = String::from_utf8_lossy(body).replace('~', &"x".repeat(2000));
    let taken = order(route, body.as_bytes());
    let json: Option<Value> = serde_json::from_str(&body).ok();
    let read = json.as_ref().and_then(|json| rules::read(route, json));
    match (&taken, &read) {
        (Ok(taken), Some(read)) => says(taken, read, body.len()),
        (Err(_), None) => {}
        (Ok(taken), None) => panic!("taken against the rules: {taken:?}"),
        (Err(refusal), Some(_)) => panic!("refused against the rules: {refusal}"),
    }
    if let (Ok(taken), Some(json)) = (&taken, &json) {
        is_the_same_in_other_spaces(route, json, taken);
        knows_its_fields(route, json, taken);
    }
}

/// Checks that an order says what the rules read, and is no larger than its body.
fn says(order: &RunOrder, read: &Reading, most: usize) {
    assert_eq!(order.question, read.question, "another question");
    let history: Vec<_> = order.history.iter().map(|m| (m.role.name(), m.content.as_str())).collect();
    let expected: Vec<_> = read.history.iter().map(|(role, text)| (*role, text.as_str())).collect();
    assert_eq!(history, expected, "another history");
    assert_eq!(order.agent_id.as_str(), read.agent);
    assert_eq!(order.model.as_ref().map(ModelName::as_str), read.model.as_deref());
    assert_eq!((order.limits.total_tokens, order.limits.cost), (read.total_tokens, read.cost));
    assert_eq!(order.account.as_str(), ACCOUNT, "another account pays");
    assert!(order.image.is_none(), "a body has chosen an image");
    let thread = order.thread.as_ref().map(|thread| thread.key.as_str());
    match &read.thread {
        rules::Thread::None => assert_eq!(thread, None),
        rules::Thread::New => assert!(thread.is_some_and(|key| key.starts_with("thread-run-key-"))),
        rules::Thread::Named(name) => assert_eq!(thread, Some(name.as_str())),
    }
    let size = history.iter().map(|(_, text)| text.len()).sum::<usize>() + order.question.len();
    assert!(size <= most, "an order of {size} bytes from a body of {most}");
    assert!(AgentId::accepts(order.agent_id.as_str()));
}

/// Checks that the same JSON in other spaces is the same order.
fn is_the_same_in_other_spaces(route: OrderRoute, json: &Value, first: &RunOrder) {
    let pretty = serde_json::to_vec_pretty(json).expect("JSON can be written");
    let second = order(route, &pretty).expect("the same body is taken");
    assert_eq!(first.hash, second.hash);
    assert_eq!((&first.question, &first.history), (&second.question, &second.history));
    let is_repeatable = match route {
        OrderRoute::Chat => rules::is_repeatable(json),
        OrderRoute::Runs => true,
        OrderRoute::Completions => false,
    };
    assert_eq!(first.run_id == second.run_id, is_repeatable, "a repeated body is the same run, or is not");
}

/// Checks what another field does: only an order of a run is refused, with the field's name.
fn knows_its_fields(route: OrderRoute, json: &Value, first: &RunOrder) {
    if json.get(UNKNOWN).is_some() {
        return;
    }
    let mut more = json.clone();
    more[UNKNOWN] = Value::Null;
    match (order(route, more.to_string().as_bytes()), route) {
        (Err(refusal), OrderRoute::Runs) => assert!(refusal.contains(&format!("unknown field `{UNKNOWN}`"))),
        (Ok(second), OrderRoute::Chat | OrderRoute::Completions) => {
            assert_eq!(first.question, second.question)
        }
        (other, _) => panic!("with another field: {other:?}"),
    }
}
