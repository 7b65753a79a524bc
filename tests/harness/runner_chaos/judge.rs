//! Waits for rest at the end of a round, and judges the leftovers and the ends of all runs.

use std::time::{Duration, Instant};

use http::Method;
use platform_core::{
    control::{RunState, RunView},
    record::Outcome,
};
use runner_store::ResourceState as Stored;

use super::{PATIENCE, RequestedRun, Script, Stage, agents};

use crate::pace::pace;

impl Stage {
    /// Lets every worker run, and cancels the runs that end only by a cancel. Waits until nothing is left, and records
    /// a fault if that takes too long.
    pub(super) async fn come_to_rest(&mut self) {
        let began = Instant::now();
        for worker in &mut self.workers {
            worker.calm(&self.world, &mut self.random).await;
        }
        for run in self.runs.iter().filter(|run| run.script == Script::Waits) {
            self.store.request_cancel(&run.id).await.unwrap();
        }
        loop {
            // A worker that could not start is started again.
            self.supervise();
            let left = self.leftovers().await;
            if left.is_empty() {
                break;
            }
            if began.elapsed() > PATIENCE {
                self.round.faults.push(format!("not at rest after {PATIENCE:?}: {left:#?}"));
                break;
            }
            pace(Duration::from_millis(100)).await;
        }
        self.round.quiet_ms = u64::try_from(began.elapsed().as_millis()).unwrap();
    }

    /// Returns the runs that have not ended, or else the resources and calls that are left.
    async fn leftovers(&self) -> Vec<String> {
        let not_ended = self.not_ended().await;
        if !not_ended.is_empty() {
            return not_ended.iter().map(|run| format!("{run} has not ended")).collect();
        }
        let mut left = self.world.left().await;
        let rows = self
            .store
            .unremoved_resources()
            .await
            .unwrap()
            .into_iter()
            .filter(|row| row.stage != Stored::Kept);
        left.extend(rows.map(|row| format!("row {row:?}")));
        let Ok(health) = self.world.control.health().await else {
            left.push("no proxy".to_owned());
            return left;
        };
        let views = self.world.control.send(Method::GET, "/v1/runs", String::new()).await;
        let views: Vec<RunView> = serde_json::from_slice(&views.body).unwrap();
        let open = views.into_iter().filter(|view| view.state == RunState::Open);
        left.extend(open.map(|view| format!("grant {}", view.grant.run_id)));
        let read = self.auditor.books().at;
        if (health.in_flight, health.journal_seq) != (0, read) {
            left.push(format!("{} in flight, line {}; read {read}", health.in_flight, health.journal_seq));
        }
        let ledger = self.world.upstream.ledger().all();
        left.extend(
            ledger.iter().filter(|call| call.ending.is_open()).map(|call| format!("call {}", call.seq)),
        );
        left
    }

    pub(super) async fn judge(&mut self) {
        for at in 0..self.runs.len() {
            self.judge_run(at).await;
        }
        let starts = self.starts.by_run();
        let twice = starts.iter().filter(|(_, starts)| **starts > 1);
        self.round.faults.extend(twice.map(|(run, starts)| format!("{run} was started {starts} times")));
        self.compare_calls();
    }

    async fn judge_run(&mut self, at: usize) {
        let RequestedRun { id, script, is_killed } = &self.runs[at];
        let record = self.store.record(id).await.unwrap();
        *self.round.runs.entry(record.run.state.name().to_owned()).or_default() += 1;
        self.round.take_overs += record.run.epoch.saturating_sub(1);
        if *is_killed && agents::is_sandbox_killed(&record) {
            return;
        }
        if let Some(fault) = script.differs(&record) {
            self.round.faults.push(fault);
        }
    }

    /// Compares the upstream's ledger with the journal.
    fn compare_calls(&mut self) {
        let ledger = self.world.upstream.ledger();
        let entries = ledger.all();
        ledger.clear();
        let books = self.auditor.books();
        let faults = &mut self.round.faults;
        for entry in entries {
            let id = entry.header("x-litellm-call-id").concat();
            if !books.calls.contains_key(&id) {
                faults.push(format!("call {id} has no record"));
            }
            if !self.seen.insert(id.clone()) {
                faults.push(format!("call {id} came twice"));
            }
        }
        for (id, call) in &books.calls {
            if call.outcome != Outcome::Refused && call.was_answered && !self.seen.contains(id) {
                faults.push(format!("call {id} was answered by nobody"));
            }
        }
        faults.extend(books.faults.iter().cloned());
        self.round.calls = self.seen.len();
    }
}
