//! Makes runs call models through the real LiteLLM with its database, and kills the proxy, the worker and LiteLLM
//! meanwhile. Then receipts are compared with the calls that the scripted upstream served, and with LiteLLM's ledger.
//!
//! Calls are streamed and whole, in the APIs of OpenAI and Anthropic. Some are cut by the upstream or by their client.
//! Some runs are cancelled, and some are tool loops of the real OpenClaw.

mod chaos;
mod evidence;
mod judge;
mod plan;

use std::{cell::Cell, collections::BTreeMap, time::Duration};

use bench::upstream::ScriptedUpstream;
use futures_util::{StreamExt, stream};
use platform_core::id::RunId;
use runner_store::Store;
use rustix::process::Signal;

use self::{chaos::Victims, plan::Plan};
use crate::{
    canary::CANARY_KEY, eventually::eventually_within, litellm::LiteLlm, pace::pace, random::Random,
    store::open_store, up::Up, world::World,
};

pub use self::{
    chaos::Kills,
    evidence::{Evidence, ReceiptSeen, SentCall},
    judge::Findings,
};

/// Runs at a time.
const AT_ONCE: usize = 8;
/// Longest wait for the end of a run: while LiteLLM starts, each of its calls fails.
const RUN_TIMEOUT: Duration = Duration::from_secs(400);
/// Interval at which the state of a run is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of accounts that pay.
const ACCOUNTS: usize = 3;
const SETTINGS: &str = "[worker]\nlease_duration = '2s'\nmax_concurrent_runs = 8\ngc_interval = '2s'\n\
                        [billing]\nledger_delay = '1s'\n";
/// Prices of LiteLLM's models in tests, by which calls without a cost in their answer are counted.
const PRICES: &str = "[prices.'*']\ninput = '1'\noutput = '2'\n\
                      [prices.gpt-5]\ninput = '1.25'\noutput = '10'\ncached = '0.125'\n\
                      [prices.claude-sonnet-4-5]\ninput = '3'\noutput = '15'\ncached = '0.3'\n";

/// A play.
#[derive(Debug, Clone, Copy)]
pub struct BillingChaos {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of runs.
    pub runs: usize,
    /// Calls of each run.
    pub calls: usize,
    /// Number of kills of each victim.
    pub kills: Kills,
    /// Usage that the upstream reports.
    pub usage: ScriptedUsage,
}

/// Usage that the upstream reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptedUsage {
    /// Figures at random, and sometimes none: no other figure can be taken for them.
    Random,
    /// That of the texts.
    OfTexts,
}

impl BillingChaos {
    /// Plays, and returns the evidence.
    ///
    /// # Panics
    /// If the play itself cannot go on.
    pub async fn play(&self) -> Evidence {
        let mut random = Random::of(self.seed);
        let plans: Vec<_> = (0..self.runs).map(|_| Plan::of(&mut random, self.calls, self.usage)).collect();
        let upstream = ScriptedUpstream::start().await.unwrap();
        let litellm = LiteLlm::with_database(&upstream, CANARY_KEY).await;
        let toml = format!("{}{SETTINGS}{PRICES}", plan::registry());
        let mut world = World::in_front_of(upstream, &litellm.base_url, &toml).await;
        assert!(world.stop_proxy().await);
        world.reconfigure("client_gone_timeout = '500ms'", "client_gone_timeout = '60s'");
        let up = Some(Up::start(world.sluice()).await);
        let mut victims = Victims { litellm, up, litellm_kills: Vec::new() };
        let store = open_store(&world).await;

        let ended = &Cell::new(0);
        let executed = stream::iter(plans.iter().enumerate()).map(|(number, plan)| {
            let order = Order { world: &world, store: &store, number, plan };
            async move {
                let state = order.execute().await;
                ended.set(ended.get() + 1);
                state
            }
        });
        let executed = executed.buffer_unordered(AT_ONCE).collect::<Vec<_>>();
        let chaos = victims.kill(&world, self.kills.planned(self.runs), ended);
        let (states, ()) = futures_util::join!(executed, chaos);
        let mut runs = BTreeMap::new();
        states.into_iter().for_each(|state| *runs.entry(state).or_default() += 1);
        let accounts = (0..self.runs).map(|number| (run(number), account(number))).collect();

        let evidence = Evidence { runs, accounts, ..Evidence::gather(&world, &victims).await };
        victims.up.take().unwrap().stop(Signal::TERM).await;
        world.assert_nothing_left().await;
        evidence
    }
}

/// Returns the id of the run with this number.
fn run(number: usize) -> String {
    format!("r{number}")
}

/// Returns the account that pays for it.
fn account(number: usize) -> String {
    format!("acct-{}", number % ACCOUNTS)
}

/// Run of a play.
struct Order<'a> {
    world: &'a World,
    store: &'a Store,
    number: usize,
    plan: &'a Plan,
}

impl Order<'_> {
    /// Orders the run, cancels it if that is planned, and returns its state after its end.
    async fn execute(&self) -> String {
        let Plan { agent, model, prompt, cancelled } = self.plan;
        let run = RunId::parse(&run(self.number)).unwrap();
        let account = account(self.number);
        let order = ["run", "--detach", "--run-id", run.as_str(), "--account", &account, "--agent", agent];
        let ordered = self.world.sluice().run(&[&order[..], &["--model", model, prompt]].concat()).await;
        assert_eq!(ordered.code, Some(0), "{ordered:?}");
        if let Some(delay) = cancelled {
            pace(*delay).await;
            self.store.request_cancel(&run).await.unwrap();
        }
        let look = || async {
            pace(LOOK_INTERVAL).await;
            self.store.run(&run).await.unwrap()
        };
        let run = eventually_within(RUN_TIMEOUT, "the run ends", look, |run| run.ended.is_some()).await;
        run.state.name().to_owned()
    }
}
