//! Tests the pool of warm containers, also with several runs that claim one.

use std::collections::BTreeSet;

use platform_core::{
    id::{AgentId, SocketDirName, WorkspaceId},
    limit::Millis,
};
use runner_model::lifecycle::{State, Transition};
use runner_store::{
    Claimant, Error, PoolStage, ResourceKind, ResourceState, Run, Step, Store, WarmContainer, Worker,
};

use crate::database::{Database, eventually, order};

const LONG: Millis = Millis::seconds(600);
/// Lease that expires with the next millisecond.
const EXPIRES_AT_ONCE: Millis = Millis(0);
const TEMPLATE: &str = "template";

crate::on_both!(
    one_run_takes_a_warm_container_and_its_parts,
    only_a_ready_container_is_taken,
    a_taken_container_is_no_longer_in_the_pool,
    only_its_owner_removes_a_warm_container,
    a_container_of_another_template_does_not_fit,
);

fn warm(number: u128) -> WarmContainer {
    WarmContainer {
        container: format!("sluice-default-warm-{number}"),
        template: TEMPLATE.to_owned(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        workspace: WorkspaceId::from_random(number),
        listener: SocketDirName::from_random(number),
    }
}

fn worker() -> Worker {
    Worker::named("host/1/abc")
}

/// Returns a container that is ready.
async fn ready(store: &Store, number: u128) -> WarmContainer {
    let warm = warm(number);
    store.want_warm(&warm, &worker(), LONG).await.unwrap();
    assert!(store.mark_warm_ready(&warm, &worker()).await.unwrap());
    warm
}

async fn claimed(store: &Store, run: &str) -> Run {
    store.create(&order(run), Claimant::AnyWorker).await.unwrap();
    store.claim(&worker(), LONG).await.unwrap().unwrap()
}

fn taking(warm: &WarmContainer) -> Step {
    Step::from(Transition::Prepare).taking(warm.clone())
}

async fn stages(store: &Store) -> Vec<PoolStage> {
    store.pool().await.unwrap().into_iter().map(|entry| entry.stage).collect()
}

async fn one_run_takes_a_warm_container_and_its_parts(database: Database) {
    let clients = [database.open().await, database.open().await];
    let warm = ready(&clients[0], 1).await;
    let mut runs = Vec::new();
    for number in 0..8 {
        runs.push(claimed(&clients[0], &format!("r{number}")).await);
    }
    let take = async |(number, run): (usize, &Run)| {
        clients[number % 2].step(&run.fencing_token(), &taking(&warm)).await.map(|taken| taken.run_id)
    };
    let taken = futures_util::future::join_all(runs.iter().enumerate().map(take)).await;
    let winners: Vec<_> = taken.iter().filter_map(|taken| taken.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1, "{taken:?}");
    assert!(taken.iter().flat_map(Result::as_ref).count() == 1);
    for lost in taken.iter().filter_map(|taken| taken.as_ref().err()) {
        assert!(matches!(lost, Error::NotWarm { .. }), "{lost:?}");
    }
    let (run, made) = clients[0].run_with_resources(winners[0]).await.unwrap();
    assert_eq!(run.state, State::Preparing);
    let resources: BTreeSet<_> = made
        .iter()
        .map(|resource| (resource.kind.name(), resource.name.as_str(), resource.stage.name()))
        .collect();
    let of = |kind: ResourceKind, name| (kind.name(), name, ResourceState::Wanted.name());
    assert_eq!(
        resources,
        BTreeSet::from([
            of(ResourceKind::Workspace, warm.workspace.as_str()),
            of(ResourceKind::Listener, warm.listener.as_str()),
            of(ResourceKind::Container, warm.container.as_str()),
        ])
    );
    assert_eq!(stages(&clients[1]).await, []);
    // A run that lost keeps its state.
    let lost = runs.iter().find(|run| run.run_id != *winners[0]).unwrap();
    assert_eq!(clients[0].record(&lost.run_id).await.unwrap().run.state, State::Queued);
}

async fn only_a_ready_container_is_taken(database: Database) {
    let store = database.open().await;
    let run = claimed(&store, "r1").await;
    let warm = warm(1);
    let refused = async || {
        let taken = store.step(&run.fencing_token(), &taking(&warm)).await;
        assert!(matches!(taken, Err(Error::NotWarm { .. })), "{taken:?}");
        assert_eq!(store.warm_containers(TEMPLATE).await.unwrap(), []);
    };
    refused().await;
    store.want_warm(&warm, &worker(), LONG).await.unwrap();
    refused().await;
    assert!(store.mark_warm_ready(&warm, &worker()).await.unwrap());
    assert!(store.mark_warm_leaving(&warm.container, &worker()).await.unwrap());
    refused().await;
    assert!(!store.mark_warm_ready(&warm, &worker()).await.unwrap(), "there is no way back");
    store.mark_warm_gone(&warm.container).await.unwrap();
    refused().await;
    assert_eq!(stages(&store).await, [PoolStage::Gone], "what comes late is known");
    assert!(store.mark_warm_leaving(&warm.container, &worker()).await.unwrap(), "and may be removed again");
}

async fn a_taken_container_is_no_longer_in_the_pool(database: Database) {
    let store = database.open().await;
    let warm = ready(&store, 1).await;
    let run = claimed(&store, "r1").await;
    let stale = runner_store::FencingToken { epoch: run.epoch + 1, ..run.fencing_token() };
    let fenced = store.step(&stale, &taking(&warm)).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    assert_eq!(stages(&store).await, [PoolStage::Ready]);
    store.step(&run.fencing_token(), &taking(&warm)).await.unwrap();
    assert!(!store.mark_warm_leaving(&warm.container, &worker()).await.unwrap(), "it is the run's to remove");
    store.mark_warm_gone(&warm.container).await.unwrap();
    assert_eq!(store.run_with_resources(&run.run_id).await.unwrap().1.len(), 3);
}

async fn only_its_owner_removes_a_warm_container(database: Database) {
    let store = database.open().await;
    let warm = ready(&store, 1).await;
    let other = Worker::named("host/2/def");
    assert!(!store.mark_warm_leaving(&warm.container, &other).await.unwrap());
    assert!(!store.pool().await.unwrap()[0].lease_expired);
    store.keep_warm_containers(&worker(), EXPIRES_AT_ONCE).await.unwrap();
    eventually("its lease is over", async || store.pool().await.unwrap()[0].lease_expired.then_some(()))
        .await;
    assert_eq!(
        store.warm_containers(TEMPLATE).await.unwrap(),
        [],
        "no run takes a container that may be removed at any moment"
    );
    store.keep_warm_containers(&worker(), LONG).await.unwrap();
    assert!(!store.mark_warm_leaving(&warm.container, &other).await.unwrap(), "its owner is back");
    store.keep_warm_containers(&worker(), EXPIRES_AT_ONCE).await.unwrap();
    eventually("its lease is over", async || {
        store.mark_warm_leaving(&warm.container, &other).await.unwrap().then_some(())
    })
    .await;
    store.keep_warm_containers(&worker(), LONG).await.unwrap();
    assert_eq!(stages(&store).await, [PoolStage::Leaving], "too late for its owner");
    assert!(!store.mark_warm_ready(&warm, &worker()).await.unwrap());
}

async fn a_container_of_another_template_does_not_fit(database: Database) {
    let store = database.open().await;
    let warm = ready(&store, 1).await;
    assert_eq!(store.warm_containers(TEMPLATE).await.unwrap(), [warm]);
    assert_eq!(store.warm_containers("another").await.unwrap(), []);
}
