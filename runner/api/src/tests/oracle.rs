//! Checks an order, or a refusal, against the rules.
//!
//! A body is taken if and only if the rules take it. The order then says what the rules read in the body, and no more: of
//! a chat, the last message of the user. The same body in other spaces is the same order. Only orders of runs refuse a
//! field that they do not know, and they name it.

use platform_core::id::{AgentId, ModelName, ToolName};
use proptest::{
    prop_assert, prop_assert_eq,
    test_runner::{TestCaseError, TestCaseResult},
};
use runner_engine::{
    relay::{Publish, RepoChoice},
    run_order::RunOrder,
};
use serde_json::Value;

use super::{
    ACCOUNT, OrderRoute,
    edits::EditedBody,
    order,
    repeats::has_repeats,
    rules::{self, Reading, Repository, Thread},
};

/// Field that no route knows.
const UNKNOWN: &str = "zzz";

/// Checks what becomes of a body, given the reader of the rules.
pub(super) fn check(body: &EditedBody, read: fn(OrderRoute, &Value) -> Option<Reading>) -> TestCaseResult {
    let route = body.route;
    let bytes = body.bytes();
    // The reader's own tests say which members may occur twice: those that are not read.
    if has_repeats(&bytes) {
        return Ok(());
    }
    let json: Option<Value> = serde_json::from_slice(&bytes).ok();
    let read = json.as_ref().and_then(|json| read(route, json));
    match (order(route, &bytes), json, read) {
        (Ok(taken), Some(json), Some(read)) => {
            check_content(&taken, &read, bytes.len())?;
            check_other_spaces(route, &json, &taken)?;
            check_another_field(route, &json, &taken)
        }
        (Err(_), _, None) => Ok(()),
        (Ok(taken), ..) => Err(TestCaseError::fail(format!("taken against the rules: {taken:?}"))),
        (Err(refusal), ..) => Err(TestCaseError::fail(format!("refused against the rules: {refusal}"))),
    }
}

/// Checks that an order says what the rules read, and is at most as large as its body.
fn check_content(order: &RunOrder, read: &Reading, most: usize) -> TestCaseResult {
    prop_assert_eq!(&order.question, &read.question, "another question");
    let history: Vec<_> = order.history.iter().map(|m| (m.role.name(), m.content.as_str())).collect();
    let expected: Vec<_> = read.history.iter().map(|(role, text)| (*role, text.as_str())).collect();
    prop_assert_eq!(&history, &expected, "another history");
    prop_assert_eq!(order.agent_id.as_str(), &read.agent);
    prop_assert_eq!(order.model.as_ref().map(ModelName::as_str), read.model.as_deref());
    prop_assert_eq!((order.limits.total_tokens, order.limits.cost), (read.total_tokens, read.cost));
    prop_assert_eq!(order.account.as_str(), ACCOUNT, "another account pays");
    prop_assert!(order.image.is_none(), "a body has chosen an image");
    let host_tools = order.host_tools.as_ref().map(|tools| tools.iter().map(ToolName::to_string).collect());
    prop_assert_eq!(host_tools, read.host_tools.clone(), "other host tools");
    let thread = order.thread.as_ref().map(|thread| thread.key.as_str());
    match &read.thread {
        Thread::None => prop_assert_eq!(thread, None),
        Thread::New => prop_assert!(thread.is_some_and(|key| key.starts_with("thread-run-key-"))),
        Thread::Named(name) => prop_assert_eq!(thread, Some(name.as_str())),
    }
    let size = history.iter().map(|(_, text)| text.len()).sum::<usize>() + order.question.len();
    prop_assert!(size <= most, "an order of {} bytes from a body of {}", size, most);
    prop_assert!(AgentId::accepts(order.agent_id.as_str()));
    check_repository(&order.repo, &read.repository)
}

fn check_repository(choice: &RepoChoice, read: &Repository) -> TestCaseResult {
    prop_assert_eq!((&choice.url, &choice.base, &choice.branch), (&read.url, &read.base, &read.branch));
    prop_assert_eq!(choice.publish.map(|publish| publish == Publish::PullRequest), read.pull_request);
    prop_assert_eq!(&choice.allowed, &None, "a body has chosen what is allowed");
    Ok(())
}

/// Checks that the same JSON in other spaces is the same order.
fn check_other_spaces(route: OrderRoute, json: &Value, first: &RunOrder) -> TestCaseResult {
    let pretty = serde_json::to_vec_pretty(json).expect("JSON can be written");
    let second = order(route, &pretty).expect("the same body is taken");
    prop_assert_eq!(&first.hash, &second.hash);
    prop_assert_eq!((&first.question, &first.history), (&second.question, &second.history));
    let is_repeatable = match route {
        OrderRoute::Chat => rules::is_repeatable(json),
        OrderRoute::Runs => true,
        OrderRoute::Completions => false,
    };
    let is_repeated = first.run_id == second.run_id;
    prop_assert_eq!(is_repeated, is_repeatable, "a repeated body is the same run, or is not");
    Ok(())
}

/// Checks what another field does: only an order of a run is refused, with the field's name.
fn check_another_field(route: OrderRoute, json: &Value, first: &RunOrder) -> TestCaseResult {
    if json.get(UNKNOWN).is_some() {
        return Ok(());
    }
    let mut more = json.clone();
    more[UNKNOWN] = Value::Null;
    match (order(route, more.to_string().as_bytes()), route) {
        (Err(refusal), OrderRoute::Runs) => {
            let names_it = refusal.to_string().contains(&format!("unknown field `{UNKNOWN}`"));
            prop_assert!(names_it, "{}", refusal);
        }
        (Ok(second), OrderRoute::Chat | OrderRoute::Completions) => {
            prop_assert_eq!(&first.question, &second.question);
        }
        (other, _) => return Err(TestCaseError::fail(format!("with another field: {other:?}"))),
    }
    Ok(())
}
