//! Kills a proxy again and again under load. Upstream, disk, clients, follower and control plane fail too, and the
//! clock is set forward and back.
//!
//! The random numbers come from a seed; the machine decides how the pieces interleave. After each restart, and at the
//! end, the proxy's reports are compared with the sums of a follower of the journal. At the end, the journal is
//! compared with the calls that the upstream saw.
//!
//! The clock: a run is closed for good once the clock has passed its expiry. It stays closed if the clock is set back,
//! and is never closed earlier. Nothing else depends on the time of day.

pub(crate) mod auditor;
mod findings;
mod operations;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench::upstream::ScriptedUpstream;
use http::Method;
use platform_core::{
    budget::{Budget, Limit, LimitView},
    control::{AccountView, RunState, RunView},
    grant::RunGrant,
    token::UnixSeconds,
};
use tokio::task::JoinHandle;

use self::{
    auditor::{Auditor, Sums},
    findings::Seen,
};
use crate::{
    agent::Wire,
    eventually::eventually_within,
    fake_wall_clock::FakeWallClock,
    fault_proxy::FaultProxy,
    pace::pace,
    random::Random,
    volume::{FileSystem, Volume},
    world::{Run, World, grant},
};

pub use self::findings::Findings;

/// Runs at a time.
const RUNS: usize = 6;
const ACCOUNTS: [&str; 2] = ["acct-1", "acct-2"];
/// Calls a run may make, and tokens it may use.
const RUN_CALLS: u64 = 150;
const RUN_TOKENS: u64 = 60_000;
/// Lifetime of half of the runs, in seconds of the wall clock. A change of the clock is at most twice as long.
const RUN_SECONDS: u64 = 1800;
/// Seconds that may pass between a reading of the clock and the decision that follows from it.
const CLOCK_TOLERANCE: u64 = 10;
/// Longest wait for everything to come to rest after a kill.
const PATIENCE: Duration = Duration::from_secs(60);
/// Small sizes, so that the journal often begins a new file, and removes acknowledged ones.
const JOURNAL: &str = "segment_size = '64 KiB'\ndisk_budget = '1 MiB'\n";

/// In-flight marks that the proxy finds after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// The marks of the killed proxy are kept.
    Kept,
    /// A control: shows which calls are missing without marks.
    Removed,
}

/// Parameters of a play.
#[derive(Debug, Clone, Copy)]
pub struct Play {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of kills of the proxy.
    pub kills: u64,
    /// Data-plane threads of the proxy.
    pub threads: u16,
    /// File system and size, in mebibytes, of a disk for the journal that can be filled; a plain directory without.
    pub disk: Option<(FileSystem, u64)>,
    /// Durability of records: `process` or `disk`.
    pub durability: &'static str,
    /// Marks after a kill.
    pub marks: Marks,
}

/// A play in progress.
struct Stage {
    play: Play,
    /// Declared before the world, so that it is dropped first: it lies in the world's directory.
    volume: Option<Volume>,
    auditor: Auditor,
    world: World,
    clock: FakeWallClock,
    fault_proxy: FaultProxy,
    random: Random,
    runs: Vec<Run>,
    calls: Vec<JoinHandle<()>>,
    /// Connections with half a request on them.
    halves: Vec<Box<dyn Wire>>,
    opened: u64,
    /// Operations for which the upstream stays unavailable.
    unavailable_for: usize,
    closed: Vec<RunGrant>,
    seen: Seen,
    findings: Findings,
}

impl Play {
    /// Plays to the end, and returns the findings.
    ///
    /// # Panics
    /// If the proxy's reports after a restart differ from the journal.
    pub async fn run(self) -> Findings {
        let mut stage = Stage::set(self).await;
        while stage.findings.operations.get("kill").copied().unwrap_or_default() < self.kills {
            stage.operate().await;
            // A random amount of work happens between two operations.
            let pause = stage.random.below(2000);
            pace(Duration::from_micros(pause as u64)).await;
        }
        stage.end().await
    }
}

impl Stage {
    async fn set(play: Play) -> Self {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let fault_proxy = FaultProxy::to(upstream.address()).await;
        let journal = format!("[journal]\ndurability = '{}'\n{JOURNAL}", play.durability);
        let most = play.kills * 20_000 + 200_000;
        let accounts = ACCOUNTS
            .map(|account| format!("[accounts.'{account}']\ntotal_tokens = {most}\ncalls_in_flight = 40\n"));
        let mut world =
            World::in_front_of(upstream, &fault_proxy.base_url(), &(journal + &accounts.concat())).await;
        assert!(world.stop_proxy().await);
        world.reconfigure("threads = 2", &format!("threads = {}", play.threads));
        let volume = play.disk.map(|(kind, mib)| Volume::on(&world.path().join("state"), kind, mib));
        let clock = FakeWallClock::new(world.path());
        world.start_proxy_with(&clock.variables()).await;
        let auditor = Auditor::of(world.control.clone()).await;
        let mut stage = Self {
            play,
            volume,
            auditor,
            world,
            clock,
            fault_proxy,
            random: Random::of(play.seed),
            runs: Vec::new(),
            calls: Vec::new(),
            halves: Vec::new(),
            opened: 0,
            unavailable_for: 0,
            closed: Vec::new(),
            seen: Seen::default(),
            findings: Findings::default(),
        };
        for _ in 0..RUNS {
            stage.open().await;
        }
        stage
    }

    async fn open(&mut self) {
        self.opened += 1;
        let account = ACCOUNTS[self.random.below(ACCOUNTS.len())];
        let budget =
            Budget { requests: Some(RUN_CALLS), total_tokens: Some(RUN_TOKENS), ..Budget::default() };
        let is_timed = self.random.below(2) == 0;
        let expires = is_timed.then(|| UnixSeconds(self.clock.now() + RUN_SECONDS));
        let grant = RunGrant { budget, expires, ..grant(&format!("r{}", self.opened), account) };
        self.runs.push(self.world.run_with(grant).await);
    }

    /// Kills and starts the proxy, as a failing machine would.
    async fn kill(&mut self) {
        self.close_expired_runs().await;
        self.world.kill_proxy().await;
        let killed = Instant::now();
        self.end_calls().await;
        if self.play.marks == Marks::Removed {
            self.world.marks_files().into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
        // In half of the cases the proxy has to start on a full disk.
        let is_freed_first = self.random.below(2) == 0;
        if let Some(volume) = self.volume.as_ref().filter(|_| is_freed_first) {
            volume.free();
        }
        self.fault_proxy.let_through();
        self.world.start_proxy_with(&self.clock.variables()).await;
        // The proxy alone opens the runs' sockets again, at the same paths.
        for run in &self.runs {
            assert_eq!(run.agent.get("/health").await.status, 200, "{}", run.grant.run_id);
        }
        let gap = u64::try_from(killed.elapsed().as_millis()).unwrap();
        self.findings.longest_gap_ms = self.findings.longest_gap_ms.max(gap);
        self.try_a_closed_run().await;
        if let Some(volume) = &self.volume {
            self.findings.started_on_a_full_disk += u64::from(volume.is_full());
            volume.free();
        }
        self.come_to_rest().await;
    }

    async fn try_a_closed_run(&mut self) {
        if self.closed.is_empty() {
            return;
        }
        let grant = &self.closed[self.random.below(self.closed.len())];
        if self.world.control.register(grant).await.is_ok() {
            self.findings.reopened.push(grant.run_id.to_string());
        }
    }

    /// Waits until runs that have expired, or expire within the tolerance, are closed. Opens new ones instead.
    async fn close_expired_runs(&mut self) {
        let now = self.clock.now() + CLOCK_TOLERANCE;
        let is_expired = |run: &mut Run| run.grant.expires.is_some_and(|expires| expires.0 <= now);
        for run in self.runs.extract_if(.., is_expired).collect::<Vec<_>>() {
            let view = || self.world.control.run(&run.grant.run_id);
            let is_closed =
                |view: &Result<RunView, _>| matches!(view, Ok(view) if view.state == RunState::Closed);
            eventually_within(PATIENCE, "a run whose time is over is closed", view, is_closed).await.unwrap();
            self.findings.timed_out += 1;
            self.closed.push(run.grant);
            self.open().await;
        }
    }

    /// Ends every call and closes the unfinished requests.
    async fn end_calls(&mut self) {
        for call in self.calls.drain(..) {
            operations::abandon(call).await;
        }
        self.halves.clear();
    }

    /// Waits, with no calls in flight, until no reservation is open and the reported usage matches the journal.
    async fn come_to_rest(&mut self) {
        eventually_within(
            PATIENCE,
            "at rest, what is told is what is recorded",
            || self.observe(),
            Vec::is_empty,
        )
        .await;
        self.seen.take(&self.world.upstream.ledger());
        self.auditor.acknowledge(&self.world.control).await;
    }

    /// Returns the activities that continue, and the reports that differ from the records.
    async fn observe(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let health = self.world.control.health().await.unwrap();
        let runs = self.world.control.send(Method::GET, "/v1/runs", String::new()).await;
        let runs: Vec<RunView> = serde_json::from_slice(&runs.body).unwrap();
        let accounts = self.world.control.send(Method::GET, "/v1/accounts", String::new()).await;
        let accounts: Vec<AccountView> = serde_json::from_slice(&accounts.body).unwrap();
        let books = self.auditor.books();
        if (health.in_flight, health.journal_seq) != (0, books.at) {
            differences.push(format!(
                "{} in flight, line {}; read {}",
                health.in_flight, health.journal_seq, books.at
            ));
        }
        for view in &runs {
            differences.extend(differs(view.grant.run_id.as_str(), &view.limits, &books.runs));
        }
        for view in &accounts {
            differences.extend(differs(view.account.as_str(), &view.limits, &books.accounts));
        }
        let open = self.world.upstream.ledger().all().iter().filter(|call| call.ending.is_open()).count();
        if open > 0 {
            differences.push(format!("{open} calls are open at the upstream"));
        }
        differences
    }

    async fn end(mut self) -> Findings {
        self.end_calls().await;
        self.fault_proxy.let_through();
        if let Some(volume) = &self.volume {
            volume.free();
        }
        self.come_to_rest().await;
        self.close_expired_runs().await;
        for run in &self.runs {
            let view = self.world.control.run(&run.grant.run_id).await.unwrap();
            assert_eq!(view.state, RunState::Open, "{view:?}");
        }
        let verified = self.world.sluice().run(&["audit", "verify"]).await;
        assert_eq!(verified.code, Some(0), "{verified:?}");
        for grant in std::mem::take(&mut self.closed) {
            if self.world.control.register(&grant).await.is_ok() {
                self.findings.reopened.push(grant.run_id.to_string());
            }
        }
        self.judge();
        assert_eq!(self.world.canaries(), Vec::<String>::new(), "a secret is where it must not be");
        if self.volume.is_some() {
            self.world.kill_proxy().await;
        }
        self.findings
    }

    fn judge(&mut self) {
        let books = self.auditor.books();
        let allowed = RUN_TOKENS + books.largest_call;
        for (run, sums) in &books.runs {
            if sums.calls > RUN_CALLS || sums.tokens > allowed {
                self.findings.over.push(format!("{run}: {sums:?}"));
            }
            self.findings.used_up += u64::from(sums.calls == RUN_CALLS);
        }
        self.findings.compare(&books, std::mem::take(&mut self.seen));
    }
}

/// Returns the difference between a view and the sums, if any.
fn differs(name: &str, limits: &[LimitView], sums: &BTreeMap<String, Sums>) -> Option<String> {
    let used = |limit| limits.iter().find(|view| view.limit == limit).map_or(0, |view| view.used);
    let reported = Sums { tokens: used(Limit::TotalTokens), calls: used(Limit::Requests) };
    let recorded = sums.get(name).copied().unwrap_or_default();
    let reserved: u64 = limits.iter().map(|view| view.reserved).sum();
    let differs = reported != recorded || reserved > 0;
    differs.then(|| format!("{name}: told {reported:?}, recorded {recorded:?}, {reserved} set aside"))
}
