//! The page on reconciliation: its commands run in front of a ledger, and its settings are accepted.

use bench::upstream::ScriptedUpstream;
use harness::{World, scripted_ledger::ScriptedLedger};

use harness::book::Page;

#[tokio::test]
async fn reconciling_works_as_written() {
    let page = Page::read("docs/src/how-to/reconcile.md");
    let settings = page.blocks("toml").concat().replace("[billing]\n", "");
    assert!(settings.contains("reconcile_every") && settings.contains("ingest_token_file"), "{settings}");
    assert!(page.says(":4180/api/internal/billing/ingest"));
    let upstream = ScriptedUpstream::start().await.unwrap();
    let ledger = ScriptedLedger::in_front_of(upstream.address()).await;
    let toml = format!("[billing]\n{settings}");
    let world = World::in_front_of(upstream, &ledger.base_url(), &toml).await;
    let shown = page.succeeds(&[("SLUICE_CONFIG", &world.config().display().to_string())]).await;
    for outcome in [
        "agreed",
        "corrected",
        "unpriced",
        "unconfirmed",
        "late",
        "missing",
        "collapsed",
        "foreign",
        "unreadable",
    ] {
        assert!(shown.contains(&format!("{outcome} ")), "{shown}");
        assert!(page.says(&format!("| `{outcome}` |")), "the page explains {outcome}");
    }
    assert!(!ledger.queries().is_empty(), "the ledger was read");
}
