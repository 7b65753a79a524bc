//! Tests receipts against the real LiteLLM and its ledger, while the proxy, the worker and LiteLLM are killed.
//! `tests/examples/receipts.rs` plays thousands of calls.

use harness::billing_chaos::{BillingChaos, Evidence, Kills, ScriptedUsage};

/// Receipts equal the calls that the upstream served, and come to what LiteLLM spent. The judge finds each kind of fault.
#[tokio::test]
async fn receipts_equal_the_upstreams_ledger() {
    let kills = Kills { proxy: 4, worker: 3, litellm: 1 };
    let evidence = BillingChaos { seed: 20_261_126, runs: 50, calls: 5, kills, usage: ScriptedUsage::Random }
        .play()
        .await;
    let found = evidence.judge();
    assert_eq!(found.faults, Vec::<String>::new(), "{found:#?}");
    assert_eq!(found.charged - found.charged_missing, found.spent, "{found:#?}");
    assert!(found.served > 150 && found.spent > 0, "too few calls: {found:#?}");

    is_found("a receipt is missing", &evidence, |evidence| drop(evidence.receipts.remove(0)));
    is_found("a receipt is of another call", &evidence, |evidence| {
        evidence.receipts[0].reference += "0";
    });
    is_found("a receipt comes twice", &evidence, |evidence| {
        evidence.receipts.push(evidence.receipts[0].clone());
    });
    is_found("another account pays", &evidence, |evidence| {
        evidence.receipts[0].account += "0";
    });
    is_found("a call is charged less", &evidence, |evidence| {
        let Evidence { receipts, spent, .. } = evidence;
        let mut charged = receipts.iter_mut().filter(|receipt| receipt.nanodollars > 0);
        charged.find(|receipt| spent.contains_key(&receipt.call)).unwrap().nanodollars -= 1;
    });
    is_found("a call was served twice", &evidence, |evidence| {
        evidence.served.push(evidence.served[0].clone());
    });
    is_found("a call is not in the journal", &evidence, |evidence| {
        evidence.sent.remove(&evidence.served[0].call);
    });
    is_found("the ledger has another call", &evidence, |evidence| {
        evidence.spent.insert("another".to_owned(), 1);
    });
    is_found("the ledger lost a call without a kill", &evidence, |evidence| {
        evidence.litellm_kills.clear();
        let told = evidence.served.iter().find(|served| served.told_usage);
        evidence.spent.remove(&told.unwrap().call);
    });
}

/// Checks as a control that changed evidence has a fault.
fn is_found(name: &str, evidence: &Evidence, change: impl FnOnce(&mut Evidence)) {
    let mut evidence = evidence.clone();
    change(&mut evidence);
    assert_ne!(evidence.judge().faults, Vec::<String>::new(), "{name}");
}
