//! Checks limits. An input is events of four letters each.
//!
//! * `a` or `b`: a call of one of two runs of an account begins; the letters say how much it asks for: input, output,
//!   answers.
//! * `e`: a call ends, having used so many of 255 parts of its reservation.
//! * `x`: a call ends, having used so many times its reservation.
//! * `d`: a call is dropped.
//! * `r`: the proxy is killed and starts again with what the journal knows.
//!
//! After `e`, `x` and `d` comes the number of the call.
//!
//! Real use is counted whole, even if it exceeds the reservation. No call begins beyond a limit. The used and the
//! reserved amounts are exactly those of the calls. A single call is refused only if it does not fit.

use platform_core::{
    budget::{Budget, Limit, Price},
    control::Usage,
    money::NanoDollars,
    record::Tokens,
};
use proxy::fuzzing::{CallSize, Limits};

use crate::SPOILED;

/// Prices in nanodollars for a token.
const INPUT: u64 = 3;
const OUTPUT: u64 = 15;

/// Limits of two runs and their account: requests, calls at a time, input, output, both, money.
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

/// Sums of what calls have really used.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    calls: u64,
    tokens: Tokens,
}

/// Call in flight, with its reservation.
struct Call {
    run: usize,
    most: Tokens,
}

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let mut usage = [Sums::default(); 3];
    let mut beyond = [[0; 6]; 3];
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
            b'e' | b'x' | b'd' if !calls.is_empty() => {
                let at = usize::from(rest[0]) % calls.len();
                let Call { run, most } = calls.swap_remove(at);
                let part = |all: u64, of: u8| match kind {
                    b'x' => all * u64::from(of),
                    _ => all * u64::from(of) / 255,
                };
                let used = tokens(part(most.input, rest[1]), part(most.output, rest[2]));
                limits.end(at, (*kind != b'd').then(|| (used, cost(&used))));
                if *kind != b'd' {
                    for at in [run, 2] {
                        usage[at].add(&used, &most, &mut beyond[at]);
                    }
                }
                // The control: this call uses one token more than it reports.
                usage[run].tokens.output += u64::from(SPOILED && *kind == b'x' && calls.len() == 2);
            }
            b'r' => {
                calls.clear();
                limits = start(&usage);
            }
            _ => return,
        }
        for (owner, usage) in usage.iter().enumerate() {
            assert_agrees(&limits, (owner, usage, &beyond[owner]), &calls);
        }
    }
}

impl Sums {
    /// Adds the use of a call, and adds to `beyond` the amount by which it exceeds `most`.
    fn add(&mut self, used: &Tokens, most: &Tokens, beyond: &mut [u64; 6]) {
        self.calls += 1;
        self.tokens.input += used.input;
        self.tokens.output += used.output;
        let (used, most) = (amounts(0, 0, used), amounts(0, 0, most));
        (0..6).for_each(|at| beyond[at] += used[at].saturating_sub(most[at]));
    }

    fn usage(&self) -> Usage {
        let cost_nanodollars = cost(&self.tokens);
        Usage { calls: self.calls, tokens: self.tokens, cost_nanodollars, ..Usage::default() }
    }
}

fn start(usage: &[Sums; 3]) -> Limits {
    let budget = |[requests, calls, input, output, total, cost]: [u64; 6]| Budget {
        requests: Some(requests),
        requests_per_minute: None,
        calls_in_flight: Some(calls),
        input_tokens: Some(input),
        output_tokens: Some(output),
        total_tokens: Some(total),
        cost_nanodollars: Some(NanoDollars(cost)),
    };
    Limits::new(&[0, 1, 2].map(|at| (budget(ALLOWED[at]), usage[at].usage())))
}

/// Begins a call that asks for what `letters` say, and returns its reservation.
fn begin(
    limits: &mut Limits,
    run: usize,
    letters: &[u8],
    usage: &[Sums; 3],
    calls: &[Call],
) -> Option<Tokens> {
    let [input, output, answers] = [letters[0], letters[1], letters[2]].map(u64::from);
    let (input, output, answers) = (input * 16, 1 + output * 16, 1 + answers % 4);
    let million = |each: u64| NanoDollars(each * 1_000_000);
    let price = Price { input: million(INPUT), output: million(OUTPUT), ..Price::default() };
    let granted = limits.begin(run, CallSize { input, output, answers }, price);
    match granted {
        Some(most) => {
            assert_eq!((most.input, most.output % answers), (input, 0), "another prompt");
            for owner in [run, 2] {
                let (reserved, more) = (reserved(calls, owner), amounts(1, 1, &most));
                // A call that needs nothing of a kind may begin even if that kind is overdrawn.
                let fits = |it: usize| {
                    more[it] == 0 || used(&usage[owner])[it] + reserved[it] + more[it] <= ALLOWED[owner][it]
                };
                assert!((0..6).all(fits), "{most:?} begins beyond a limit of {owner}: {usage:?}");
            }
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

/// Compares the view of a run or of the account with its calls.
fn assert_agrees(limits: &Limits, (owner, usage, beyond): (usize, &Sums, &[u64; 6]), calls: &[Call]) {
    let (reserved, used) = (reserved(calls, owner), used(usage));
    for view in limits.view(owner) {
        let Some(at) = LIMITS.iter().position(|limit| *limit == view.limit) else { continue };
        assert_eq!((view.used, view.reserved), (used[at], reserved[at]), "{} of {owner}", view.limit);
        let most = ALLOWED[owner][at] + beyond[at];
        assert!(view.used + view.reserved <= most, "{} of {owner}: too much", view.limit);
    }
}

/// Returns the amounts reserved for the calls of a run or of the account.
fn reserved(calls: &[Call], owner: usize) -> [u64; 6] {
    let mut reserved = [0; 6];
    for call in calls.iter().filter(|call| owner == 2 || call.run == owner) {
        let amounts = amounts(1, 1, &call.most);
        (0..6).for_each(|at| reserved[at] += amounts[at]);
    }
    reserved
}

fn used(usage: &Sums) -> [u64; 6] {
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
