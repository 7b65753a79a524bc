//! Tests texts that an earlier version stored and that no reader of JSON takes any more.

use platform_core::{event::AgentEvent, limit::Millis};
use runner_store::{AccountScope, Claimant, Created, NewRun, RunHistory, Worker};
use serde_json::Value;

use crate::database::{Database, id, order, transitions};

crate::on_both!(an_unreadable_text_spoils_no_others);

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}

async fn an_unreadable_text_spoils_no_others(database: Database) {
    let store = database.open().await;
    let nested = raw_nest(15);
    let new = NewRun { wanted: format!(r#"{{"messages":[{nested}],"model":"m"}}"#), ..order("r1") };
    let claimant = Worker::this_process();
    let created = store.create(&new, Claimant::Worker(&claimant, Millis::seconds(600))).await.unwrap();
    let Created::New(run) = created else { panic!("ordered before") };
    for transition in transitions() {
        store.step(&run.fencing_token(), &transition.into()).await.unwrap();
    }
    let poison = format!("UPDATE events SET payload = '{nested}' WHERE run = 'r1' AND seq = 1");
    database.behind_its_back(&poison).await;

    let history = store.history(&id("r1")).await.unwrap();
    let shown = serde_json::to_value(&history).unwrap();
    assert_eq!(shown["order"], Value::from(new.wanted), "it is shown as it is written");
    assert_eq!(shown["events"][0]["payload"], Value::from(nested));
    let RunHistory { record, events } = history;
    assert!(record.trace_parent().is_none());
    assert!(events[0].event().is_err());
    assert_eq!(events[0].shown(), AgentEvent::Missed { count: 1 });
    assert_eq!(events[1].shown(), events[1].event().unwrap(), "control");
    assert!(events.len() > 1 && events[1..].iter().all(|event| event.event().is_ok()), "{events:?}");
    store.forget_run(&id("r1"), &AccountScope::All).await.unwrap();
    assert_eq!(store.record(&id("r1")).await.unwrap().wanted, r#"{"messages":[],"model":"m"}"#);
}
