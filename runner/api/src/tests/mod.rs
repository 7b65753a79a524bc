//! Tests that a body orders a run if and only if the documented rules say so (`rules`, `oracle`).
//!
//! Bodies are the files in `seeds`, as they are and with random edits (`edits`). A body that once broke a rule becomes a
//! seed. Does not test what needs a store: the limits of an account, or a repeated order.

mod edits;
mod oracle;
mod pieces;
mod repeats;
mod rules;

use axum::http::HeaderMap;
use platform_core::id::{AccountId, RunId};
use proptest::{
    prelude::{ProptestConfig, proptest},
    strategy::{Strategy, ValueTree},
    test_runner::{RngAlgorithm, TestError, TestRng, TestRunner},
};
use runner_engine::run_order::RunOrder;
use serde_json::Value;

use self::{
    edits::{EditedBody, edited, seeds},
    oracle::check,
    rules::Reading,
};
use crate::{caller::Caller, chat, error::Error, openai, runs};

/// Account that orders.
const ACCOUNT: &str = "acct-1";
/// Number of edited bodies that a test tries.
const CASES: u32 = 12_000;
/// Fewest edited bodies of a route that are taken, and that are refused.
const MIN_CASES_OF_KIND: usize = 150;

/// Route that a body is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderRoute {
    /// `POST /api/v1/ai/chat`.
    Chat,
    /// `POST /v1/chat/completions`.
    Completions,
    /// `PUT /api/v1/runs/r1`.
    Runs,
}

impl OrderRoute {
    const ALL: [Self; 3] = [Self::Chat, Self::Completions, Self::Runs];
}

/// Returns the order that `body` makes at `route`.
fn order(route: OrderRoute, body: &[u8]) -> Result<RunOrder, Error> {
    let caller = Caller::Anonymous(AccountId::parse(ACCOUNT).unwrap());
    match route {
        OrderRoute::Chat => chat::order_of(body, &caller),
        OrderRoute::Completions => openai::order_of(body, &HeaderMap::new(), &caller),
        OrderRoute::Runs => runs::order_of(RunId::parse("r1").unwrap(), body, &caller),
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

/// Returns a runner that tries the same bodies each time.
fn repeatable_runner() -> TestRunner {
    TestRunner::new_with_rng(config(), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Reads a body by the rules, except that it refuses a question with a digit.
fn read_without_digits(route: OrderRoute, body: &Value) -> Option<Reading> {
    rules::read(route, body).filter(|reading| !has_digit(&reading.question))
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

#[test]
fn a_seed_is_taken_by_the_rules() {
    for body in seeds() {
        check(&body, rules::read).unwrap();
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_edited_body_is_taken_by_the_rules(body in edited()) {
        check(&body, rules::read)?;
    }
}

/// Control: the same search finds a rule that is not the API's. No seed breaks it.
#[test]
fn edited_bodies_break_a_wrong_rule() {
    for body in seeds() {
        check(&body, read_without_digits).unwrap();
    }
    let searched = repeatable_runner().run(&edited(), |body| check(&body, read_without_digits));
    let Err(TestError::Fail(reason, body)) = searched else { panic!("not found: {searched:?}") };
    assert!(reason.message().starts_with("taken against the rules"), "{reason}");
    assert!(has_digit(&order(body.route, &body.bytes()).unwrap().question), "{body:?}");
}

/// Control: edits leave neither only bodies that are taken nor only bodies that are refused.
#[test]
fn edited_bodies_are_taken_and_refused() {
    let seeds = seeds();
    let bodies = edited();
    let mut runner = repeatable_runner();
    let sample = |_| bodies.new_tree(&mut runner).unwrap().current();
    let edited: Vec<EditedBody> = (0..CASES).map(sample).filter(|body| !seeds.contains(body)).collect();
    for route in OrderRoute::ALL {
        let of_route = edited.iter().filter(|body| body.route == route);
        let (taken, refused): (Vec<_>, Vec<_>) =
            of_route.partition(|body| order(route, &body.bytes()).is_ok());
        let fewest = taken.len().min(refused.len());
        assert!(fewest >= MIN_CASES_OF_KIND, "{route:?}: {} taken, {} refused", taken.len(), refused.len());
    }
}
