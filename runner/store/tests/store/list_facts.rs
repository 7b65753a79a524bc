//! Tests what a list shows of runs beside their rows.

use platform_core::{id::AccountId, limit::Millis, priority::Priority};
use runner_store::{Claimant, Filter, NewRun, Worker};

use crate::{
    database::{Database, id, order},
    relays::{progress, relay},
};

crate::on_both!(a_list_has_positions_and_published_relays);

async fn a_list_has_positions_and_published_relays(database: Database) {
    let store = database.open().await;
    let me = Worker::named("host/1/00000001");
    store.create(&order("held"), Claimant::Worker(&me, Millis::seconds(60))).await.unwrap();
    let other = AccountId::parse("acct-2").unwrap();
    for new in [
        order("first"),
        order("second"),
        NewRun { priority: Priority::High, ..order("urgent") },
        NewRun { account: other, ..order("other") },
        order("third"),
    ] {
        // Runs of one millisecond wait in the order of their ids.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        store.create(&new, Claimant::AnyWorker).await.unwrap();
    }
    for (run, stage) in [("held", "published"), ("first", "pushed")] {
        let stored = store.add_relay(&relay(run, "acct-1")).await.unwrap();
        store.change_relay(&stored, &progress(stage, None)).await.unwrap();
    }
    let page = store.list(&Filter::default(), 100).await.unwrap();
    assert!(page.runs.iter().all(|run| run.model.as_deref() == Some("fake")), "{page:?}");
    let facts = store.list_facts(&page.runs).await.unwrap();
    assert_eq!(facts.len(), page.runs.len());
    for run in &page.runs {
        assert_eq!(facts[&run.run_id].ahead, store.ahead(run).await.unwrap(), "{}", run.run_id);
    }
    assert_eq!((facts[&id("held")].ahead, facts[&id("third")].ahead), (None, Some(2)));
    assert_eq!(facts[&id("held")].published, store.relay(&id("held")).await.unwrap());
    assert_eq!(facts[&id("first")].published, None, "it is not published yet");
    assert_eq!(facts[&id("third")].question.as_deref(), Some("what is third?"));
    assert!(store.list_facts(&[]).await.unwrap().is_empty());
}
