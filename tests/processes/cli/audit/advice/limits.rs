//! Follows advice about limits of runs and accounts, and about models without a price.

use harness::{World, advice::follow, grant};
use platform_core::{
    budget::{Budget, Limit},
    grant::RunGrant,
    money::NanoDollars,
    refusal::Refusal,
};

use super::advised;

pub(super) const FOLLOWED: &[Refusal] = &[
    Refusal::RateLimited,
    Refusal::ConcurrencyLimited,
    Refusal::QuotaReserved,
    Refusal::QuotaExhausted,
    Refusal::ModelUnpriced,
];

/// Values of the placeholders.
const VALUES: [(&str, &str); 2] = [("N", "100000"), ("DOLLARS", "5")];

/// Accounts with one limit each, named after it, and one with a name that a shell would split.
const CONFIG: &str = "\
[prices.fake]
input = '1'
output = '2'
[prices.fake-stall1]
input = '1'
output = '2'
[accounts.requests]
requests = 1
[accounts.requests_per_minute]
requests_per_minute = 1
[accounts.calls_in_flight]
calls_in_flight = 1
[accounts.input_tokens]
input_tokens = 1
[accounts.output_tokens]
output_tokens = 1
[accounts.total_tokens]
total_tokens = 5
[accounts.cost]
cost = '0.00001'
[accounts.'auth0|acct']
cost = '1'
";

/// A limit that refuses a call.
struct Exceeded {
    run: String,
    account: String,
    budget: Budget,
    refusal: Refusal,
    /// Model of a call that is in flight meanwhile, if the limit is about that.
    in_flight: Option<&'static str>,
    model: &'static str,
}

/// Returns the amount of `limit` that the second call exceeds, at the latest.
const fn amount(limit: Limit) -> u64 {
    match limit {
        Limit::CostNanodollars => 10_000,
        Limit::TotalTokens => 5,
        _ => 1,
    }
}

/// Returns every limit: of a run, and of an account.
fn exceeded() -> Vec<Exceeded> {
    let of_owner = |limit: Limit, is_run: &str| {
        let mut budget = Budget::default();
        let account = match is_run {
            "run" => {
                budget.allow(limit, Some(amount(limit)));
                "acct-1"
            }
            _ => limit.setting(),
        };
        let (refusal, in_flight) = match limit {
            Limit::RequestsPerMinute => (Refusal::RateLimited, None),
            Limit::CallsInFlight => (Refusal::ConcurrencyLimited, Some("fake-stall1")),
            _ => (Refusal::QuotaExhausted, None),
        };
        let run = format!("{is_run}-{}", limit.setting().replace('_', "-"));
        Exceeded { run, account: account.to_owned(), budget, refusal, in_flight, model: "fake" }
    };
    let other = |run: &str, account: &str, budget: Budget, refusal: Refusal| Exceeded {
        run: run.to_owned(),
        account: account.to_owned(),
        budget,
        refusal,
        in_flight: None,
        model: "fake-words3",
    };
    let cost = Budget { cost_nanodollars: Some(NanoDollars(1_000_000_000)), ..Budget::default() };
    let reserved = Budget { total_tokens: Some(10_000), ..Budget::default() };
    let mut all: Vec<_> = Limit::ALL
        .into_iter()
        .flat_map(|limit| ["run", "account"].map(|owner| of_owner(limit, owner)))
        .collect();
    all.push(other("unpriced", "acct-1", cost, Refusal::ModelUnpriced));
    all.push(other("unpriced-account", "auth0|acct", Budget::default(), Refusal::ModelUnpriced));
    let other = other("reserved", "acct-1", reserved, Refusal::QuotaReserved);
    all.push(Exceeded { in_flight: Some("fake-stall1"), model: "fake", ..other });
    all
}

#[tokio::test]
async fn an_advised_limit_lets_the_next_call_pass() {
    let world = World::with(CONFIG).await;
    for Exceeded { run, account, budget, refusal, in_flight, model } in exceeded() {
        let started = world.run_with(RunGrant { budget, ..grant(&run, &account) }).await;
        let mut held = None;
        if let Some(model) = in_flight {
            let mut stream = started.agent.stream(model).await;
            stream.next().await.unwrap();
            held = Some(stream);
        }
        // The first call uses the limit up, unless it is too much by itself.
        started.agent.chat(model).await;
        let refused = started.agent.chat(model).await;
        assert_eq!(refused.json()["error"]["code"], refusal.code(), "{run}: control: it is refused");
        let commands = advised(&world, refusal).await;
        assert!(commands[0].starts_with("sluice limit --"), "{run}: {commands:?}");
        for command in &commands {
            let outcome = follow(world.sluice(), command, &VALUES).await;
            assert_eq!(outcome.code, Some(0), "{run}: {command}: {outcome:?}");
        }
        let passed = started.agent.chat(model).await;
        assert_eq!(passed.status, 200, "{run}: after {commands:?}: {}", passed.text());
        drop(held);
    }
}
