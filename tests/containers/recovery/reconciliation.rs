//! Tests reconciliation: receipts come to what LiteLLM's ledger says, and what differs is reported.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use bench::upstream::ScriptedUpstream;
use harness::{
    Agent, Up, World,
    agent::{Answering, chat_body},
    billing::{self, counts},
    eventually::eventually_within,
    grant, private_file,
    scripted_ledger::{ScriptedLedger, row},
};
use http::Method;
use platform_core::{
    budget::{Budget, Limit},
    grant::RunGrant,
};
use runner_model::failpoint::Point;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::survival::{LEASE, PATIENCE};

/// Prices of the configuration: an estimate that the ledger does not share.
const PRICES: &str =
    "[prices.fake]\ninput = '1'\noutput = '2'\n[prices.'fake-hang']\ninput = '1'\noutput = '2'\n";
/// Stands for the file of the callback's token.
const TOKEN_FILE: &str = "/TOKEN_FILE";
/// Token of the callback.
const TOKEN: &str = "sink-secret-of-this-test";

/// World with a ledger at its upstream, and a running `sluice up`.
pub(super) struct Reconciled {
    pub(super) world: World,
    pub(super) ledger: ScriptedLedger,
    up: Up,
}

impl Reconciled {
    /// Starts one with these settings in its section `[billing]`.
    pub(super) async fn with(billing: &str) -> Self {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let ledger = ScriptedLedger::in_front_of(upstream.address()).await;
        let toml = format!(
            "[billing]\nledger_delay = '1s'\n{billing}\n[api]\nlisten = '127.0.0.1:0'\n{PRICES}{LEASE}"
        );
        let mut world = World::in_front_of(upstream, &ledger.base_url(), &toml).await;
        assert!(world.stop_proxy().await);
        if billing.contains(TOKEN_FILE) {
            let token = world.path().join("ingest-token");
            private_file(&token, TOKEN);
            world.reconfigure(TOKEN_FILE, &token.display().to_string());
        }
        let up = Up::start(world.sluice()).await;
        Self { world, ledger, up }
    }

    /// Starts `sluice up` again, with `token` as the callback's in its environment.
    async fn with_token_variable(self, token: &str) -> Self {
        let Self { world, ledger, up } = self;
        up.stop(Signal::TERM).await;
        let up = Up::start(world.sluice().env("BILLING_INGEST_TOKEN", token)).await;
        Self { world, ledger, up }
    }

    /// Starts `sluice up` again, with another interval.
    async fn restarted(self, from: &str, to: &str) -> Self {
        let Self { world, ledger, up } = self;
        up.stop(Signal::TERM).await;
        world.reconfigure(from, to);
        let up = Up::start(world.sluice()).await;
        Self { world, ledger, up }
    }

    /// Returns the metrics of `sluice up`.
    pub(super) async fn metrics(&self) -> String {
        self.api().get("/metrics").await.text()
    }

    /// Returns the time of the last reconciliation according to the metrics, in seconds; 0 before the first.
    async fn last_success(&self) -> u64 {
        let metrics = self.metrics().await;
        let name = "sluice_reconciliation_last_success_timestamp_seconds ";
        metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
    }

    /// Calls a model `count` times, each for `dollars` according to the ledger, and waits for the receipts.
    pub(super) async fn call(&self, count: usize, dollars: Option<f64>) {
        let before = self.charged().await.len();
        self.ledger.charge(dollars);
        let run = self.world.run(&format!("r{before}"), "acct-1").await;
        for _ in 0..count {
            assert_eq!(run.agent.chat("fake").await.status, 200);
        }
        self.world.control.close(&run.grant.run_id, 0).await.unwrap();
        let charged = || self.charged();
        eventually_within(PATIENCE, "receipts come", charged, |all| all.len() == before + count).await;
    }

    /// Returns what all receipts of each call add up to, in nano-dollars.
    pub(super) async fn charged(&self) -> BTreeMap<String, i64> {
        billing::charged(&self.world).await
    }

    /// Reconciles the last hour; returns the exit code and the report.
    pub(super) async fn reconcile(&self) -> (Option<i32>, Value) {
        billing::reconcile(&self.world).await
    }

    /// Reconciles until the outcomes that were found are these.
    async fn reconcile_until(&self, expected: &[(&str, u64)]) -> (Option<i32>, Value) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(outcome, count)| ((*outcome).to_owned(), *count)).collect();
        let look = || self.reconcile();
        eventually_within(PATIENCE, "the outcomes are found", look, |(_, report)| counts(report) == expected)
            .await
    }

    /// Returns the API, as a client without a token.
    fn api(&self) -> Agent {
        let line = self.up.said.lines().find_map(|line| line.strip_prefix("api       http://"));
        Agent::over_tcp(line.unwrap().parse().unwrap())
    }

    pub(super) async fn end(self) {
        self.up.stop(Signal::TERM).await;
        self.world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn receipts_come_to_what_the_ledger_says() {
    let test = Reconciled::with("").await;
    test.call(3, Some(0.25)).await;
    assert!(test.charged().await.values().all(|sum| *sum < 250_000_000), "an estimate by the price table");
    let (code, report) = test.reconcile().await;
    assert_eq!((code, counts(&report)), (Some(0), BTreeMap::from([("corrected".to_owned(), 3)])), "{report}");
    assert!(test.charged().await.values().all(|sum| *sum == 250_000_000));
    let receipts = test.world.sluice().run(&["billing", "receipts"]).await;
    assert_eq!(receipts.stdout.matches("reconciled").count(), 3, "{receipts:?}");
    // Again: nothing changes.
    let again = test.reconcile().await;
    assert_eq!((again.0, counts(&again.1)), (code, counts(&report)));
    assert!(test.charged().await.values().all(|sum| *sum == 250_000_000));
    // Both have left the calls before that hour unread: the next one reads them, and leaves none.
    for unread in
        [Duration::from_secs(23 * 60 * 60)..Duration::MAX, Duration::ZERO..Duration::from_secs(60 * 60)]
    {
        let read = test.world.sluice().run(&["billing", "reconcile", "--json"]).await.result();
        let time = |name: &str| read[name].as_u64().unwrap();
        let span = Duration::from_millis(time("until_ms") - time("from_ms"));
        assert!(unread.contains(&span), "{read}");
    }
    test.end().await;
}

#[tokio::test]
async fn what_differs_is_reported() {
    let test = Reconciled::with("").await;
    test.call(1, Some(0.25)).await;
    test.call(2, None).await;
    let now = SystemTime::now();
    test.ledger.add([row("chatcmpl-foreign", None, now)]);
    // Two of our calls were written to one row, the second over the first.
    test.call(2, Some(0.5)).await;
    // A pass that leaves a gap counts no call as missing for later ones.
    let whole = test.world.sluice().run(&["billing", "reconcile"]).await;
    assert!(matches!(whole.code, Some(0 | 1)), "{whole:?}");
    test.ledger.change(|rows| {
        let last = rows.pop().unwrap();
        let row = rows.last_mut().unwrap();
        row["litellm_call_id"] = last["litellm_call_id"].clone();
        row["metadata"] = last["metadata"].clone();
    });
    let expected = [("corrected", 2), ("collapsed", 2), ("missing", 2), ("foreign", 1)];
    let (code, report) = test.reconcile_until(&expected).await;
    assert_eq!(code, Some(1), "{report}");
    let differences = report["differences"].as_array().unwrap();
    let of =
        |outcome: &'static str| differences.iter().filter(move |difference| difference["outcome"] == outcome);
    assert_eq!(of("foreign").next().unwrap()["request_id"], "chatcmpl-foreign");
    assert!(of("missing").all(|missing| missing["account"] == "acct-1" && missing["call_id"].is_string()));
    let table = test.world.sluice().run(&["billing", "reconcile", "--since", "1h"]).await;
    assert_eq!(table.code, Some(1), "{table:?}");
    assert!(table.stdout.contains("missing") && table.stdout.contains("chatcmpl-foreign"), "{table:?}");
    // The rows of the missing calls come at last.
    let rows = of("missing").map(|missing| {
        let call_id = missing["call_id"].as_str().unwrap();
        row(&format!("chatcmpl-{call_id}"), Some(call_id), now)
    });
    test.ledger.add(rows.collect::<Vec<_>>());
    let expected = [("corrected", 4), ("collapsed", 2), ("late", 2), ("foreign", 1)];
    test.reconcile_until(&expected).await;
    test.end().await;
}

#[tokio::test]
async fn a_page_that_changes_is_read_again() {
    let test = Reconciled::with("").await;
    let began = SystemTime::now() - Duration::from_secs(30);
    test.ledger.add((0..1200).map(|number| row(&format!("chatcmpl-{number}"), None, began)));
    // It is the first row, so that it moves the others to later places, some to the next page.
    test.ledger.add_before_page(2, row("chatcmpl-late", None, began - Duration::from_secs(1)));
    let (code, report) = test.reconcile().await;
    assert_eq!((code, counts(&report)["foreign"]), (Some(1), 1201));
    assert!(test.ledger.queries().len() > 3 + 1, "the span was read twice: {:?}", test.ledger.queries());
    test.end().await;
}

#[tokio::test]
async fn a_killed_reconciliation_is_resumed() {
    let test = Reconciled::with("").await;
    for point in Point::RECONCILIATION {
        test.call(2, Some(0.25)).await;
        let armed = test.world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let killed = armed.run(&["billing", "reconcile", "--since", "1h"]).await;
        assert_eq!(killed.code, None, "{} was reached: {killed:?}", point.name());
        let (code, report) = test.reconcile().await;
        let all = test.charged().await.len() as u64;
        assert_eq!(
            (code, counts(&report)),
            (Some(0), BTreeMap::from([("corrected".to_owned(), all)])),
            "{point:?}"
        );
        assert!(test.charged().await.values().all(|sum| *sum == 250_000_000), "{point:?}");
    }
    test.end().await;
}

/// A call is cut before its head, and booked at the most that it could cost. The ledger knows better.
#[tokio::test]
async fn a_limit_is_lowered_with_the_receipt() {
    let test = Reconciled::with("").await;
    let budget = Budget { total_tokens: Some(9000), ..Budget::default() };
    let run = test.world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    let used = async |test: &Reconciled| {
        let view = test.world.control.run(&run.grant.run_id).await.unwrap();
        view.limits.into_iter().find(|view| view.limit == Limit::TotalTokens).unwrap().used
    };
    let body = chat_body("fake-hang", Answering::Whole).to_string();
    let asked = run.agent.send(Method::POST, "/v1/chat/completions", body.into());
    let calls = || async { test.world.upstream.ledger().len() };
    tokio::select! {
        _ = asked => panic!("it is never answered"),
        _ = eventually_within(PATIENCE, "it is upstream", calls, |calls| *calls == 1) => {}
    }
    // The call goes on for a moment without its client.
    let charged = || test.charged();
    let booked = eventually_within(PATIENCE, "the receipt comes", charged, |all| all.len() == 1).await;
    assert_eq!(run.agent.chat("fake").await.status, 400, "nothing is left");
    let (call, before) = booked.into_iter().next().unwrap();
    let estimated = used(&test).await;
    assert!(estimated > 7000, "{estimated}");
    test.reconcile().await;
    assert_eq!(used(&test).await, estimated, "a missing row lowers nothing");
    test.ledger.add([row("chatcmpl-cut", Some(&call), SystemTime::now())]);
    let killed =
        test.world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", Point::LedgerCorrected.name()));
    let killed = killed.run(&["billing", "reconcile", "--since", "1h"]).await;
    assert_eq!(killed.code, None, "{killed:?}");
    assert_eq!(used(&test).await, estimated, "killed between receipt and limit");
    test.reconcile().await;
    let after = test.charged().await[&call];
    assert!(after == 1_000_000 && after < before, "{before}");
    let lowered = used(&test).await;
    assert!(lowered < 100, "{lowered}");
    test.reconcile().await;
    assert_eq!(used(&test).await, lowered, "once");
    let test = test.restarted("ledger_delay = '1s'", "ledger_delay = '2s'").await;
    assert_eq!(used(&test).await, lowered, "a restart honours it");
    assert_eq!(run.agent.chat("fake").await.status, 200);
    test.world.control.close(&run.grant.run_id, 0).await.unwrap();
    test.end().await;
}

#[tokio::test]
async fn receipts_are_reconciled_by_themselves() {
    let test = Reconciled::with("reconcile_every = '1h'").await;
    // The first one is due at once, and the next in an hour: a restart neither forgets nor repeats it.
    let last = || test.last_success();
    let first = eventually_within(PATIENCE, "the first pass", last, |last| *last > 0).await;
    let read = test.ledger.queries().len();
    let test = test.restarted("'1h'", "'2h'").await;
    let last = || test.last_success();
    eventually_within(PATIENCE, "the store knows the last", last, |last| last.abs_diff(first) <= 1).await;
    assert!(test.metrics().await.contains("sluice_reconciliation_interval_seconds 7200\n"));
    assert_eq!(test.ledger.queries().len(), read);
    let test = test.restarted("'2h'", "'1s'").await;
    test.call(2, Some(0.25)).await;
    let charged = || test.charged();
    let is_right = |all: &BTreeMap<_, _>| all.values().all(|sum| *sum == 250_000_000);
    eventually_within(PATIENCE, "the task corrects receipts", charged, is_right).await;
    let counted =
        |text: &String| text.contains("sluice_reconciliation_rows_total{outcome=\"corrected\"} 2\n");
    eventually_within(PATIENCE, "the metrics count it", || test.metrics(), counted).await;
    assert!(test.last_success().await > first);
    test.end().await;
}

#[tokio::test]
async fn a_correction_below_the_floor_is_enforced() {
    let test = Reconciled::with("floor = 0\nreconcile_every = '1s'").await;
    let credited = ["billing", "credit", "--account", "acct-1", "1000000", "--key", "k"];
    assert_eq!(test.world.sluice().run(&credited).await.code, Some(0));
    test.call(1, None).await;
    let exhausted = || async {
        let lists = test.world.control.send(Method::GET, "/v1/exhausted", String::new()).await.json();
        lists["accounts"].clone()
    };
    assert_eq!(exhausted().await, json!([]), "control: the estimate leaves credits");
    assert!(test.metrics().await.contains("sluice_accounts_below_floor 0\n"));
    // The ledger's row comes, with more than the account has.
    let call_id = test.charged().await.into_keys().next().unwrap();
    let mut dear = row("chatcmpl-dear", Some(&call_id), SystemTime::now());
    dear["spend"] = json!(0.25);
    test.ledger.add([dear]);
    eventually_within(PATIENCE, "the proxy is told", exhausted, |found| *found == json!(["acct-1"])).await;
    let counted = |text: &String| text.contains("sluice_accounts_below_floor 1\n");
    eventually_within(PATIENCE, "the metric counts it", || test.metrics(), counted).await;
    test.end().await;
}

/// Sends a callback with an `Authorization` header; returns the status of the answer.
async fn call_back(test: &Reconciled, authorization: Option<&str>, body: &[u8]) -> u16 {
    let api = test.api();
    let api = match authorization {
        Some(authorization) => api.with_header("authorization", authorization),
        None => api,
    };
    let path = "/api/internal/billing/ingest";
    let answer = api.request(Method::POST, path, body.to_vec().into()).await.unwrap();
    if answer.status != 202 {
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{}", answer.text());
    }
    answer.status.as_u16()
}

/// Returns a callback as LiteLLM sends it, which tells of each call that it cost $900.
fn callback(calls: &[Value]) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let event = |row: &Value| {
        json!({
            "id": row["request_id"], "litellm_call_id": row["litellm_call_id"], "status": "success",
            "startTime": now - 1.0, "endTime": now, "response_cost": 900.0, "end_user": "acct-1", "model_group": "fake",
            "metadata": row["metadata"],
        })
    };
    Value::from(calls.iter().map(event).collect::<Vec<_>>()).to_string().into_bytes()
}

#[tokio::test]
async fn a_callback_is_only_a_hint() {
    let test = Reconciled::with(&format!("ingest_token_file = '{TOKEN_FILE}'")).await;
    test.call(2, Some(0.25)).await;
    let estimate = test.charged().await;
    let genuine = callback(&test.ledger.rows());
    // Without the token nothing is read: the ledger is not asked.
    let token = format!("Bearer {TOKEN}");
    for wrong in [None, Some("Bearer sink-secret"), Some("Basic c2luaw=="), Some("Bearer ")] {
        assert_eq!(call_back(&test, wrong, &genuine).await, 401);
    }
    // With it, bodies that tell of no call lead nowhere.
    let cut = &genuine[..genuine.len() - 1];
    for broken in [cut, b"", b"[]", b"{}", b"[[[", b"[{\"startTime\": \"x\"}]"] {
        assert_eq!(call_back(&test, Some(&token), broken).await, 202);
    }
    assert_eq!((test.ledger.queries().len(), test.charged().await), (0, estimate));
    // A genuine one, twice and in another order, with figures that the ledger does not confirm.
    let mut reversed = test.ledger.rows();
    reversed.reverse();
    for body in [genuine.clone(), callback(&reversed), genuine] {
        assert_eq!(call_back(&test, Some(&token), &body).await, 202);
    }
    let charged = || test.charged();
    let is_right = |all: &BTreeMap<_, _>| all.values().all(|sum| *sum == 250_000_000);
    eventually_within(PATIENCE, "the ledger's cost is charged", charged, is_right).await;
    // Forged calls of a run that exists, and of none.
    let forged = [row("chatcmpl-forged", Some("019ab000-0000-7000-8000-000000000001"), SystemTime::now())];
    let asked = test.ledger.queries().len();
    assert_eq!(call_back(&test, Some(&token), &callback(&forged)).await, 202);
    let queries = || async { test.ledger.queries().len() };
    eventually_within(PATIENCE, "the ledger is asked", queries, |queries| *queries > asked).await;
    assert!(is_right(&test.charged().await) && test.charged().await.len() == 2);
    test.end().await;
}

#[tokio::test]
async fn without_a_token_no_callback_is_taken() {
    let test = Reconciled::with("").await;
    assert_eq!(call_back(&test, Some("Bearer x"), b"[]").await, 404);
    test.end().await;
}

#[tokio::test]
async fn the_token_may_come_from_the_environment() {
    let test = Reconciled::with("").await.with_token_variable(TOKEN).await;
    assert_eq!(call_back(&test, Some("Bearer other"), b"[]").await, 401);
    assert_eq!(call_back(&test, Some(&format!("Bearer {TOKEN}")), b"[]").await, 202);
    test.end().await;
    // A file is asked first, and then alone.
    let test = Reconciled::with(&format!("ingest_token_file = '{TOKEN_FILE}'")).await;
    let test = test.with_token_variable("of-the-environment").await;
    assert_eq!(call_back(&test, Some("Bearer of-the-environment"), b"[]").await, 401);
    assert_eq!(call_back(&test, Some(&format!("Bearer {TOKEN}")), b"[]").await, 202);
    test.end().await;
}
