//! Computes calls from their numbers, so that millions of them need no memory: for journals and ledgers of any length.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use platform_core::{
    id::{AccountId, CallId, RunId},
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, Outcome, Tokens, TokensSource},
    refusal::Refusal,
};
use serde_json::json;

/// Cost of each call, according to its record.
pub const COST: NanoDollars = NanoDollars(23_000);

/// Number of accounts that share the calls.
pub const ACCOUNTS: u64 = 10;

/// Number of calls that one run makes.
const CALLS_OF_RUN: u64 = 1000;
/// Time between the last call and now: none is too young for a ledger.
const AGE: Duration = Duration::from_secs(60);

/// Calls with the numbers from 0 on, one in each step of time.
#[derive(Debug, Clone, Copy)]
pub struct NumberedCalls {
    from: SystemTime,
    step: Duration,
    /// Number of the calls.
    pub count: u64,
    /// Distance between two calls that were sent upstream; those between were refused.
    sent_every: u64,
}

impl NumberedCalls {
    /// Returns `count` calls in a time `span` that ended a minute ago, all of them sent upstream.
    ///
    /// # Panics
    /// If they are too many.
    #[must_use]
    pub fn within(span: Duration, count: u64) -> Self {
        let step = span / u32::try_from(count).unwrap();
        Self { from: SystemTime::now() - span - AGE, step, count, sent_every: 1 }
    }

    /// Returns the same calls, of which one in `distance` was sent upstream, and the others were refused.
    #[must_use]
    pub const fn sent_every(self, distance: u64) -> Self {
        Self { sent_every: distance, ..self }
    }

    /// Returns the number of calls that began before `time`.
    #[must_use]
    pub fn before(&self, time: SystemTime) -> u64 {
        let since = time.duration_since(self.from).unwrap_or_default();
        u64::try_from(since.as_nanos().div_ceil(self.step.as_nanos())).unwrap_or(u64::MAX).min(self.count)
    }

    /// Returns the time at which call `number` began.
    ///
    /// # Panics
    /// If the call does not exist.
    #[must_use]
    pub fn began(&self, number: u64) -> SystemTime {
        self.from + self.step * u32::try_from(number).unwrap()
    }

    /// Returns the id of call `number`.
    ///
    /// # Panics
    /// If the call does not exist.
    #[must_use]
    pub fn call_id(&self, number: u64) -> CallId {
        let since = self.began(number).duration_since(UNIX_EPOCH).unwrap();
        CallId::new(u64::try_from(since.as_millis()).unwrap(), number.into())
    }

    /// Returns the number of calls of account `account` that were sent upstream.
    #[must_use]
    pub fn sent_by(&self, account: u64) -> u64 {
        let sent = (0..self.count).step_by(usize::try_from(self.sent_every).unwrap_or(usize::MAX));
        sent.filter(|number| number % ACCOUNTS == account).count() as u64
    }

    /// Returns the records of all calls, in their order.
    pub fn records(&self) -> impl Iterator<Item = ExchangeRecord> {
        let [sent, refused] = [sent(), refused(sent())];
        let accounts: Vec<_> = (0..ACCOUNTS).map(account).collect();
        let calls = *self;
        (0..calls.count).map(move |number| ExchangeRecord {
            ts: humantime::format_rfc3339_micros(calls.began(number)).to_string(),
            run_id: RunId::parse(&format!("run-{}", number / CALLS_OF_RUN)).unwrap(),
            account: accounts[usize::try_from(number % ACCOUNTS).unwrap()].clone(),
            litellm_call_id: calls.call_id(number),
            ..if number.is_multiple_of(calls.sent_every) { sent.clone() } else { refused.clone() }
        })
    }
}

/// Returns the account of the call with this number.
#[must_use]
pub(crate) fn account_of(number: u64) -> AccountId {
    account(number % ACCOUNTS)
}

/// Returns the account with this number.
///
/// # Panics
/// Never.
#[must_use]
pub fn account(number: u64) -> AccountId {
    AccountId::parse(&format!("acct-{number}")).unwrap()
}

/// Returns the record of a call that was answered.
fn sent() -> ExchangeRecord {
    let record = json!({
        "ts": "", "run_id": "r", "attempt": 0, "account": "a", "user": "u-1", "graph": "sandbox:agent",
        "identity": "socket", "route": "chat_completions", "model_asked": "small", "model_answered": "small-2",
        "finish_reason": "stop", "stream": true, "status": 200, "outcome": "complete", "refusal": null, "rule": null,
        "timeout": null, "request_bytes": 4096, "response_bytes": 9000, "ttfb_us": 300_000, "duration_us": 2_000_000,
        "tokens": Tokens { input: 1200, output: 340, ..Tokens::default() }, "tokens_source": "exact",
        "cost_nanodollars": COST, "cost_source": "upstream", "litellm_call_id": CallId::new(0, 0), "tools": ["sh"],
        "kind": "model", "calls": 1, "tap": "off",
    });
    serde_json::from_value(record).unwrap()
}

/// Returns the record of the same call, refused.
fn refused(sent: ExchangeRecord) -> ExchangeRecord {
    ExchangeRecord {
        model_answered: None,
        finish_reason: None,
        status: 429,
        outcome: Outcome::Refused,
        refusal: Some(Refusal::RateLimited),
        response_bytes: 0,
        ttfb_us: None,
        tokens: Tokens::default(),
        tokens_source: TokensSource::None,
        cost_nanodollars: None,
        cost_source: CostSource::None,
        tools: Vec::new(),
        ..sent
    }
}
