//! Tests what is kept of browsers' reports.

use runner_store::{CspReport, KEPT_CSP_REPORTS};

use crate::database::Database;

crate::on_both!(reports_of_the_same_are_one, few_reports_are_kept, old_reports_end);

fn report(number: usize) -> CspReport {
    CspReport {
        directive: "script-src-elem".to_owned(),
        blocked: format!("https://h/{number}"),
        source: String::new(),
        page: "http://h/sandbox".to_owned(),
    }
}

async fn reports_of_the_same_are_one(database: Database) {
    let store = database.open().await;
    assert!(store.csp_reports().await.unwrap().is_empty());
    store.record_csp_report(&report(1)).await.unwrap();
    let elsewhere = CspReport { page: "http://h/chat".to_owned(), ..report(1) };
    store.record_csp_report(&elsewhere).await.unwrap();
    let kept = store.csp_reports().await.unwrap();
    assert_eq!((kept.len(), kept[0].reports, &kept[0].report), (1, 2, &elsewhere));
    assert!(database.open_of("there").await.csp_reports().await.unwrap().is_empty());
}

async fn few_reports_are_kept(database: Database) {
    let store = database.open().await;
    for number in 0..KEPT_CSP_REPORTS + 3 {
        database.behind_its_back("UPDATE csp_reports SET last = last - 1000").await;
        store.record_csp_report(&report(number)).await.unwrap();
    }
    let kept = store.csp_reports().await.unwrap();
    assert_eq!((kept.len(), &kept[0].report), (KEPT_CSP_REPORTS, &report(KEPT_CSP_REPORTS + 2)));
    assert!(!kept.iter().any(|kept| kept.report == report(2)), "the oldest ended");
}

async fn old_reports_end(database: Database) {
    let store = database.open().await;
    store.record_csp_report(&report(1)).await.unwrap();
    assert_eq!(store.csp_reports().await.unwrap().len(), 1, "control");
    database.behind_its_back("UPDATE csp_reports SET last = last - 604800000").await;
    assert!(store.csp_reports().await.unwrap().is_empty());
}
