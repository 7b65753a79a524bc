//! Renders every metric family with its name and help text. Dashboards and alerts rely on the names, so they must not
//! change.

use std::sync::{Arc, atomic::Ordering};

use platform_core::priority::Priority;
use platform_runtime::metrics::{Exposition, Kind, seconds};
use runner_model::{
    connection_refresh::RefreshResult,
    lifecycle::{Outcome, State},
    receipt::ChargeReason,
    reconciliation::Finding,
};
use runner_store as store;

use super::{
    Metrics, START_KINDS,
    agents::AgentCounters,
    micros,
    present::StoreSample,
    reaper::{PARTS, ReaperCounters},
};

/// Renders all metrics as text.
pub(super) fn render(metrics: &Metrics, sample: StoreSample) -> String {
    let mut text = Exposition::default();
    text.family(Kind::Gauge, "sluice_build_info", "The version of this `sluice up`.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let agents = metrics.agents.all();
    render_runs(&mut text, &agents);
    render_starts(&mut text, metrics);
    render_pool(&mut text, &agents);
    render_present(&mut text, &sample);
    render_reaper(&mut text, &metrics.reaped);
    render_store(&mut text, &sample);
    render_receipts(&mut text, metrics);
    render_reconciliation(&mut text, metrics);
    render_refreshes(&mut text, metrics);
    metrics.browsers.render(&mut text);
    metrics.api.render(&mut text);
    render_spans(&mut text, metrics);
    text.finish()
}

fn render_runs(text: &mut Exposition, agents: &[(String, Arc<AgentCounters>)]) {
    let help = "Runs whose end this process has stored, by what they came to.";
    let mut family = text.family(Kind::Counter, "sandbox_runs_total", help);
    for (agent, counters) in agents {
        for outcome in Outcome::ALL {
            let labels = [("agent", agent.as_str()), ("status", State::Ended(outcome).name())];
            family.sample(&labels, counters.runs(outcome));
        }
    }
    let help = "Time from the request of a run to its end, of the same runs.";
    let mut family = text.family(Kind::Histogram, "sandbox_run_duration_seconds", help);
    for (agent, counters) in agents {
        let durations = counters.durations();
        if durations.count > 0 {
            family.histogram(&[("agent", agent)], &durations);
        }
    }
}

fn render_starts(text: &mut Exposition, metrics: &Metrics) {
    let help = "Time from the request of a run to the start of its container, cold or warm.";
    let mut family = text.family(Kind::Histogram, "sandbox_start_seconds", help);
    for start in START_KINDS {
        family.histogram(&[("start", start.name())], &metrics.starts.read(start as usize));
    }
    let starting = metrics.starting.load(Ordering::Relaxed);
    let help = "Runs of this process that are prepared and started just now.";
    text.single(Kind::Gauge, "sandbox_starts_in_progress", starting, help);
    let limit = metrics.starting_at_most.load(Ordering::Relaxed);
    if limit > 0 {
        text.single(Kind::Gauge, "sandbox_starts_limit", limit, "How many may be at a time.");
    }
}

fn render_pool(text: &mut Exposition, agents: &[(String, Arc<AgentCounters>)]) {
    let help = "Containers of the pool that wait to be claimed, and that are being made.";
    let mut family = text.family(Kind::Gauge, "sandbox_pool_containers", help);
    for (agent, counters) in agents {
        for (state, count) in counters.pool() {
            family.sample(&[("agent", agent), ("state", state)], count);
        }
    }
    let help = "Containers of the pool that were claimed by runs.";
    let mut family = text.family(Kind::Counter, "sandbox_pool_claimed_total", help);
    agents.iter().for_each(|(agent, counters)| family.sample(&[("agent", agent)], counters.pool_gone().0));
    let help = "Containers of the pool that were removed unused.";
    let mut family = text.family(Kind::Counter, "sandbox_pool_expired_total", help);
    agents.iter().for_each(|(agent, counters)| family.sample(&[("agent", agent)], counters.pool_gone().1));
}

/// Renders the store's numbers of runs, over all workers. Renders only `sluice_store_up` if the store did not answer.
fn render_present(text: &mut Exposition, sample: &StoreSample) {
    let help = "1 if the store answered within two seconds; otherwise the figures of runs are left out.";
    text.single(Kind::Gauge, "sluice_store_up", u8::from(sample.present.is_some()), help);
    let Some((present, queue)) = &sample.present else { return };
    let count = |state: &str| {
        present.states.iter().filter(|(name, _)| name == state).map(|(_, runs)| runs).sum::<u64>()
    };
    let help = "Runs that wait to be worked on, of all workers.";
    let mut family = text.family(Kind::Gauge, "sandbox_queue_length", help);
    for priority in Priority::ALL {
        family.sample(&[("priority", priority.name())], queue.waiting.of(priority));
    }
    let oldest = micros(queue.oldest.unwrap_or_default());
    let help = "For how long the run has waited that has waited longest; 0 if none waits.";
    text.single(Kind::Gauge, "sandbox_queue_oldest_seconds", seconds(oldest), help);
    let help = "Runs that have not ended, of all workers, by state.";
    let mut family = text.family(Kind::Gauge, "sandbox_runs_in_state", help);
    let states = [State::Queued, State::Preparing, State::Starting, State::Running];
    let last = [State::Collecting(Outcome::Succeeded), State::Settling(Outcome::Succeeded)];
    for state in states.into_iter().chain(last) {
        family.sample(&[("state", state.name())], count(state.name()));
    }
    let help = "Ways of runs' commits to their branches, by stage; `collected`, `accepted` and `pushed` are not over.";
    let mut family = text.family(Kind::Gauge, "sluice_relays", help);
    present.relays.iter().for_each(|(stage, relays)| family.sample(&[("stage", stage)], *relays));
}

fn render_reaper(text: &mut Exposition, reaped: &ReaperCounters) {
    let help = "Times that it was looked for what runs have left.";
    text.single(Kind::Counter, "sluice_gc_passes_total", reaped.passes(), help);
    let help = "Things that runs had left and that were removed.";
    let mut family = text.family(Kind::Counter, "sluice_gc_removed_total", help);
    for kind in store::ResourceKind::ALL {
        family.sample(&[("kind", kind.name())], reaped.removed(kind));
    }
    let last = reaped.last();
    let help = "1 for what could not be looked at in the last pass.";
    let mut family = text.family(Kind::Gauge, "sluice_gc_incomplete", help);
    PARTS.iter().for_each(|part| family.sample(&[("part", *part)], u8::from(last.blind.contains(part))));
    let help = "Things that the last pass left: dead ones that could not be removed, and those nothing proves to be anybody's.";
    let mut family = text.family(Kind::Gauge, "sluice_gc_remaining", help);
    for kind in store::ResourceKind::ALL {
        for (why, counts) in [("failed", &last.failed), ("unknown", &last.unknown)] {
            family.sample(&[("kind", kind.name()), ("reason", why)], counts[kind as usize]);
        }
    }
}

fn render_store(text: &mut Exposition, sample: &StoreSample) {
    let Some(metered) = &sample.metered else { return };
    let help = "Time from a question to the store to its answer, tries again included.";
    text.family(Kind::Histogram, "sluice_store_operation_seconds", help).histogram(&[], &metered.durations);
    let help = "Tries of the store after the first one.";
    text.single(Kind::Counter, "sluice_store_retries_total", metered.retries, help);
    let help = "Store operations that failed: away is transient, fenced means another worker holds the run, refused is illegal, broken needs an operator.";
    let mut family = text.family(Kind::Counter, "sluice_store_errors_total", help);
    metered.errors.iter().for_each(|(class, count)| family.sample(&[("class", class.word())], count));
}

fn render_receipts(text: &mut Exposition, metrics: &Metrics) {
    let help = "Receipts that this process has stored, by the reason of their amount; unpriced ones wait for a correction.";
    let mut family = text.family(Kind::Counter, "sluice_receipts_total", help);
    for reason in ChargeReason::ALL {
        family.sample(&[("reason", reason.word())], metrics.receipts.get(reason as usize));
    }
    let below = metrics.below_floor.load(Ordering::Relaxed);
    let help = "Accounts whose balance is below their floor, so that calls of them are refused.";
    text.single(Kind::Gauge, "sluice_accounts_below_floor", below, help);
}

fn render_reconciliation(text: &mut Exposition, metrics: &Metrics) {
    let help = "Rows of the upstream's ledger, and calls without one, by what this process has found when it compared them with receipts.";
    let mut family = text.family(Kind::Counter, "sluice_reconciliation_rows_total", help);
    for finding in Finding::ALL {
        family.sample(&[("outcome", finding.word())], metrics.reconciled.get(finding as usize));
    }
    let last = metrics.last_reconciliation.load(Ordering::Relaxed);
    let help = "Time of the last whole reconciliation, in seconds since the epoch; 0 before the first.";
    text.single(Kind::Gauge, "sluice_reconciliation_last_success_timestamp_seconds", last, help);
    let interval = metrics.reconciliation_interval.load(Ordering::Relaxed);
    let help = "Interval of reconciliations; 0 if `billing.reconcile_every` is absent.";
    text.single(Kind::Gauge, "sluice_reconciliation_interval_seconds", interval, help);
}

fn render_refreshes(text: &mut Exposition, metrics: &Metrics) {
    let help = "Refreshes of connections by this process.";
    let mut family = text.family(Kind::Counter, "sluice_connection_refreshes_total", help);
    for result in RefreshResult::ALL {
        family.sample(&[("outcome", result.word())], metrics.refreshes.get(result as usize));
    }
    let echoes = metrics.credential_echoes.load(Ordering::Relaxed);
    let help = "Answers of third-party tool servers that had the account's credential in them, and were not passed on.";
    text.single(Kind::Counter, "sluice_credential_echoes_total", echoes, help);
}

fn render_spans(text: &mut Exposition, metrics: &Metrics) {
    let (exported, dropped) = metrics.spans.read();
    let help = "Spans that the collector of traces has taken.";
    text.single(Kind::Counter, "sluice_spans_exported_total", exported, help);
    let help = "Spans that were dropped: queue_full is more than the queue holds, unavailable is a collector that did not come back, refused is one that does not want them, unreadable is the store.";
    let mut family = text.family(Kind::Counter, "sluice_spans_dropped_total", help);
    dropped.iter().for_each(|(why, count)| family.sample(&[("reason", why.word())], count));
}
