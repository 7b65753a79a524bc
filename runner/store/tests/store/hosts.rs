//! Tests that a store serves one host, refuses others, and can be moved.

use futures_util::future::join_all;
use platform_core::{id::InstallationId, limit::Millis};
use runner_store::{
    Adopted, Claimant, Created, Error, ErrorClass, HostIdentity, Onto, Served, Store, Worker,
};

use crate::{
    backups::populate,
    database::{Database, eventually, host, id, open, order},
};

const LONG: Millis = Millis::seconds(600);
/// Lease that expires with the next millisecond.
const EXPIRES_AT_ONCE: Millis = Millis(0);

crate::on_both!(
    the_first_host_is_served_and_another_refused,
    one_of_two_new_hosts_wins,
    one_of_two_adopting_hosts_wins,
    a_live_lease_keeps_the_store_where_it_is,
    a_moved_store_is_closed_to_its_former_host,
    a_restored_store_serves_the_restoring_host,
    other_installations_at_work_prevent_a_restore,
    a_restore_waits_for_a_claim_under_way,
    each_installation_has_a_host_of_its_own,
    a_store_without_a_host_only_reads;
    restored: a_backup_goes_into_a_new_store_elsewhere
);

async fn serving(database: &Database, number: u128) -> Result<Store, Error> {
    open(&database.address()).await.unwrap().serving(host(number)).await
}

async fn served(database: &Database) -> HostIdentity {
    open(&database.address()).await.unwrap().served().await.unwrap().unwrap().host
}

/// Moves the store to host `number`, as soon as no lease prevents it.
async fn adopted(database: &Database, number: u128) -> Adopted {
    let store = open(&database.address()).await.unwrap();
    eventually("it is moved", async || store.adopt(&host(number)).await.ok()).await
}

async fn the_first_host_is_served_and_another_refused(database: Database) {
    let first = serving(&database, 1).await.unwrap();
    serving(&database, 1).await.unwrap();
    let refused = serving(&database, 2).await.unwrap_err();
    assert_eq!((refused.class(), refused.serves_another()), (ErrorClass::Refused, true));
    let said = refused.to_string();
    for part in [host(1).id.as_str(), "host-1", "last seen 20", host(2).id.as_str(), "sluice store adopt"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    first.create(&order("r1"), Claimant::AnyWorker).await.unwrap();
    // A store that only reads may be opened on any host.
    open(&database.address()).await.unwrap().record(&id("r1")).await.unwrap();
    // A host with another name but the same id is the same host.
    let renamed = HostIdentity { name: "renamed".to_owned(), ..host(1) };
    open(&database.address()).await.unwrap().serving(renamed.clone()).await.unwrap();
    assert_eq!(served(&database).await, renamed);
}

async fn one_of_two_new_hosts_wins(database: Database) {
    database.open_of("elsewhere").await;
    let results = join_all((1..=6).map(|number| serving(&database, number))).await;
    let winners: Vec<_> = results.iter().filter(|store| store.is_ok()).collect();
    assert_eq!(winners.len(), 1, "{results:?}");
    let lost = results.iter().filter_map(|store| store.as_ref().err());
    assert!(lost.into_iter().all(Error::serves_another), "{results:?}");
}

async fn one_of_two_adopting_hosts_wins(database: Database) {
    serving(&database, 1).await.unwrap();
    adopted(&database, 1).await;
    let stores = join_all((2..=6).map(|_| async { open(&database.address()).await.unwrap() })).await;
    // A lease of length zero expires with the next millisecond.
    let results = eventually("one of them adopts it", async || {
        let one = async |number: usize| stores[number].adopt(&host(number as u128 + 2)).await;
        let all = join_all((0..stores.len()).map(one)).await;
        all.iter().any(Result::is_ok).then_some(all)
    })
    .await;
    let moves: Vec<_> = results.iter().filter_map(|adopted| adopted.as_ref().ok()).collect();
    let winner = served(&database).await;
    let from_first =
        |adopted: &&&Adopted| matches!(adopted, Adopted::From { before, .. } if before.host == host(1));
    assert_eq!(moves.iter().filter(from_first).count(), 1, "{results:?}");
    serving(&database, u128::from_str_radix(winner.id.as_str(), 16).unwrap()).await.unwrap();
}

async fn a_live_lease_keeps_the_store_where_it_is(database: Database) {
    let (first, me) = (serving(&database, 1).await.unwrap(), Worker::this_process());
    let refused = async |what: &str| {
        let refused = open(&database.address()).await.unwrap().adopt(&host(2)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::HostAtWork { left, .. } if *left > Millis::seconds(500)),
            "{what}: {refused:?}"
        );
        assert!(refused.to_string().contains("host-1"), "{refused}");
    };
    let Created::New(run) = first.create(&order("r1"), Claimant::Worker(&me, LONG)).await.unwrap() else {
        panic!()
    };
    refused("of a run").await;
    first.release(&me).await.unwrap();
    first.create(&order("r2"), Claimant::AnyWorker).await.unwrap();
    first.keep_serving(LONG).await.unwrap();
    refused("of a host at work, with no run").await;
    // Using the store does not shorten the lease.
    serving(&database, 1).await.unwrap();
    refused("after another command there").await;
    database.behind_its_back("UPDATE hosts SET lease_until = 0").await;
    let moved = adopted(&database, 2).await;
    assert!(matches!(&moved, Adopted::From { before, unfinished: 2 } if before.host == host(1)), "{moved:?}");
    let second = serving(&database, 2).await.unwrap();
    let taken = second.take_over(&me, LONG, &[]).await.unwrap().unwrap();
    assert_eq!((taken.run_id, taken.epoch), (run.run_id, 2));
    assert_eq!(adopted(&database, 2).await, Adopted::Already);
}

async fn a_moved_store_is_closed_to_its_former_host(database: Database) {
    let (first, me) = (serving(&database, 1).await.unwrap(), Worker::this_process());
    first.create(&order("waits"), Claimant::AnyWorker).await.unwrap();
    first.create(&order("left"), Claimant::Worker(&me, EXPIRES_AT_ONCE)).await.unwrap();
    // The control: until the store is moved, the runs can be claimed.
    let left =
        eventually("it is left", async || first.take_over(&me, EXPIRES_AT_ONCE, &[]).await.unwrap()).await;
    adopted(&database, 2).await;
    let refusals = [
        first.claim(&me, LONG).await.map(drop),
        eventually("it is left", async || {
            first.take_over(&me, EXPIRES_AT_ONCE, &[]).await.map(|run| run.map(drop)).transpose()
        })
        .await,
        first.create(&order("new"), Claimant::AnyWorker).await.map(drop),
        first.create(&order("mine"), Claimant::Worker(&me, LONG)).await.map(drop),
        first.keep_serving(LONG).await,
    ];
    assert!(
        refusals.iter().all(|refused| refused.as_ref().is_err_and(Error::serves_another)),
        "{refusals:?}"
    );
    let store = serving(&database, 2).await.unwrap();
    assert_eq!(
        store.record(&left.run_id).await.unwrap().run.epoch,
        left.epoch,
        "what it tried changed nothing"
    );
    assert_eq!(store.claim(&me, LONG).await.unwrap().unwrap().run_id, id("waits"));
}

async fn a_restored_store_serves_the_restoring_host(database: Database) {
    let first = serving(&database, 1).await.unwrap();
    populate(&first).await;
    let file = database.path().join("backup.ndjson");
    first.backup(&file).await.unwrap();
    assert!(!std::fs::read_to_string(&file).unwrap().contains(host(1).id.as_str()), "a backup names no host");
    database.open_of("there").await;
    let before = (first.served().await.unwrap(), served_there(&database).await);
    first.restore(&file, Onto::Anything).await.unwrap();
    assert_eq!((first.served().await.unwrap(), served_there(&database).await), before);
    let refused = serving(&database, 2).await.unwrap_err();
    assert!(refused.serves_another(), "{refused:?}");
    // The control: the host that restored it continues.
    assert_eq!(first.claim(&Worker::this_process(), LONG).await.unwrap().unwrap().run_id, id("queued"));
    adopted_by_another(&database).await;
    let refused = first.restore(&file, Onto::Anything).await.unwrap_err();
    assert!(refused.serves_another(), "a store that was moved meanwhile: {refused:?}");
}

async fn served_there(database: &Database) -> Option<Served> {
    let there = Store::open(&database.address(), InstallationId::parse("there").unwrap()).await.unwrap();
    there.served().await.unwrap()
}

async fn adopted_by_another(database: &Database) {
    database.behind_its_back("UPDATE hosts SET lease_until = 0; UPDATE runs SET lease_until = 0").await;
    adopted(database, 2).await;
}

async fn a_backup_goes_into_a_new_store_elsewhere(database: Database) {
    let first = serving(&database, 1).await.unwrap();
    populate(&first).await;
    let file = database.path().join("backup.ndjson");
    first.backup(&file).await.unwrap();
    for elsewhere in [Database::sqlite(), Database::postgres().await] {
        let second = serving(&elsewhere, 2).await.unwrap();
        second.restore(&file, Onto::Empty).await.unwrap();
        assert_eq!(served(&elsewhere).await, host(2));
        assert_eq!(second.claim(&Worker::this_process(), LONG).await.unwrap().unwrap().run_id, id("queued"));
    }
}

async fn other_installations_at_work_prevent_a_restore(database: Database) {
    let (here, there) = (serving(&database, 2).await.unwrap(), database.open_of("there").await);
    let (file, me) = (database.path().join("backup.ndjson"), Worker::this_process());
    here.backup(&file).await.unwrap();
    let refused = async |what: &str| {
        for onto in [Onto::Anything, Onto::Empty] {
            let refused = here.restore(&file, onto).await.unwrap_err();
            assert!(matches!(refused, Error::OthersAtWork { .. }), "{what}: {refused:?}");
            let said = refused.to_string();
            for part in ["`there`", host(1).id.as_str(), "host-1", "Stop `sluice up` there"] {
                assert!(said.contains(part), "{what}: no {part} in {said}");
            }
        }
    };
    there.create(&order("r1"), Claimant::Worker(&me, LONG)).await.unwrap();
    refused("a run").await;
    there.release(&me).await.unwrap();
    there.keep_serving(LONG).await.unwrap();
    refused("a host with no run at work").await;
    there.record(&id("r1")).await.unwrap();
    // The control: once its leases have expired, it is replaced. So are active runs of the caller.
    database.behind_its_back("UPDATE hosts SET lease_until = 0").await;
    here.create(&order("r2"), Claimant::Worker(&me, LONG)).await.unwrap();
    here.restore(&file, Onto::Anything).await.unwrap();
    for run in ["r1", "r2"] {
        assert!(matches!(here.record(&id(run)).await.unwrap_err(), Error::Unknown { .. }), "{run}");
    }
    assert_eq!(served_there(&database).await.unwrap().host, host(1));
}

/// A restore races with claims of another installation. One of them wins: no claimed run is lost.
async fn a_restore_waits_for_a_claim_under_way(database: Database) {
    let (here, there) = (serving(&database, 2).await.unwrap(), database.open_of("there").await);
    let (file, me) = (database.path().join("backup.ndjson"), Worker::this_process());
    here.backup(&file).await.unwrap();
    for round in 0..20 {
        let run = format!("r{round}");
        there.create(&order(&run), Claimant::AnyWorker).await.unwrap();
        let (claimed, restored) = tokio::join!(there.claim(&me, LONG), here.restore(&file, Onto::Anything));
        let claimed = claimed.unwrap().is_some();
        assert_ne!(claimed, restored.is_ok(), "round {round}: {restored:?}");
        assert_eq!(there.record(&id(&run)).await.is_ok(), claimed, "round {round}");
        database.behind_its_back("DELETE FROM runs").await;
    }
}

async fn each_installation_has_a_host_of_its_own(database: Database) {
    let (here, there) = (serving(&database, 2).await.unwrap(), database.open_of("there").await);
    assert_eq!(here.served().await.unwrap().unwrap().host, host(2));
    assert_eq!(there.served().await.unwrap().unwrap().host, host(1));
}

async fn a_store_without_a_host_only_reads(database: Database) {
    let reader = open(&database.address()).await.unwrap();
    let refused = reader.create(&order("r1"), Claimant::AnyWorker).await.unwrap_err();
    assert!(matches!(refused, Error::OnlyReads), "{refused:?}");
    assert_eq!(reader.served().await.unwrap(), None, "to look does not bind it");
}
