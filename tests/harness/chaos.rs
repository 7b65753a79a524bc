//! Plays random actions of agents, operators and failing machines against a proxy; its limits should hold meanwhile.
//!
//! The random numbers come from a seed; the machine decides how the pieces interleave. The caller judges the findings.

use std::collections::BTreeMap;

use http::Method;
use platform_core::{
    budget::{Budget, Limit, LimitView},
    control::AccountView,
    grant::RunGrant,
    record::{JournalLine, Outcome, TokensSource},
};
use platform_runtime::task;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    agent::{Agent, Answering, chat_body},
    eventually,
    random::Random,
    world::{Run, World, grant},
};

/// Runs at a time.
pub const RUNS: usize = 6;
const ACCOUNTS: [&str; 2] = ["acct-1", "acct-2"];
/// Models: answers that end, streams that do not, and a call that is never answered.
const MODELS: [&str; 6] =
    ["fake-words5", "fake-words40", "fake-words200", "fake-stall1", "fake-stall20", "fake-hang"];
/// Calls in flight beyond which the oldest are cut: limits are under test, not the number of sockets.
const CALLS: usize = 64;
const CHAT: &str = "/v1/chat/completions";

/// Limits configured in the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// Limits are configured.
    Hold,
    /// A control: shows the use without limits.
    Off,
}

/// Results for one run or account.
#[derive(Debug, Default)]
pub struct Found {
    /// Highest token limit so far.
    pub allowed: u64,
    /// Tokens in the whole journal.
    pub tokens: u64,
    /// Calls in the journal that were not refused.
    pub calls: u64,
    /// Tokens and calls as the proxy reports them; absent if it no longer knows the run or account.
    pub told: Option<(u64, u64)>,
    /// Amounts still reserved under its limits.
    pub reserved: u64,
}

/// Results of a play.
#[derive(Debug, Default)]
pub struct Findings {
    /// Results by run.
    pub runs: BTreeMap<String, Found>,
    /// Results by account.
    pub accounts: BTreeMap<String, Found>,
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, u64>,
    /// Records by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Tokens of the largest call that the upstream answered to its end. The upstream ignores limits of an answer's
    /// length.
    pub largest_call: u64,
}

/// A play in progress.
#[derive(Debug)]
pub struct Chaos {
    world: World,
    limits: Limits,
    random: Random,
    runs: Vec<Run>,
    /// Current limit and highest limit so far, by run or account.
    allowed: BTreeMap<String, (u64, u64)>,
    calls: Vec<JoinHandle<()>>,
    opened: u64,
    operations: BTreeMap<&'static str, u64>,
}

impl Chaos {
    /// Performs `operations` random operations, ends all calls, and returns the findings.
    pub async fn play(seed: u64, operations: u64, limits: Limits) -> Findings {
        let mut chaos = Self {
            world: World::start().await,
            limits,
            random: Random::of(seed),
            runs: Vec::new(),
            allowed: BTreeMap::new(),
            calls: Vec::new(),
            opened: 0,
            operations: BTreeMap::new(),
        };
        for account in ACCOUNTS {
            chaos.limit_account(account).await;
        }
        for _ in 0..RUNS {
            chaos.open().await;
        }
        for _ in 0..operations {
            chaos.operate().await;
        }
        chaos.end().await
    }

    async fn operate(&mut self) {
        let operation = match self.random.below(1000) {
            0..8 => "kill",
            8..40 => "close",
            40..100 => "limit a run",
            100..120 => "limit an account",
            120..280 => "cut",
            280..420 => "finish",
            _ => "call",
        };
        *self.operations.entry(operation).or_default() += 1;
        match operation {
            "kill" => self.kill().await,
            "close" => self.close().await,
            "limit a run" => self.limit_run().await,
            "limit an account" => {
                let account = ACCOUNTS[self.random.below(ACCOUNTS.len())];
                self.limit_account(account).await;
            }
            "cut" => self.cut().await,
            "finish" => self.finish().await,
            _ => self.call().await,
        }
    }

    /// Begins a call, which continues in the background.
    async fn call(&mut self) {
        let run = self.random.below(self.runs.len());
        let model = MODELS[self.random.below(MODELS.len())];
        let streamed = if self.random.below(2) == 0 { Answering::Streamed } else { Answering::Whole };
        if self.calls.len() >= CALLS {
            abandon(self.calls.remove(0)).await;
        }
        self.calls.push(task::spawn("a call", call_model(self.runs[run].agent.clone(), model, streamed)));
        // The call begins only when its task runs.
        tokio::task::yield_now().await;
    }

    /// Makes a call with an answer that ends, and waits for its end.
    async fn finish(&mut self) {
        let run = self.random.below(self.runs.len());
        let model = MODELS[self.random.below(3)];
        call_model(self.runs[run].agent.clone(), model, Answering::Streamed).await;
    }

    async fn cut(&mut self) {
        if !self.calls.is_empty() {
            let at = self.random.below(self.calls.len());
            abandon(self.calls.swap_remove(at)).await;
        }
    }

    async fn open(&mut self) {
        self.opened += 1;
        let name = format!("r{}", self.opened);
        let allowed = self.allow(&name, 40_000);
        let account = ACCOUNTS[self.random.below(ACCOUNTS.len())];
        let grant = RunGrant { budget: self.budget(allowed), ..grant(&name, account) };
        self.runs.push(self.world.run_with(grant).await);
    }

    async fn close(&mut self) {
        let at = self.random.below(self.runs.len());
        let run = self.runs.swap_remove(at);
        let drain_ms = [0, 20][self.random.below(2)];
        self.world.control.close(&run.grant.run_id, drain_ms).await.unwrap();
        self.open().await;
    }

    async fn limit_run(&mut self) {
        let run = self.runs[self.random.below(self.runs.len())].grant.run_id.to_string();
        let allowed = self.allow(&run, 40_000);
        self.put(&format!("/v1/runs/{run}/budget"), json!(self.budget(allowed)).to_string()).await;
    }

    async fn limit_account(&mut self, account: &str) {
        // The limit grows with time: an account outlives its runs, and should be exhausted now and then, not for good.
        let grown = self.operations.values().sum::<u64>() * 250;
        let allowed = self.allow(account, 100_000 + usize::try_from(grown).unwrap());
        self.put_account(account, allowed).await;
    }

    async fn put_account(&self, account: &str, allowed: u64) {
        let budget = self.budget(allowed);
        self.put("/v1/accounts", json!({ "account": account, "budget": budget }).to_string()).await;
    }

    /// Kills and starts the proxy, as a failing machine would. Sets the accounts' limits again, as an operator would.
    async fn kill(&mut self) {
        self.world.kill_proxy().await;
        for call in self.calls.drain(..) {
            abandon(call).await;
        }
        self.world.start_proxy().await;
        for account in ACCOUNTS {
            self.put_account(account, self.allowed[account].0).await;
        }
        // The proxy restores runs by itself, with their limits.
        for run in &self.runs {
            assert_eq!(run.agent.get("/health").await.status, 200, "{}", run.grant.run_id);
        }
    }

    fn allow(&mut self, name: &str, most: usize) -> u64 {
        let now = 4000 + self.random.below(most) as u64;
        let allowed = self.allowed.entry(name.to_owned()).or_default();
        *allowed = (now, allowed.1.max(now));
        now
    }

    fn budget(&self, allowed: u64) -> Budget {
        let total_tokens = (self.limits == Limits::Hold).then_some(allowed);
        Budget { total_tokens, ..Budget::default() }
    }

    async fn put(&self, path: &str, body: String) {
        let answer = self.world.control.send(Method::PUT, path, body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }

    async fn end(mut self) -> Findings {
        for call in self.calls.drain(..) {
            abandon(call).await;
        }
        // The proxy may still have to read a request long after its sender left.
        let observe = || self.observe();
        eventually("what is told is what is recorded, and nothing is in flight", observe, Findings::agree)
            .await
    }

    async fn observe(&self) -> Findings {
        let mut findings = Findings { operations: self.operations.clone(), ..Findings::default() };
        for (name, (_, allowed)) in &self.allowed {
            let group = if name.starts_with('r') { &mut findings.runs } else { &mut findings.accounts };
            group.insert(name.clone(), Found { allowed: *allowed, ..Found::default() });
        }
        for run in &self.runs {
            let view = self.world.control.run(&run.grant.run_id).await.unwrap();
            findings.runs.get_mut(run.grant.run_id.as_str()).unwrap().note(&view.limits);
        }
        let accounts = self.world.control.send(Method::GET, "/v1/accounts", String::new()).await;
        for AccountView { account, limits, .. } in serde_json::from_slice::<Vec<_>>(&accounts.body).unwrap() {
            findings.accounts.get_mut(account.as_str()).unwrap().note(&limits);
        }
        self.world.journal().await.iter().for_each(|line| findings.add(line));
        findings
    }
}

impl Findings {
    /// Returns whether the reported usage matches the journal and no reservation is open.
    fn agree(&self) -> bool {
        let mut all = self.runs.values().chain(self.accounts.values());
        all.all(|found| {
            found.reserved == 0 && found.told.is_none_or(|told| told == (found.tokens, found.calls))
        })
    }

    fn add(&mut self, JournalLine { record, .. }: &JournalLine) {
        let tokens = record.tokens.input + record.tokens.output;
        *self.outcomes.entry(record.outcome.to_string()).or_default() += 1;
        if record.tokens_source == TokensSource::Exact {
            self.largest_call = self.largest_call.max(tokens);
        }
        for found in
            [self.runs.get_mut(record.run_id.as_str()), self.accounts.get_mut(record.account.as_str())]
        {
            let found = found.expect("a run and an account of this play");
            found.tokens += tokens;
            found.calls += u64::from(record.outcome != Outcome::Refused);
        }
    }
}

impl Found {
    fn note(&mut self, limits: &[LimitView]) {
        let used = |limit| limits.iter().find(|view| view.limit == limit).unwrap().used;
        self.told = Some((used(Limit::TotalTokens), used(Limit::Requests)));
        self.reserved = limits.iter().map(|view| view.reserved).sum();
    }
}

/// Makes a call and reads its answer until the answer ends or breaks.
async fn call_model(agent: Agent, model: &'static str, answering: Answering) {
    let body = chat_body(model, answering).to_string();
    if let Ok(stream) = agent.send(Method::POST, CHAT, body.into()).await {
        drop(stream.until_break().await);
    }
}

/// Ends a call as a client that leaves.
async fn abandon(call: JoinHandle<()>) {
    call.abort();
    drop(call.await);
}
