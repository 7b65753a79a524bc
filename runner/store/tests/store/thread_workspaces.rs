//! Tests that the workspace of a thread is one run's at a time, and who may remove it.

use platform_core::id::{AgentId, ExternalId, WorkspaceId};
use platform_core::limit::Millis;
use runner_model::lifecycle::Transition;
use runner_store::{
    AccountScope, Claimant, Created, Error, FencingToken, NewRun, NewTurn, ResourceChange, ResourceKind,
    ResourceState, Step, Store, ThreadClaim, ThreadWorkspace, ThreadWorkspaceKey, TurnPlace, Worker,
};

use crate::database::{Database, id, order, transitions};

const LONG: Millis = Millis::seconds(600);

crate::on_both!(
    a_workspace_passes_from_run_to_run,
    one_of_two_claims_is_refused,
    a_workspace_in_use_is_not_given_away,
    a_repeated_claim_changes_nothing,
    only_a_left_workspace_is_retired,
    a_removed_thread_gives_its_workspace_up,
    runs_that_share_a_workspace_wait,
);

fn key(thread: &str) -> ThreadWorkspaceKey {
    ThreadWorkspaceKey {
        account: order("any").account,
        thread: ExternalId::parse(thread).unwrap(),
        agent: AgentId::parse("test:sh").unwrap(),
    }
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::from_random(number)
}

/// Orders a run that belongs to thread `chat`.
async fn ordered(store: &Store, run: &str) -> FencingToken {
    let turn = NewTurn {
        thread: key("chat").thread,
        question: "q".to_owned(),
        question_id: None,
        place: TurnPlace::Last,
    };
    let new = NewRun { turn: Some(turn), ..order(run) };
    let created = store.create(&new, Claimant::Worker(&Worker::this_process(), LONG)).await.unwrap();
    let Created::New(run) = created else { panic!("{created:?}") };
    run.fencing_token()
}

/// Returns the step in which a run claims workspace `number` of thread `chat`.
fn claim(number: u128, previous: Option<ThreadWorkspace>) -> Step {
    let claim = ThreadClaim { key: key("chat"), workspace: workspace(number), previous };
    let wanted = ResourceChange::wanted(ResourceKind::Workspace, workspace(number).as_str());
    let made = wanted.to(ResourceState::Made);
    Step::from(Transition::Prepare).with([wanted, made]).claiming(claim)
}

/// Executes a run that has prepared to its end, and leaves workspace `number`.
async fn leave(store: &Store, token: &FencingToken, number: u128) {
    let kept =
        ResourceChange::wanted(ResourceKind::Workspace, workspace(number).as_str()).to(ResourceState::Kept);
    let mut rest = transitions().into_iter().skip(1).map(Step::from).collect::<Vec<_>>();
    let last = rest.pop().unwrap().with([kept]);
    for step in rest.iter().chain([&last]) {
        store.step(token, step).await.unwrap();
    }
}

async fn found(store: &Store) -> ThreadWorkspace {
    store.thread_workspace(&key("chat")).await.unwrap().unwrap()
}

async fn stage(store: &Store, run: &str) -> ResourceState {
    store.record(&id(run)).await.unwrap().resources[0].stage
}

async fn a_workspace_passes_from_run_to_run(database: Database) {
    let store = database.open().await;
    assert_eq!(store.thread_workspace(&key("chat")).await.unwrap(), None);
    let first = ordered(&store, "r1").await;
    store.step(&first, &claim(1, None)).await.unwrap();
    assert!(found(&store).await.is_open_to(&id("r1")) && !found(&store).await.is_open_to(&id("r2")));
    leave(&store, &first, 1).await;
    let left = found(&store).await;
    assert!(left.is_open_to(&id("r2")), "{left:?}");
    assert_eq!((left.workspace.clone(), left.run_id.clone()), (workspace(1), id("r1")));
    let second = ordered(&store, "r2").await;
    store.step(&second, &claim(1, Some(left))).await.unwrap();
    assert_eq!(found(&store).await.run_id, id("r2"));
    assert_eq!(
        (stage(&store, "r1").await, stage(&store, "r2").await),
        (ResourceState::Removed, ResourceState::Made)
    );
    for other in ["chat2", "Chat"] {
        assert_eq!(store.thread_workspace(&key(other)).await.unwrap(), None, "{other}");
    }
    let other = ThreadWorkspaceKey { agent: AgentId::parse("test:other").unwrap(), ..key("chat") };
    assert_eq!(store.thread_workspace(&other).await.unwrap(), None);
    let elsewhere = database.open_of("elsewhere").await;
    assert_eq!(elsewhere.thread_workspace(&key("chat")).await.unwrap(), None);
}

async fn one_of_two_claims_is_refused(database: Database) {
    let store = database.open().await;
    let first = ordered(&store, "r1").await;
    store.step(&first, &claim(1, None)).await.unwrap();
    leave(&store, &first, 1).await;
    let left = found(&store).await;
    let (one, other) = (ordered(&store, "r2").await, ordered(&store, "r3").await);
    let steps = [claim(1, Some(left.clone())), claim(1, Some(left))];
    let there = database.open().await;
    let (one, other) = tokio::join!(store.step(&one, &steps[0]), there.step(&other, &steps[1]));
    let refused = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!(matches!(refused[..], [Error::ThreadWorkspaceTaken { .. }]), "{refused:?}");
    // The first of a thread, too.
    let (one, other) = (ordered(&store, "r4").await, ordered(&store, "r5").await);
    let mut steps = [claim(4, None), claim(5, None)];
    for step in &mut steps {
        step.thread_workspace.as_mut().unwrap().key = key("new");
    }
    let (one, other) = tokio::join!(store.step(&one, &steps[0]), there.step(&other, &steps[1]));
    let refused = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!(matches!(refused[..], [Error::ThreadWorkspaceTaken { .. }]), "{refused:?}");
}

async fn a_workspace_in_use_is_not_given_away(database: Database) {
    let store = database.open().await;
    let first = ordered(&store, "r1").await;
    store.step(&first, &claim(1, None)).await.unwrap();
    let second = ordered(&store, "r2").await;
    for number in [1, 2] {
        let refused = store.step(&second, &claim(number, Some(found(&store).await))).await.unwrap_err();
        assert!(matches!(refused, Error::ThreadWorkspaceTaken { .. }), "{refused:?}");
    }
    assert_eq!(store.run(&id("r2")).await.unwrap().state.name(), "queued", "nothing is stored by half");
    leave(&store, &first, 1).await;
    store.step(&second, &claim(1, Some(found(&store).await))).await.unwrap();
}

async fn a_repeated_claim_changes_nothing(database: Database) {
    let store = database.open().await;
    let first = ordered(&store, "r1").await;
    store.step(&first, &claim(1, None)).await.unwrap();
    // A worker that takes the run over claims the same again, or another in its place.
    for (number, previous) in [(1, None), (1, Some(found(&store).await)), (2, Some(found(&store).await))] {
        let step = Step { transition: None, ..claim(number, previous) };
        store.step(&first, &step).await.unwrap();
        assert_eq!(found(&store).await.workspace, workspace(number));
    }
}

async fn only_a_left_workspace_is_retired(database: Database) {
    let store = database.open().await;
    let retire =
        async |run: Option<&str>| store.retire_workspace(&workspace(1), run.map(id).as_ref()).await.unwrap();
    let first = ordered(&store, "r1").await;
    store.step(&first, &claim(1, None)).await.unwrap();
    assert!(!retire(Some("r1")).await && !retire(None).await, "its run is active");
    leave(&store, &first, 1).await;
    let second = ordered(&store, "r2").await;
    store.step(&second, &claim(1, Some(found(&store).await))).await.unwrap();
    assert!(!retire(Some("r1")).await, "the next run has it");
    leave(&store, &second, 1).await;
    assert!(!retire(Some("r1")).await, "the next run had it");
    assert!(retire(Some("r2")).await);
    assert_eq!(store.thread_workspace(&key("chat")).await.unwrap(), None);
    assert!(retire(Some("r2")).await && retire(None).await, "it is not a thread's");
    let third = ordered(&store, "r3").await;
    store.step(&third, &claim(3, None)).await.unwrap();
}

async fn a_removed_thread_gives_its_workspace_up(database: Database) {
    let store = database.open().await;
    for (run, previous) in [("r1", false), ("r2", true)] {
        let token = ordered(&store, run).await;
        let previous = if previous { Some(found(&store).await) } else { None };
        store.step(&token, &claim(1, previous)).await.unwrap();
        leave(&store, &token, 1).await;
    }
    store.forget_run(&id("r2"), &AccountScope::All).await.unwrap();
    assert_eq!(stage(&store, "r2").await, ResourceState::Kept, "the thread has a turn left");
    store.remove_thread(&key("chat").account, &key("chat").thread).await.unwrap();
    assert_eq!(store.thread_workspace(&key("chat")).await.unwrap(), None);
    assert_eq!(stage(&store, "r2").await, ResourceState::Made, "the reaper removes it");
}

/// Also a run that is started again, whatever has been ordered since.
async fn runs_that_share_a_workspace_wait(database: Database) {
    let store = database.open().await;
    let worker = Worker::this_process();
    let shared = |run: &str| NewRun { session: Some("workspace a b c".to_owned()), ..order(run) };
    let Created::New(first) = store.create(&shared("r1"), Claimant::Worker(&worker, LONG)).await.unwrap()
    else {
        panic!("ordered before")
    };
    for transition in transitions() {
        store.step(&first.fencing_token(), &transition.into()).await.unwrap();
    }
    store.create(&shared("r2"), Claimant::AnyWorker).await.unwrap();
    let second = store.claim(&worker, LONG).await.unwrap().unwrap();
    let ended = store.run(&id("r1")).await.unwrap();
    store.restart(&ended.fencing_token()).await.unwrap();
    assert_eq!(store.claim(&worker, LONG).await.unwrap(), None, "r2 is active");
    for transition in transitions() {
        store.step(&second.fencing_token(), &transition.into()).await.unwrap();
    }
    assert_eq!(store.claim(&worker, LONG).await.unwrap().unwrap().run_id, id("r1"));
}
