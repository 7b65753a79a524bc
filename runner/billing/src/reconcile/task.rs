//! Reconciles again and again, as often as the configuration says, and soon after a hint.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use platform_core::{limit::Millis, untrusted::JournalText};
use platform_runtime::{report, settings::Billing};
use runner_engine::current_settings::CurrentSettings;
use runner_model::reconciliation::Finding;
use runner_store::UnixMillis;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    PassBound, ReconcileError, ReconcileFrom, Reconciler, Reconciliation, UnreadablePart, hint::earliest_call,
};

/// Longest time for which a change of the interval may go unnoticed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);
/// Longest delay after a hint: LiteLLM writes most rows within 10 s after the end of their calls.
const MAX_HINT_DELAY: Millis = Millis::seconds(15);
/// Differences in the log of one pass.
const LOGGED_DIFFERENCES: u32 = 3;
/// Delay before a pass that goes on where the last one has reached a bound.
const RESUME_DELAY: Duration = Duration::from_secs(60);

/// Task that reconciles receipts.
#[derive(Debug)]
pub struct ReconciliationTask {
    /// Reader of the ledger.
    pub reconciler: Reconciler,
    /// Configuration, with the interval.
    pub settings: CurrentSettings,
    /// Bodies of callbacks, which tell that there is something to read.
    pub hints: mpsc::Receiver<Bytes>,
}

/// Reconciliation that a hint has asked for.
struct HintedPass {
    /// Time at which the rows of its calls are likely to be in the ledger.
    due: Instant,
    /// Time of the first call.
    earliest: UnixMillis,
}

impl ReconciliationTask {
    /// Reconciles at each interval and after hints. Never returns.
    pub async fn run(mut self) -> Infallible {
        let mut last = self.last().await;
        let mut hinted: Option<HintedPass> = None;
        let mut resumed: Option<Instant> = None;
        loop {
            let Billing { reconcile_every, ledger_delay, .. } = self.settings.get().billing;
            let every = reconcile_every.map_or(Duration::ZERO, Millis::duration);
            self.reconciler.metrics.set_reconciliation_interval(every);
            let now = Instant::now();
            let interval = reconcile_every.map(|every| last.map_or(now, |last| last + every.duration()));
            let hint = hinted.as_ref().map(|pass| pass.due);
            let due = [interval, hint, resumed].into_iter().flatten().min();
            let reload = now + RELOAD_INTERVAL;
            tokio::select! {
                () = sleep_until(due.map_or(reload, |due| due.min(reload))) => {}
                Some(body) = self.hints.recv() => {
                    hinted = join_hint(hinted, read_hint(&body), ledger_delay);
                    continue;
                }
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                let stopped = self.reconcile(hinted.take().map(|pass| pass.earliest), ledger_delay).await;
                last = Some(Instant::now());
                resumed = stopped.map(|_bound| Instant::now() + RESUME_DELAY);
            }
        }
    }

    /// Returns the time of the last reconciliation, also of an earlier process: restarts do not postpone the next one.
    /// `None` if it is due.
    async fn last(&self) -> Option<Instant> {
        match self.reconciler.age_of_last().await {
            Ok(age) => Instant::now().checked_sub(age?.duration()),
            Err(error) => {
                tracing::warn!(
                    error = report::chain(&error),
                    "the time of the last reconciliation is unknown"
                );
                None
            }
        }
    }

    /// Reconciles once. Returns the bound at which the pass stopped, if it did.
    async fn reconcile(&self, hinted: Option<UnixMillis>, delay: Millis) -> Option<PassBound> {
        let from = ReconcileFrom::Unread(hinted);
        match self.reconciler.reconcile(from, delay, LOGGED_DIFFERENCES).await {
            Ok(reconciliation) => {
                log_differences(&reconciliation);
                return reconciliation.stopped;
            }
            Err(ReconcileError::Busy) => tracing::debug!("another process reconciles"),
            Err(error) => tracing::warn!(error = report::chain(&error), "receipts are not reconciled"),
        }
        None
    }
}

fn log_differences(reconciliation: &Reconciliation) {
    let Reconciliation { report, unreadable, stopped, .. } = reconciliation;
    let count = |finding| report.counts.get(&finding).copied().unwrap_or_default();
    if report.counts.iter().any(|(finding, count)| finding.is_difference() && *count > 0) {
        tracing::warn!(
            missing = count(Finding::Missing),
            late = count(Finding::Late),
            collapsed = count(Finding::Collapsed),
            foreign = count(Finding::Foreign),
            unreadable = count(Finding::Unreadable),
            first = ?report.differences.first().map(|difference| &difference.subject),
            "the upstream's ledger differs from the receipts: see `sluice billing reconcile`"
        );
    }
    for UnreadablePart { began, field, request_id, sha256 } in unreadable {
        let text = |text: &Option<JournalText>| text.as_ref().map(ToString::to_string);
        let row = text(request_id);
        let sha256 = text(sha256);
        tracing::warn!(began = began.0, %field, row, sha256, "a part of the upstream's ledger cannot be read");
    }
    if let Some(bound) = stopped {
        tracing::warn!(
            bound = bound.words(),
            "the reconciliation stopped at a bound, and goes on there later"
        );
    }
}

fn read_hint(body: &[u8]) -> Option<UnixMillis> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let hint = earliest_call(body, UnixMillis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)));
    if hint.is_none() {
        tracing::debug!(bytes = body.len(), "callback ignored: it tells of no call");
    }
    hint
}

/// Adds a hint to those that wait.
fn join_hint(waiting: Option<HintedPass>, hint: Option<UnixMillis>, delay: Millis) -> Option<HintedPass> {
    let Some(hint) = hint else { return waiting };
    let pass = waiting.unwrap_or_else(|| HintedPass {
        due: Instant::now() + delay.min(MAX_HINT_DELAY).duration(),
        earliest: hint,
    });
    Some(HintedPass { earliest: pass.earliest.min(hint), ..pass })
}
