//! Sends random calls through the real LiteLLM and compares the journal with the usage that the upstream reported. The
//! upstream's ledger supplies the expected figures; no code of the proxy has a part in it.
//!
//! Calls are streamed and whole, on every route, with models that LiteLLM knows and that it does not know. Fields that
//! answers repeat contain the words by which answers are read, up to many megabytes. Calls are cut at random: by the
//! upstream, or because their client leaves.

mod hostile;
mod judge;
mod plan;

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use futures_util::{StreamExt, stream};
use http::Method;
use platform_core::{
    control::RunView,
    grant::{CallLimits, RunGrant},
    limit::ByteSize,
};

use self::plan::{Leaving, MAX_OUTPUT, Plan};
use crate::{
    agent::{BoxError, Stream},
    canary::CANARY_KEY,
    eventually::eventually_within,
    litellm::LiteLlm,
    pace::pace,
    random::Random,
    world::{World, grant},
};

pub use self::{
    judge::{Call, End, Evidence, Figures, Findings},
    plan::{Kind, Mode},
};

/// Calls at a time: LiteLLM has one worker, and the answers are large.
const AT_ONCE: usize = 4;
/// Longest wait for a call: LiteLLM takes seconds for the largest.
const SETTLED_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest that the proxy reads the answer of a call that its client has left.
const LEFT_CALL_BOUND: &str = "60s";

/// A play.
#[derive(Debug, Clone, Copy)]
pub struct Metering {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of calls.
    pub calls: usize,
    /// Calls among them with the largest answers.
    pub giants: usize,
    /// Bytes of the largest answers.
    pub largest: usize,
}

impl Metering {
    /// Makes the calls, and returns the evidence.
    ///
    /// # Panics
    /// If a call cannot be made, or its record never comes.
    pub async fn play(&self) -> Evidence {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
        let world = World::in_front_of(upstream, &litellm.base_url, "").await;
        world.bound_left_calls(LEFT_CALL_BOUND).await;
        let mut random = Random::of(self.seed);
        let plans: Vec<_> = (0..self.calls).map(|number| self.plan(&mut random, number)).collect();
        let calls = plans.into_iter().enumerate().map(|(number, plan)| call(&world, number, plan));
        let calls: Vec<_> = stream::iter(calls).buffered(AT_ONCE).collect().await;
        // The upstream may still answer a call that its client has left.
        let ledger = || async { world.upstream.ledger().all() };
        let ended =
            |entries: &Vec<bench::upstream::Entry>| entries.iter().all(|entry| !entry.ending.is_open());
        let ledger =
            eventually_within(SETTLED_TIMEOUT, "the upstream has ended all calls", ledger, ended).await;
        Evidence::of(calls, &ledger, world.journal().await)
    }

    fn plan(&self, random: &mut Random, number: usize) -> Plan {
        let size = match random.below(100) {
            _ if (number + 1).is_multiple_of((self.calls / self.giants.max(1)).max(1)) => self.largest,
            0 => random.below(self.largest.min(4 << 20)),
            1..=9 => random.below(256 << 10),
            _ => random.below(4096),
        };
        Plan::of(random, number, size)
    }
}

/// Makes one call, as its own run, and waits for its record.
async fn call(world: &World, number: usize, plan: Plan) -> Call {
    let limits =
        CallLimits { request_body: ByteSize::mib(64), output_tokens: MAX_OUTPUT, ..CallLimits::default() };
    let run = world.run_with(RunGrant { limits, ..grant(&judge::run_id(number), "acct-1") }).await;
    let Plan { kind, body, leaving } = plan;
    let body = body.to_string();
    let request = body.len() as u64;
    let id = &run.grant.run_id;
    let view = || async { world.control.run(id).await.unwrap() };
    let begun = async {
        let is_seen = |view: &RunView| view.in_flight + view.usage.calls + view.usage.refused > 0;
        eventually_within(SETTLED_TIMEOUT, "the proxy has seen the call", view, is_seen).await;
    };
    let (answer, end) = receive(run.agent.send(Method::POST, kind.path, body.into()), leaving, begun).await;
    eventually_within(SETTLED_TIMEOUT, "the call has ended", view, |view| {
        view.in_flight == 0 && view.usage.calls + view.usage.refused > 0
    })
    .await;
    world.control.close(id, 0).await.unwrap();
    Call { kind, request, answer, end }
}

/// Returns the number of received bytes of the answer, and its end. A client that leaves after some time counts that
/// time from the moment when its call has `begun`.
async fn receive(
    sent: impl Future<Output = Result<Stream, BoxError>>,
    leaving: Leaving,
    begun: impl Future<Output = ()>,
) -> (u64, End) {
    let answer = match leaving {
        Leaving::After(moment) => tokio::select! {
            answer = sent => answer,
            () = async { begun.await; pace(moment).await } => return (0, End::Left),
        },
        Leaving::Never | Leaving::AfterBytes(_) => sent.await,
    };
    let Ok(mut answer) = answer else { return (0, End::Broken) };
    let mut received = 0;
    loop {
        if matches!(leaving, Leaving::AfterBytes(bytes) if received >= bytes) {
            return (received as u64, End::Left);
        }
        match answer.next().await {
            Ok(Some((piece, _))) => received += piece.len(),
            Ok(None) => return (received as u64, End::Answered(answer.status)),
            Err(_broken) => return (received as u64, End::Broken),
        }
    }
}
