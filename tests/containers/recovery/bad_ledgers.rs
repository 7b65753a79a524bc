//! Tests ledgers that try to hold up billing: rows that cannot be read, and pages without an end.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use harness::{billing::counts, scripted_ledger::row};
use serde_json::json;

use super::reconciliation::Reconciled;

/// Returns rows that LiteLLM does not write, each with the field that cannot be read, if its call is `call_id`.
fn bad_rows(call_id: &str) -> Vec<(String, &'static str)> {
    let with = |number: u32, field: &'static str, value: &str| {
        let good = row(&format!("chatcmpl-bad-{number}"), Some(call_id), SystemTime::now());
        let from = format!("\"{field}\":{}", good[field]);
        let good = good.to_string();
        assert!(good.contains(&from), "{good}");
        (good.replacen(&from, &format!("\"{field}\":{value}"), 1), field)
    };
    vec![
        with(1, "request_id", "null"),
        with(2, "startTime", "null"),
        with(3, "startTime", "\"2026-11-20T20:29:10.244+02:00\""),
        with(4, "spend", "\"0.25\""),
        with(5, "total_tokens", "17.5"),
        with(6, "model_group", "\"hunter2 \\ud800\""),
    ]
}

#[tokio::test]
async fn a_bad_row_stops_no_pass() {
    let test = Reconciled::with("").await;
    // One call has bad rows alone, before the row of the other one.
    test.call(1, None).await;
    let unreconciled = test.charged().await;
    let (call, estimate) = unreconciled.first_key_value().unwrap();
    let bad = bad_rows(call);
    bad.iter().for_each(|(text, _)| test.ledger.add_text(SystemTime::now(), text));
    test.call(1, Some(0.25)).await;
    let (code, report) = test.reconcile().await;
    let expected = [("corrected", 1), ("unreadable", bad.len() as u64)];
    let mut found = counts(&report);
    found.remove("missing");
    assert_eq!(
        found,
        BTreeMap::from(expected.map(|(outcome, count)| (outcome.to_owned(), count))),
        "{report}"
    );
    assert_eq!((code, &report["stopped"]), (Some(1), &json!(null)));
    let charged = test.charged().await;
    assert_eq!(charged[call], *estimate, "the call with bad rows stays as it was");
    assert!(charged.iter().all(|(id, sum)| (id == call) ^ (*sum == 250_000_000)), "{charged:?}");
    // Each is listed by its field and its hash, and nothing of it is shown.
    let listed = report["unreadable"].as_array().unwrap();
    for (text, field) in &bad {
        let sha256 = String::from_utf8(platform_core::record::hash(text.as_bytes()).to_vec()).unwrap();
        let part = listed.iter().find(|part| part["sha256"] == sha256.as_str());
        assert_eq!(part.unwrap_or_else(|| panic!("{text}: {report}"))["field"], *field);
    }
    assert!(!report.to_string().contains("hunter2"));
    let table = test.world.sluice().run(&["billing", "reconcile", "--since", "1h"]).await;
    assert!(table.stdout.contains("UNREADABLE") && table.stdout.contains("total_tokens"), "{table:?}");
    // The control: with a good row the call is corrected.
    test.ledger.add([row("chatcmpl-good", Some(call), SystemTime::now())]);
    test.reconcile().await;
    assert_eq!(test.charged().await[call], 1_000_000);
    test.end().await;
}

#[tokio::test]
async fn an_endless_ledger_stops_no_pass() {
    let test = Reconciled::with("").await;
    test.call(1, Some(0.25)).await;
    for total in [1_000_000_000_000_000, 0] {
        test.ledger.never_end(total);
        let before = test.ledger.queries().len();
        let pass = tokio::time::timeout(Duration::from_secs(120), test.reconcile());
        let (code, report) = pass.await.expect("a pass has an end");
        assert_eq!((code, &report["stopped"]), (Some(1), &json!("seconds that cannot be read")), "{report}");
        assert_eq!(counts(&report)["unreadable"], 10, "{report}");
        let pages = test.ledger.queries().len() - before;
        assert!(pages < 300, "{pages} pages");
    }
    // Billing goes on meanwhile.
    assert_eq!(test.charged().await.len(), 1);
    test.call(1, None).await;
    test.end().await;
}
