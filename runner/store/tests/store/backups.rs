//! Tests that a store is written to a file and restored.

use std::fs;

use platform_core::{limit::Millis, priority::Priority};
use runner_model::{lifecycle::Transition, principal::ApiToken};
use runner_store::{
    AccountScope, AtSamePlace, Claimant, Created, Error, Filter, NewRun, Onto, ReceiptFilter, ResourceChange,
    ResourceKind, Rows, RunRecord, SCHEMA, Step, Store, Worker,
};

use crate::{
    balances, calls, connections,
    database::{Database, id, order, transitions},
    ledger, principals, proposals, tool_calls,
};

crate::on_both!(
    a_restore_overwrites_only_with_force,
    an_incomplete_backup_is_refused,
    a_restore_fences_earlier_holders;
    restored: a_backup_is_restored_whole_on_either_backend
);

/// Stores an ended run, a preparing run, a waiting run, a call with its receipt and its journal's cursor, a row of
/// the upstream's ledger, a top-up, a principal, a connection, and a proposal.
pub(crate) async fn populate(store: &Store) {
    let me = Worker::named("host/1/00000001");
    for run in ["ended", "live"] {
        let created = store.create(&order(run), Claimant::Worker(&me, Millis(0))).await.unwrap();
        let Created::New(run) = created else { panic!("{created:?}") };
        let workspace = ResourceChange::wanted(ResourceKind::Workspace, format!("/w/{}", run.run_id));
        store.step(&run.fencing_token(), &Step::from(Transition::Prepare).with([workspace])).await.unwrap();
    }
    let ended = store.record(&id("ended")).await.unwrap().run.fencing_token();
    for transition in transitions().into_iter().skip(1) {
        store.step(&ended, &transition.into()).await.unwrap();
    }
    let urgent = NewRun { priority: Priority::High, ..order("queued") };
    store.create(&urgent, Claimant::AnyWorker).await.unwrap();
    store.record_calls(&[calls::call("ended", 7)], &calls::cursor(7)).await.unwrap();
    store.compare_spend(&[ledger::row(7, 23_000)], ledger::TERMS).await.unwrap();
    store.lease_ledger(&me, Millis(0)).await.unwrap();
    store.add_top_up(&balances::top_up("paid", 1000)).await.unwrap();
    let (call, end) = (tool_calls::new("ended", "c1"), tool_calls::done());
    store.begin_tool_call(&call).await.unwrap();
    store.end_tool_call(&call, &end).await.unwrap();
    store.add_principal(&principals::new("ann"), &ApiToken::from_random(1, [1; 2])).await.unwrap();
    store.add_connection(&connections::new(1, "a", "*"), AtSamePlace::Keep).await.unwrap();
    store.add_proposal(&proposals::new(1, "acct-1")).await.unwrap();
}

/// Returns the records of all runs, without the fields that a restore changes: epochs, and the time of the snapshot.
pub(crate) async fn all_records(store: &Store) -> Vec<RunRecord> {
    let mut all = Vec::new();
    for run in store.list(&Filter::default(), 100).await.unwrap().runs {
        let mut record = store.record(&run.run_id).await.unwrap();
        record.run.epoch = 0;
        record.now = record.run.created;
        if let Some(lease) = &mut record.run.lease {
            lease.expired = true;
        }
        all.push(record);
    }
    all
}

async fn a_backup_is_restored_whole_on_either_backend(database: Database) {
    let store = database.open().await;
    populate(&store).await;
    let file = database.path().join("backup.ndjson");
    fs::write(&file, "what was there before").unwrap();
    let rows = store.backup(&file).await.unwrap();
    assert_eq!(
        rows,
        Rows(30),
        "3 runs, 8 events, 2 resources, 1 cursor, 1 principal, 1 call, 1 receipt, 1 row of the ledger, 1 reconciliation, 1 top-up, 1 balance, 1 call of a tool, 1 connection, 1 proposal, 3 sums of receipts, 3 of runs"
    );
    for elsewhere in [Database::sqlite(), Database::postgres().await] {
        let other = elsewhere.open().await;
        assert_eq!(other.restore(&file, Onto::Empty).await.unwrap(), rows);
        assert_eq!(all_records(&other).await, all_records(&store).await);
        assert_eq!(other.cursors("receipts").await.unwrap(), store.cursors("receipts").await.unwrap());
        let all = ReceiptFilter::default();
        assert_eq!(other.receipts(&all, 10).await.unwrap(), store.receipts(&all, 10).await.unwrap());
        assert_eq!(ledger::report(&other).await, ledger::report(&store).await);
        assert_eq!(other.balances(None).await.unwrap(), store.balances(None).await.unwrap());
        let ended = id("ended");
        assert_eq!(other.tool_calls(&ended).await.unwrap(), store.tool_calls(&ended).await.unwrap());
        assert_eq!(
            other.calls(&ended, None, 10).await.unwrap(),
            store.calls(&ended, None, 10).await.unwrap()
        );
        let all = AccountScope::All;
        let proposed = other.proposals(&all, None, 10).await.unwrap();
        assert_eq!(proposed, store.proposals(&all, None, 10).await.unwrap());
        let claimed = other.claim(&Worker::this_process(), Millis(0)).await.unwrap().unwrap();
        assert_eq!(claimed.run_id, id("queued"), "and it can be worked with");
    }
}

async fn a_restore_overwrites_only_with_force(database: Database) {
    let store = database.open().await;
    populate(&store).await;
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    store.create(&order("later"), Claimant::AnyWorker).await.unwrap();
    let refused = store.restore(&file, Onto::Empty).await.unwrap_err();
    assert!(matches!(refused, Error::NotEmpty { .. }), "{refused:?}");
    store.record(&id("later")).await.unwrap();
    store.restore(&file, Onto::Anything).await.unwrap();
    assert!(matches!(store.record(&id("later")).await.unwrap_err(), Error::Unknown { .. }));
    store.record(&id("ended")).await.unwrap();
}

async fn an_incomplete_backup_is_refused(database: Database) {
    let store = database.open().await;
    populate(&store).await;
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let changed = whole.replacen("acct-1", "acct-7", 1);
    let without_one = [&lines[..3], &lines[4..]].concat().join("\n");
    let newer = whole.replacen(&format!("\"schema\":{SCHEMA}"), "\"schema\":999", 1);
    let other_table = whole.replacen("\"table\":\"runs\"", "\"table\":\"pg_authid\"", 1);
    let before = all_records(&store).await;
    for spoiled in [
        "",
        &whole[..whole.len() / 2],
        &lines[..lines.len() - 1].join("\n"),
        &changed,
        &without_one,
        &newer,
        &other_table,
    ] {
        fs::write(&file, spoiled).unwrap();
        let refused = store.restore(&file, Onto::Anything).await.unwrap_err();
        assert!(matches!(refused, Error::Backup { .. } | Error::Newer { .. }), "{refused:?}");
    }
    assert_eq!(all_records(&store).await, before, "whole or not at all");
    fs::write(&file, &whole).unwrap();
    store.restore(&file, Onto::Anything).await.unwrap();
}

async fn a_restore_fences_earlier_holders(database: Database) {
    let store = database.open().await;
    populate(&store).await;
    let file = database.path().join("backup.ndjson");
    store.backup(&file).await.unwrap();
    let held = store.take_over(&Worker::this_process(), Millis(0), &[]).await.unwrap().unwrap();
    store.restore(&file, Onto::Anything).await.unwrap();
    // Without the gap that a restore adds, the next worker would get the same epoch that was given out after the
    // backup.
    let taken_over =
        store.take_over(&Worker::this_process(), Millis::seconds(60), &[]).await.unwrap().unwrap();
    assert_eq!(taken_over.run_id, held.run_id);
    let refused = store.renew(&held.fencing_token(), Millis::seconds(60)).await.unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused:?}");
}
