//! Gathers what the upstream, the journal, the receipts and LiteLLM's ledger say of the calls of a play.

use std::{collections::BTreeMap, time::Duration};

use bench::upstream::{Ending, Entry};
use platform_core::{
    control::Health,
    money::NanoDollars,
    record::{ExchangeRecord, JournalLine, Kind, Outcome},
};
use serde_json::{Value, json};

use super::chaos::Victims;
use crate::{
    billing::receipts_consumer, eventually::eventually_within, litellm::LiteLlm, pace::pace, world::World,
};

/// Longest wait until everything is booked, after the last run.
const SETTLED_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest reconciliation: LiteLLM's pages of thousands of rows come slowly.
const RECONCILED_TIMEOUT: Duration = Duration::from_secs(900);
/// Time after which LiteLLM's ledger has no more rows to come: it writes them every second.
const QUIET_PERIOD: Duration = Duration::from_secs(8);
/// Interval at which it is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Header in which `tests/clients/litellm/recorder.py` passes a call's id on.
const CALL_ID: &str = "x-test-call-id";

/// Evidence of a play.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Number of runs by state.
    pub runs: BTreeMap<String, usize>,
    /// Accounts with which runs were ordered, by run.
    pub accounts: BTreeMap<String, String>,
    /// Requests that the upstream served, in the order in which they arrived.
    pub served: Vec<ServedRequest>,
    /// Calls that the journal has as sent, by id.
    pub sent: BTreeMap<String, SentCall>,
    /// Number of lines of the journal about calls that were sent.
    pub lines: usize,
    /// Receipts, adjusting ones among them.
    pub receipts: Vec<ReceiptSeen>,
    /// Rows of LiteLLM's ledger by call: their spend in nano-dollars.
    pub spent: BTreeMap<String, u64>,
    /// Number of those rows.
    pub rows: usize,
    /// Outcomes that `sluice billing reconcile` reported, with their numbers.
    pub reported: BTreeMap<String, u64>,
    /// Times at which LiteLLM was killed, in milliseconds since 1970.
    pub litellm_kills: Vec<u64>,
}

/// Request that the upstream served.
#[derive(Debug, Clone)]
pub struct ServedRequest {
    /// Id of the call; empty if LiteLLM did not pass one on.
    pub call: String,
    /// If true, the upstream's script cut the connection before there was an answer.
    pub was_cut: bool,
    /// If true, the answer told its usage.
    pub told_usage: bool,
}

/// Call that was sent upstream, according to the journal.
#[derive(Debug, Clone)]
pub struct SentCall {
    /// Reference of its receipt.
    pub reference: String,
    /// Its route, its model, and whether its answer is streamed.
    pub kind: String,
    /// Its outcome.
    pub outcome: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// Receipt of a call.
#[derive(Debug, Clone)]
pub struct ReceiptSeen {
    /// Id of the call.
    pub call: String,
    /// Reference of the receipt.
    pub reference: String,
    /// Run that made the call.
    pub run: String,
    /// Account that pays.
    pub account: String,
    /// Amount in nano-dollars; less than zero if it corrects one that was too large.
    pub nanodollars: i64,
    /// Reason for the amount.
    pub reason: String,
    /// Start of the call, in milliseconds since 1970.
    pub called_ms: u64,
    /// If true, it corrects another receipt.
    pub is_correction: bool,
}

impl Evidence {
    /// Waits until everything is booked, reconciles, and gathers all but what the play itself knows of its runs.
    pub(super) async fn gather(world: &World, victims: &Victims) -> Self {
        let served = served(world).await;
        let sent = sent_calls(world).await;
        await_receipts(world).await;
        let rows = settled_ledger(&victims.litellm).await;
        let reconcile = ["billing", "reconcile", "--since", "24h", "-n", "0", "--json"];
        let reconciled = world.sluice().within(RECONCILED_TIMEOUT).run(&reconcile).await;
        assert!(matches!(reconciled.code, Some(0 | 1)), "{reconciled:?}");
        let reported = serde_json::from_value(reconciled.result()["counts"].clone()).unwrap();
        let lines = sent.len();
        Self {
            runs: BTreeMap::new(),
            accounts: BTreeMap::new(),
            served,
            lines,
            sent: sent.into_iter().collect(),
            receipts: receipts(world).await,
            rows: rows.len(),
            spent: spent(&rows),
            reported,
            litellm_kills: victims.litellm_kills.clone(),
        }
    }
}

/// Waits until the upstream has ended all calls; it may still answer one that its client has left.
async fn served(world: &World) -> Vec<ServedRequest> {
    let ledger = || async { world.upstream.ledger().all() };
    let ended = |entries: &Vec<Entry>| entries.iter().all(|entry| !entry.ending.is_open());
    let entries = eventually_within(SETTLED_TIMEOUT, "the upstream has ended all calls", ledger, ended).await;
    let request = |entry: &Entry| ServedRequest {
        call: entry.header(CALL_ID).concat(),
        was_cut: matches!(entry.ending, Ending::CutByScript { after_events: 0, .. }),
        told_usage: entry.reported.is_some(),
    };
    // LiteLLM also asks for the list of models.
    entries.iter().filter(|entry| entry.method == "POST").map(request).collect()
}

/// Returns the calls that the journal has as sent, with their ids, once none is in flight.
async fn sent_calls(world: &World) -> Vec<(String, SentCall)> {
    let health = || async { world.control.health().await };
    let is_idle = |health: &Result<Health, _>| health.as_ref().is_ok_and(|health| health.in_flight == 0);
    eventually_within(SETTLED_TIMEOUT, "no call is in flight", health, is_idle).await.unwrap();
    let journal = world.journal().await;
    let is_sent = |record: &ExchangeRecord| record.kind == Kind::Model && record.outcome != Outcome::Refused;
    journal.iter().filter(|line| is_sent(&line.record)).map(sent_call).collect()
}

fn sent_call(JournalLine { record, .. }: &JournalLine) -> (String, SentCall) {
    let id = record.litellm_call_id.to_string();
    let call = SentCall {
        reference: format!("{}/{}/{id}", record.run_id, record.attempt),
        kind: format!("{:?} {:?} stream={}", record.route, record.model_asked, record.stream),
        outcome: record.outcome.to_string(),
        duration_ms: record.duration_us / 1000,
    };
    (id, call)
}

/// Waits until the consumer of the journal has acknowledged all of it.
async fn await_receipts(world: &World) {
    let look = || receipts_consumer(world);
    eventually_within(SETTLED_TIMEOUT, "all is booked", look, |consumer| consumer["lag"] == json!(0)).await;
}

/// Returns all receipts.
async fn receipts(world: &World) -> Vec<ReceiptSeen> {
    let exported = world.sluice().run(&["billing", "export"]).await;
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let receipts = exported.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    receipts
        .map(|receipt| {
            let text = |key: &str| receipt[key].as_str().unwrap().to_owned();
            ReceiptSeen {
                call: text("call_id"),
                reference: text("source_reference"),
                run: text("run_id"),
                account: text("account"),
                nanodollars: receipt["nanodollars"].as_i64().unwrap(),
                reason: text("charge_reason"),
                called_ms: receipt["called_ms"].as_u64().unwrap(),
                is_correction: !receipt["corrects"].is_null(),
            }
        })
        .collect()
}

/// Returns all rows of LiteLLM's ledger, once no more have come for some time.
async fn settled_ledger(litellm: &LiteLlm) -> Vec<Value> {
    let mut rows = litellm.ledger();
    let mut since = tokio::time::Instant::now();
    while since.elapsed() < QUIET_PERIOD {
        pace(LOOK_INTERVAL).await;
        let now = litellm.ledger();
        if now.len() != rows.len() {
            since = tokio::time::Instant::now();
        }
        rows = now;
    }
    rows
}

/// Returns what LiteLLM spent for each call, in nano-dollars.
fn spent(rows: &[Value]) -> BTreeMap<String, u64> {
    let mut spent = BTreeMap::new();
    for row in rows {
        let own = [&row["litellm_call_id"], &row["metadata"]["spend_logs_metadata"]["call_id"]];
        let call = own.iter().find_map(|id| id.as_str()).unwrap_or_default().to_owned();
        let spend = NanoDollars::parse_dollars(&row["spend"].to_string()).expect("a row has a spend");
        *spent.entry(call).or_default() += spend.0;
    }
    spent
}
