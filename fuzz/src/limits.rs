//! Limits. An input is events of four letters each: `a` or `b`, a call of one of two runs of an account begins, and the
//! letters say how much it asks for (input, output, answers); `e`, a call ends, having used so many of 255 parts of what
//! was set aside; `d`, it is dropped; `r`, the proxy is killed and starts again with what the journal knows. After `e` and
//! `d` comes which call.
//!
//! Never is more used and set aside than a limit allows, it is exactly what the calls say, and a call that is alone is
//! refused only if it does not fit.

use platform_core::{
    budget::{Budget, Limit, Price},
    control::Usage,
    money::NanoDollars,
    record::{Outcome, Tokens},
};
use proxy::parts::Limits;

use crate::SPOILED;

/// In nanodollars for a token.
const INPUT: u64 = 3;
const OUTPUT: u64 = 15;

/// What two runs and their account may use: requests, calls at a time, input, output, both, money.
const ALLOWED: [[u64; 6]; 3] = [
    [12, 3, 3000, 4000, 6000, 70_000],
    [20, 4, 5000, 3000, 7000, 60_000],
    [25, 5, 6000, 6000, 11_000, 120_000],
];
const LIMITS: [Limit; 6] = [
    Limit::Requests,
    Limit::CallsInFlight,
    Limit::InputTokens,
    Limit::OutputTokens,
    Limit::TotalTokens,
    Limit::CostNanodollars,
];

/// A call in flight, and what is set aside for it.
struct Call {
    run: usize,
    most: Tokens,
}

/// Checks one input.
///
/// # Panics
/// If a property does not hold.
pub fn holds(input: &[u8]) {
    let mut usage = [Usage::default(); 3];
    let mut limits = start(&usage);
    let mut calls: Vec<Call> = Vec::new();
    for event in input.chunks_exact(4) {
        let [kind, rest @ ..] = event else { return };
        match kind {
            b'a' | b'b' => {
                let run = usize::from(*kind - b'a');
                let most = begin(&mut limits, run, rest, &usage, &calls);
                calls.extend(most.map(|most| Call { run, most }));
            }
            b'e' | b'd' if !calls.is_empty() => {
                let at = usize::from(rest[0]) % calls.len();
                let Call { run, most } = calls.swap_remove(at);
                let part = |all: u64, of: u8| all * u64::from(of) / 255;
                let used = tokens(part(most.input, rest[1]), part(most.output, rest[2]));
                limits.end(at, (*kind == b'e').then(|| (used, cost(&used))));
                if *kind == b'e' {
                    for at in [run, 2] {
                        usage[at].add(Outcome::Complete, 1, &used, cost(&used));
                    }
                }
            }
            b'r' => {
                calls.clear();
                limits = start(&usage);
            }
            _ => return,
        }
        for (whose, usage) in usage.iter().enumerate() {
            agrees(&limits, whose, usage, &calls);
        }
        assert!(!SPOILED || calls.len() < 4, "the control: so many at a time");
    }
}

fn start(usage: &[Usage; 3]) -> Limits {
    let budget = |[requests, calls, input, output, total, cost]: [u64; 6]| Budget {
        requests: Some(requests),
        requests_per_minute: None,
        calls_in_flight: Some(calls),
        input_tokens: Some(input),
        output_tokens: Some(output),
        total_tokens: Some(total),
        cost_nanodollars: Some(NanoDollars(cost)),
    };
    Limits::new(&[0, 1, 2].map(|at| (budget(ALLOWED[at]), usage[at])))
}

/// What a call is granted that asks for what `letters` say.
fn begin(
    limits: &mut Limits,
    run: usize,
    letters: &[u8],
    usage: &[Usage; 3],
    calls: &[Call],
) -> Option<Tokens> {
    let [input, output, answers] = [letters[0], letters[1], letters[2]].map(u64::from);
    let (input, output, answers) = (input * 16, 1 + output * 16, 1 + answers % 4);
    let million = |each: u64| NanoDollars(each * 1_000_000);
    let price = Price { input: million(INPUT), output: million(OUTPUT), ..Price::default() };
    let granted = limits.begin(run, (input, output, answers), price);
    match granted {
        Some(most) => {
            assert_eq!((most.input, most.output % answers), (input, 0), "another prompt");
            assert!((1..=output).contains(&(most.output / answers)), "{most:?} for {output} of {answers}");
        }
        None => {
            let least = amounts(1, 1, &tokens(input, answers));
            let fits = |at: usize| (0..6).all(|it| used(&usage[at])[it] + least[it] <= ALLOWED[at][it]);
            assert!(!(calls.is_empty() && fits(run) && fits(2)), "refused, and there was room");
        }
    }
    granted
}

/// Holds the view of a run or of the account against what its calls say.
fn agrees(limits: &Limits, whose: usize, usage: &Usage, calls: &[Call]) {
    let mut held = [0; 6];
    for call in calls.iter().filter(|call| whose == 2 || call.run == whose) {
        let amounts = amounts(1, 1, &call.most);
        (0..6).for_each(|at| held[at] += amounts[at]);
    }
    let used = used(usage);
    for view in limits.view(whose) {
        let Some(at) = LIMITS.iter().position(|limit| *limit == view.limit) else { continue };
        assert_eq!((view.used, view.reserved), (used[at], held[at]), "{} of {whose}", view.limit);
        assert!(view.used + view.reserved <= ALLOWED[whose][at], "{} of {whose}: too much", view.limit);
    }
}

fn used(usage: &Usage) -> [u64; 6] {
    amounts(usage.calls, 0, &usage.tokens)
}

fn amounts(requests: u64, calls: u64, tokens: &Tokens) -> [u64; 6] {
    [requests, calls, tokens.input, tokens.output, tokens.input + tokens.output, cost(tokens).0]
}

fn cost(tokens: &Tokens) -> NanoDollars {
    NanoDollars(tokens.input * INPUT + tokens.output * OUTPUT)
}

fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}
