//! Tests that usage never exceeds a limit and that no reservation stays, in any order of events.

use std::{
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
    thread,
    time::Duration,
};

use platform_core::{
    budget::{Budget, Limit, Price},
    control::Usage,
    money::NanoDollars,
    record::Tokens,
};
use proptest::prelude::*;

use super::{
    LimitOwner, QuotaError, QuotaShortfall, Reservation, ReservationRequest, Spending, pace, quota::Quota,
};

const NOW: Duration = Duration::ZERO;

fn spending(budget: Budget) -> Arc<Spending> {
    Arc::new(Spending::new(&budget, &Usage::default()))
}

fn unlimited() -> Arc<Spending> {
    spending(Budget::default())
}

const fn ask(input: u64, output: u64) -> ReservationRequest {
    ReservationRequest { input, output, least_output: 1, answers: 1, price: None }
}

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

/// Begins a call that has reserved what it needs, and returns the most that each of its answers may have.
fn call(
    run: &Arc<Spending>,
    account: &Arc<Spending>,
    ask: ReservationRequest,
) -> Result<(Reservation, u64), QuotaError> {
    let mut reservation = Reservation::enter(run, account)?;
    let granted = reservation.grow(&ask)?;
    Ok((reservation, granted.output_each))
}

/// Returns limit, usage and reservations under one limit.
fn state(spending: &Spending, limit: Limit) -> (u64, u64) {
    let view = spending.view().into_iter().find(|view| view.limit == limit).unwrap();
    (view.used, view.reserved)
}

/// Returns the error for a limit of which there is less left than the call needs, whatever others do.
fn short(owner: LimitOwner, limit: Limit, needed: u64, left: u64) -> QuotaError {
    QuotaError::Exceeded(owner, limit, QuotaShortfall::Exhausted { needed, left })
}

#[test]
fn answers_are_capped_by_usage_not_reservations() {
    let run = spending(Budget { total_tokens: Some(1000), ..Budget::default() });
    let account = unlimited();
    let (first, output) = call(&run, &account, ask(100, 8192)).unwrap();
    assert_eq!(output, 900, "all that is left, instead of a refusal");
    let held = QuotaError::Exceeded(LimitOwner::Run, Limit::TotalTokens, QuotaShortfall::Reserved);
    assert_eq!(call(&run, &account, ask(100, 8192)).unwrap_err(), held);
    first.settle(tokens(40, 60), NanoDollars(0));
    let (second, output) = call(&run, &account, ask(100, 8192)).unwrap();
    assert_eq!(output, 800);
    second.settle(tokens(100, 800), NanoDollars(0));
    assert_eq!(state(&run, Limit::TotalTokens), (1000, 0));
    let used_up = short(LimitOwner::Run, Limit::TotalTokens, 2, 0);
    assert_eq!(call(&run, &account, ask(1, 1)).unwrap_err(), used_up);
}

#[test]
fn a_call_its_account_limits_keeps_its_runs_rate() {
    let at = |per_minute| spending(Budget { requests_per_minute: Some(per_minute), ..Budget::default() });
    let (run, slow, fast) = (at(5), at(1), at(100));
    assert_eq!(pace(&run, &slow, NOW), Ok(()));
    for _ in 0..100 {
        let short = pace(&run, &slow, NOW).unwrap_err();
        assert!(matches!(short, QuotaError::RateLimited(LimitOwner::Account, _)), "{short:?}");
    }
    let passed = (0..100).filter(|_| pace(&run, &fast, NOW).is_ok()).count();
    assert_eq!(passed, 4, "all that it had left");
}

#[test]
fn each_limit_is_held_for_run_and_account_alike() {
    let paid = |ask| ReservationRequest {
        price: Some(Price { output: NanoDollars(1_000_000), ..Price::default() }),
        ..ask
    };
    let table = [
        (Budget { requests: Some(1), ..Budget::default() }, ask(1, 1), Limit::Requests),
        (Budget { calls_in_flight: Some(1), ..Budget::default() }, ask(1, 1), Limit::CallsInFlight),
        (Budget { input_tokens: Some(10), ..Budget::default() }, ask(10, 1), Limit::InputTokens),
        (Budget { output_tokens: Some(10), ..Budget::default() }, ask(1, 10), Limit::OutputTokens),
        (Budget { total_tokens: Some(11), ..Budget::default() }, ask(1, 10), Limit::TotalTokens),
        (
            Budget { cost_nanodollars: Some(NanoDollars(10)), ..Budget::default() },
            paid(ask(1, 10)),
            Limit::CostNanodollars,
        ),
    ];
    for (budget, ask, limit) in table {
        for whose in [LimitOwner::Run, LimitOwner::Account] {
            let (run, account) = match whose {
                LimitOwner::Run => (spending(budget), unlimited()),
                LimitOwner::Account => (unlimited(), spending(budget)),
            };
            let (first, _) = call(&run, &account, ask).unwrap();
            let refused = call(&run, &account, ask).unwrap_err();
            assert_eq!(refused, QuotaError::Exceeded(whose, limit, QuotaShortfall::Reserved), "{limit}");
            drop(first);
            call(&run, &account, ask).unwrap().0.settle(tokens(10, 10), NanoDollars(10));
            let again = call(&run, &account, ask).map(drop);
            if limit == Limit::CallsInFlight {
                assert!(again.is_ok());
            } else {
                let error = again.unwrap_err();
                let QuotaError::Exceeded(owner, named, QuotaShortfall::Exhausted { needed, left }) = error
                else {
                    panic!("{limit}: {error:?}");
                };
                assert_eq!((owner, named), (whose, limit));
                assert!(needed > left, "{limit}: {error:?}");
            }
            for limit in Limit::ALL {
                assert_eq!(
                    [state(&run, limit).1, state(&account, limit).1],
                    [0, 0],
                    "{limit} stays reserved"
                );
            }
        }
    }
}

#[test]
fn several_answers_are_several_times_the_tokens() {
    let run = spending(Budget { output_tokens: Some(100), ..Budget::default() });
    let (call, output) = call(&run, &unlimited(), ReservationRequest { answers: 8, ..ask(1, 8192) }).unwrap();
    assert_eq!((output, state(&run, Limit::OutputTokens).1), (12, 96));
    drop(call);
    let absurd = ReservationRequest { answers: u64::MAX, ..ask(1, 8192) };
    assert!(Reservation::enter(&unlimited(), &unlimited()).unwrap().grow(&absurd).is_err());
}

/// No limit can be given to it, so that a call that is let through on less could use more than is left.
#[test]
fn an_answer_that_cannot_be_cut_needs_it_all() {
    let compaction = |output| ReservationRequest { least_output: output, ..ask(10, output) };
    let run = spending(Budget { total_tokens: Some(100), ..Budget::default() });
    for (run, account, owner) in
        [(&run, &unlimited(), LimitOwner::Run), (&unlimited(), &run, LimitOwner::Account)]
    {
        let error = call(run, account, compaction(91)).map(drop).unwrap_err();
        assert_eq!(error, short(owner, Limit::TotalTokens, 101, 100));
        let (held, output) = call(run, account, compaction(90)).unwrap();
        assert_eq!(output, 90, "the control");
        drop(held);
    }
}

#[test]
fn a_cost_limit_needs_a_price() {
    let poor = spending(Budget { cost_nanodollars: Some(NanoDollars(0)), ..Budget::default() });
    let asked = |price| {
        call(&poor, &unlimited(), ReservationRequest { price, ..ask(1000, 10) }).map(|(_, output)| output)
    };
    assert_eq!(asked(None), Err(QuotaError::Unpriced(LimitOwner::Run)));
    assert_eq!(asked(Some(Price::default())), Ok(10));
    let short = |needed| Err(short(LimitOwner::Run, Limit::CostNanodollars, needed, 0));
    assert_eq!(asked(Some(Price { input: NanoDollars(1), ..Price::default() })), short(1));
    assert_eq!(asked(Some(Price { output: NanoDollars(1_000_000), ..Price::default() })), short(1));
}

#[test]
fn changed_limits_hold_at_once_and_keep_usage() {
    let (run, account) = (unlimited(), unlimited());
    let (first, _) = call(&run, &account, ask(50, 50)).unwrap();
    run.set_limits(&Budget { total_tokens: Some(120), ..Budget::default() });
    assert_eq!(
        call(&run, &account, ask(20, 1)).unwrap_err(),
        QuotaError::Exceeded(LimitOwner::Run, Limit::TotalTokens, QuotaShortfall::Reserved)
    );
    first.settle(tokens(50, 50), NanoDollars(0));
    assert_eq!(call(&run, &account, ask(10, 50)).unwrap().1, 10);
    run.set_limits(&Budget { total_tokens: Some(99), ..Budget::default() });
    assert_eq!(
        call(&run, &account, ask(0, 1)).unwrap_err(),
        short(LimitOwner::Run, Limit::TotalTokens, 1, 0)
    );
}

/// Events in the lives of calls.
#[derive(Debug, Clone)]
enum Event {
    Begin {
        run: usize,
        input: u64,
        output: u64,
        answers: u64,
    },
    /// The call ends having used this part of what it set aside, in percent.
    End {
        call: usize,
        percent: u64,
    },
    /// The call is dropped before anything was sent.
    Drop {
        call: usize,
    },
    /// The proxy is killed: what was settled is known from the journal, what was in flight is gone.
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..2usize, 0..300u64, 1..600u64, 1..4u64)
            .prop_map(|(run, input, output, answers)| Event::Begin { run, input, output, answers }),
        4 => (any::<usize>(), 0..=100u64).prop_map(|(call, percent)| Event::End { call, percent }),
        1 => any::<usize>().prop_map(|call| Event::Drop { call }),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(event, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_order_of_calls_exceeds_a_limit(events in events()) {
        let limits = [4000, 5000, 6000]; // two runs, and the account of both
        let budget = |at: usize| Budget { total_tokens: Some(limits[at]), ..Budget::default() };
        let mut usage = [Usage::default(); 3];
        let mut spending = [0, 1, 2].map(|at| Arc::new(Spending::new(&budget(at), &usage[at])));
        let mut calls: Vec<(usize, Reservation, Tokens)> = Vec::new();
        for event in events {
            match event {
                Event::Begin { run, input, output, answers } => {
                    let ask = ReservationRequest { input, output, least_output: 1, answers, price: None };
                    if let Ok(mut entered) = Reservation::enter(&spending[run], &spending[2])
                        && let Ok(granted) = entered.grow(&ask)
                    {
                        prop_assert!(granted.output_each >= 1 && granted.output_each <= output);
                        calls.push((run, entered, granted.tokens));
                    }
                }
                Event::End { call, percent } if !calls.is_empty() => {
                    let (run, reservation, most) = calls.swap_remove(call % calls.len());
                    let used = tokens(most.input * percent / 100, most.output * percent / 100);
                    reservation.settle(used, NanoDollars(0));
                    for at in [run, 2] {
                        usage[at] += Usage { calls: 1, tokens: used, ..Usage::default() };
                    }
                }
                Event::Drop { call } if !calls.is_empty() => drop(calls.swap_remove(call % calls.len())),
                Event::Restart => {
                    calls.clear();
                    spending = [0, 1, 2].map(|at| Arc::new(Spending::new(&budget(at), &usage[at])));
                }
                Event::End { .. } | Event::Drop { .. } => {}
            }
            for at in 0..3 {
                let (used, reserved) = state(&spending[at], Limit::TotalTokens);
                let held: u64 = calls.iter().filter(|call| at == 2 || call.0 == at).map(|call| call.2.input + call.2.output).sum();
                prop_assert_eq!((used, reserved), (usage[at].tokens.input + usage[at].tokens.output, held));
                prop_assert!(used + reserved <= limits[at]);
            }
        }
    }
}

/// Threads that all want the last tokens; their own count says what is held at any moment.
#[test]
fn concurrent_reservations_stay_within_a_limit() {
    const LIMIT: u64 = 100_000;
    for threads in [8, 64, 256] {
        let run = spending(Budget { total_tokens: Some(LIMIT), ..Budget::default() });
        let (account, held, spent) = (unlimited(), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for seed in 0..threads {
                let (run, account, held, spent) = (&run, &account, &held, &spent);
                scope.spawn(move || {
                    for turn in 0..20_000 / threads {
                        let wanted = ask(seed % 7, 1 + (seed * 31 + turn) % 97);
                        let Ok((reservation, output)) = call(run, account, wanted) else { continue };
                        let most = wanted.input + output;
                        // In this order what is settled meanwhile is missed, and never counted twice.
                        let before = spent.load(Ordering::SeqCst);
                        let now = held.fetch_add(most, Ordering::SeqCst) + most + before;
                        assert!(now <= LIMIT, "{now} of {LIMIT}");
                        held.fetch_sub(most, Ordering::SeqCst);
                        let used = output / 2;
                        reservation.settle(tokens(0, used), NanoDollars(0));
                        spent.fetch_add(used, Ordering::SeqCst);
                    }
                });
            }
        });
        let settled = spent.load(Ordering::SeqCst);
        assert_eq!(state(&run, Limit::TotalTokens), (settled, 0));
        assert!(settled <= LIMIT && settled > LIMIT / 4, "{settled}: the limit was in reach");
    }
}

/// An upstream that says 2^64 - 1 uses a limit up, and neither a restart nor calls after it have it count from 0 again.
#[test]
fn absurd_usage_uses_a_limit_up_for_good() {
    for restored in [0, 1 << 44, u64::MAX - 1, u64::MAX] {
        let quota = Quota::new(u64::MAX - 1, restored);
        for used in [u64::MAX, 1, u64::MAX] {
            quota.settle(0, used);
            assert_eq!(
                (quota.used(), quota.reserve(1)),
                (u64::MAX, Err(QuotaShortfall::Exhausted { needed: 1, left: 0 })),
                "{restored}"
            );
        }
    }
    let told = Usage { tokens: tokens(u64::MAX, 5), ..Usage::default() };
    let limit = Budget { total_tokens: Some(u64::MAX - 1), ..Budget::default() };
    let spending = Arc::new(Spending::new(&limit, &told));
    let entered = Reservation::enter(&spending, &unlimited()).unwrap();
    entered.settle(tokens(u64::MAX, u64::MAX), NanoDollars(u64::MAX));
    assert_eq!(spending.quota(Limit::TotalTokens).map(Quota::used), Some(u64::MAX));
    assert_eq!(spending.quota(Limit::CostNanodollars).map(Quota::used), Some(u64::MAX));
}
